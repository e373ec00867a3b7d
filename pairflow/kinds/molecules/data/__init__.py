"""Reads files of molecules, suggests experiments on them for `pairflow new`, and turns molecules into token
rows."""
