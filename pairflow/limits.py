"""Bounds that several parts of the package share."""

# Of token rows that can be paired, because the kernels hold tokens and distances in 16 bits.
MAX_VOCABULARY = 2**16  # K
MAX_LENGTH = 2**14  # N

# Of names in a configuration, which become parts of the names of files; these have at most 255 bytes.
LONGEST_NAME = 100

# Of samples, whatever draws them.
MOST_SAMPLES = 10**7
MOST_NFE = 10_000

USABLE = 0.5  # share of valid samples below which a model is called not usable
HOPELESS = 0.05  # likewise, and of useful ones, below which no command for molecules is offered
