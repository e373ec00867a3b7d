"""The metrics of token rows."""

from functools import partial

from pairflow.metrics.metric import Metric

_ngrams = partial(Metric, best="lowest", against="to held-out rows")
_rows = partial(Metric, group="rows")
METRICS = {
    "bigram_tv": _ngrams("bigram distance", headline="the bigram distance"),
    "unigram_tv": _ngrams("unigram distance", headline="the unigram distance"),
    "nn_hamming": _rows("Hamming distance", against="to training rows"),
    "copies": _rows("share of copies", against="of training rows", chart=False),
    "distinct": _rows("share of distinct rows", chart=False),
}
GROUPS = {"rows": "Copies and repeats"}
