"""Files of molecules, how `pairflow new` begins with them, and molecules as rows of tokens."""
