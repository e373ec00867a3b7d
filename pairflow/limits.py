"""The largest token rows that can be paired, because the kernels hold tokens and distances in 16 bits."""

MAX_VOCABULARY = 2**16  # K
MAX_LENGTH = 2**14  # N
