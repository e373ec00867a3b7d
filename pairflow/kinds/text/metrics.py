"""The metrics of text."""

from functools import partial

from pairflow.metrics.metric import Metric

_text = partial(Metric, real="held-out text")
_ngrams = partial(_text, best="lowest", against="to held-out text", group="ngrams")
_repeats = partial(_text, chart=False, group="repeats")
METRICS = {
    "judge_ppl": _text("judge perplexity", "lowest", "the judge’s perplexity", log=True),
    "gen_ppl": _text("generative perplexity", "lowest", log=True),
    "entropy": _text("entropy (nats)", digits=2),
    "known_words": _text("share of known words", "highest"),
    "js_trigram": _ngrams("trigram distance"),
    "js_bigram": _ngrams("bigram distance"),
    "js_unigram": _ngrams("unigram distance"),
    "rep_4": _repeats("repeated 4-grams of a sample"),
    "distinct_4": _repeats("distinct 4-grams of a trial"),
    "copied_span": _repeats("longest copied span", against="of {} text"),
    "copied_span_max": _repeats("longest copied span of a trial", against="of {} text"),
}
GROUPS = {"ngrams": "Frequencies of n-grams", "repeats": "Repeats, and copies of training text"}
