"""The metric rows of samples of text, of real text, and of the controls. See docs/metrics.md, "Text"."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pairflow.metrics.text.copied import longest_copies
from pairflow.metrics.text.kneser_ney import KneserNey
from pairflow.metrics.text.ngrams import distinct_share, jensen_shannon, repeated_share, token_entropy
from pairflow.metrics.text.words import known_share, list_words

SPAN = 4  # tokens of the n-grams whose repeats are counted
_SIZES = {1: "js_unigram", 2: "js_bigram", 3: "js_trigram"}

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class RealText:
    """What samples of text are compared with; rows are those of `ngrams.mark_padding`.

    `train` (M, N) and `held_out` (V, N) are the rows of the data set, `decode` makes text of a row, and
    `judge_name` is what metric rows call the judge.
    """

    train: np.ndarray
    held_out: np.ndarray
    judge: KneserNey
    judge_name: str
    decode: Callable[[np.ndarray], str]

    @cached_property
    def known_words(self) -> frozenset[str]:
        """The words of the training rows."""
        return list_words(map(self.decode, self.train))

    def measure(self, rows: np.ndarray) -> Iterator[Row]:
        """The metric rows of a trial's samples (B, N)."""
        yield from self.measure_rows(rows)
        yield from self.compare_ngrams(rows)

    def measure_rows(self, rows: np.ndarray) -> Iterator[Row]:
        """Those metrics for which held-out rows can stand in place of samples."""
        yield _row("judge_ppl", self.judge.perplexity(rows), extractor=self.judge_name)
        yield _row("entropy", float(token_entropy(rows).mean()))
        yield _row("known_words", known_share(map(self.decode, rows), self.known_words), "train")
        yield _row("rep_4", float(repeated_share(rows, SPAN).mean()))
        yield _row("distinct_4", distinct_share(rows, SPAN))

    def compare_ngrams(self, rows: np.ndarray) -> Iterator[Row]:
        """The distances of n-gram frequencies to the held-out rows."""
        for size, metric in _SIZES.items():
            if size <= rows.shape[1]:
                yield _row(metric, jensen_shannon(rows, self.held_out, size), "test")

    def measure_copies(self, trials: dict[int, np.ndarray]) -> Iterator[tuple[int, Row]]:
        """The copied spans of all trials, by one pass over the training rows."""
        spans = longest_copies(np.concatenate([*trials.values()]), self.train)
        ends = np.cumsum([len(rows) for rows in trials.values()])[:-1]
        for trial, own in zip(trials, np.split(spans, ends), strict=True):
            yield trial, _row("copied_span", float(own.mean()), "train")
            yield trial, _row("copied_span_max", float(own.max()), "train")


def _row(metric: str, value: float, reference: str | None = None, extractor: str | None = None) -> Row:
    return {"metric": metric, "value": value, "reference": reference, "extractor": extractor}


def measure_trials(trials: dict[int, np.ndarray], real: RealText) -> Iterator[Row]:
    """The metric rows of samples (B, N) by their trial."""
    for trial, rows in trials.items():
        for row in real.measure(rows):
            yield {**row, "trial": trial, "samples": len(rows)}
    for trial, row in real.measure_copies(trials):
        yield {**row, "trial": trial, "samples": len(trials[trial])}
