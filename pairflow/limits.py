"""Bounds that several parts of the package share."""

# Of token rows that can be paired, because the kernels hold tokens and distances in 16 bits.
MAX_VOCABULARY = 2**16  # K
MAX_LENGTH = 2**14  # N

USABLE = 0.5  # share of valid samples below which a model is called not usable
HOPELESS = 0.05  # likewise, and of useful ones, below which no command for molecules is offered
