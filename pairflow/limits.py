"""Bounds that several parts of the package share."""

# The largest token rows: the kernels of the pairing store tokens and distances in 16 bits.
MAX_VOCABULARY = 2**16  # K, the number of symbols
MAX_LENGTH = 2**14  # N, the tokens of a row

KEYS = 250_000  # most rows of a subset that is paired by itself, unless a setting says otherwise

# The longest name in a configuration: names become parts of file names, which have at most 255 bytes.
LONGEST_NAME = 100

# The largest request for samples.
MOST_SAMPLES = 10**7
MOST_NFE = 10_000  # sampling steps (number of function evaluations)
MOST_DRAWS = 10**6  # noised copies of a row that is scored

FEW_REAL = 50  # of fewer held-out rows, reports print counts, and draw no line to compare samples with
USABLE = 0.5  # share of valid samples below which reports call a model not usable
HOPELESS = 0.05  # share of valid, or plausible, samples below which reports suggest no command for molecules


def least_subsets(rows: int, keys: int) -> int:
    """Return the least number of subsets of `rows` rows that have at most `keys` rows each."""
    return -(-rows // keys)
