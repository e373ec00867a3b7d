"""Bounds that several parts of the package share."""

# Of token rows, because the kernels of the pairing store tokens and distances in 16 bits.
MAX_VOCABULARY = 2**16  # K
MAX_LENGTH = 2**14  # N

# Of names in a configuration: they become parts of file names, which have at most 255 bytes.
LONGEST_NAME = 100

# Of one request for samples.
MOST_SAMPLES = 10**7
MOST_NFE = 10_000

USABLE = 0.5  # share of valid samples below which reports call a model not usable
HOPELESS = 0.05  # share of valid, or of useful, samples below which reports suggest no command for molecules
