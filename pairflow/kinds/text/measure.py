"""Measures samples of text, real text and the controls (trivial baselines). See docs/metrics.md, "Text"."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pairflow import rng
from pairflow.artifacts import Metadata, digest, read_table, token_array
from pairflow.kinds.text.controls import CONTROLS
from pairflow.kinds.text.kneser_ney import KneserNey
from pairflow.kinds.text.ngrams import (
    distinct_share,
    jensen_shannon,
    known_share,
    mark_padding,
    repeated_share,
    token_entropy,
    whole_words,
)
from pairflow.kinds.text.settings import Judge, JudgedDraws, TextFiles
from pairflow.kinds.text.tokenisers import Tokeniser, load_tokeniser
from pairflow.metrics.measured import Machine, Measurement, RealRows, draw_trials

if TYPE_CHECKING:
    from pairflow.kinds.text.gpt2 import GPT2

SPAN = 4  # tokens of the n-grams whose repeats are counted

Row = dict[str, object]
Trials = dict[int, np.ndarray]


@dataclass(frozen=True, eq=False)
class RealText:
    """The text that samples are compared with, and the models that judge them.

    `real` has training and held-out rows, in which padding is -1. `judge` is the n-gram model, and `name` its
    name in metric rows. `inputs` are digests of files. `gpt2` is None unless the settings ask for gen_ppl.
    """

    real: RealRows
    name: str
    judge: KneserNey
    tokeniser: Tokeniser
    inputs: dict[str, str]
    gpt2: "GPT2 | None" = None

    @classmethod
    def read(cls, files: TextFiles, settings: Judge, machine: Machine) -> "RealText":
        """Read the files and fit the n-gram judge. Raises InputError unless the files are of one data set."""
        real, tokeniser = RealRows.read(files.tokens, files.validation), load_tokeniser(files.vocabulary)
        train, held_out = (mark_padding(rows, tokeniser.padding) for rows in (real.train, real.held_out))
        real = replace(real, train=train, held_out=held_out)
        real.metadata.require_same_vocabulary(tokeniser.hash, files.tokens, files.vocabulary)
        table, judged = read_table(files.judge, "tokens")
        judged.require_same_data(real.metadata.data, files.judge, files.tokens)
        judged.require_split("judge", files.judge)
        # The judge's rows are successive pieces of the text, so that n-grams may cross their ends.
        stream = mark_padding(token_array(table["tokens"]), tokeniser.padding).reshape(1, -1)
        inputs = {**real.inputs, "judge": digest(files.judge)}
        name = f"kneser-ney-{settings.order}-{inputs['judge'][:8]}"
        judge = KneserNey.fit(stream, real.metadata.dimensions[1], settings.order)
        gpt2 = None
        if settings.gen_ppl:
            from pairflow.kinds.text.gpt2 import GPT2  # both import torch
            from pairflow.runtime.device import choose

            gpt2 = GPT2.load(choose(machine.device, machine.threads, machine.provenance))
            inputs["gpt2"] = gpt2.sha256
        return cls(real, name, judge, tokeniser, inputs, gpt2)

    def read_samples(self, path: Path) -> tuple[Trials, Metadata]:
        """Read the samples (B, N) of each trial, and their metadata; InputError for samples of other data."""
        table, metadata = self.real.read_samples(path)
        marked = mark_padding(token_array(table["tokens"]), self.tokeniser.padding)
        trials = table["trial"].to_numpy()
        return {int(trial): marked[trials == trial] for trial in np.unique(trials)}, metadata

    @cached_property
    def known_words(self) -> frozenset[str]:
        texts = self._spell(self.real.train)
        return frozenset(word for text in texts for word in whole_words(text, self.cut))

    @property
    def cut(self) -> bool:
        """Whether rows may begin and end within a word."""
        return not self.tokeniser.lines

    def _spell(self, rows: np.ndarray) -> Iterator[str]:
        """Yield the texts of rows, without padding and masks."""
        return (self.tokeniser.decode(row[row >= 0]) for row in rows)

    def measure(self, trials: Trials) -> Iterator[Row]:
        """Compute the metric rows of each trial's samples (B, N)."""
        return _by_trial(trials, lambda rows: chain(self.measure_rows(rows), self.compare_trigrams(rows)))

    def measure_rows(self, rows: np.ndarray) -> Iterator[Row]:
        """Compute those metrics of rows that need no held-out rows, so that they also suit held-out rows:
        perplexity, entropy, known words and repeats."""
        yield _row("judge_ppl", self.judge.perplexity(rows), extractor=self.name)
        if self.gpt2:
            value = self.gpt2.perplexity([*self._spell(rows)], rows.shape[1])
            yield _row("gen_ppl", value, extractor=self.gpt2.name)
        yield _row("entropy", float(token_entropy(rows).mean()))
        yield _row("known_words", known_share(self._spell(rows), self.known_words, self.cut), "train")
        yield _row("rep_4", float(repeated_share(rows, SPAN).mean()))
        yield _row("distinct_4", distinct_share(rows, SPAN))

    def compare_trigrams(self, rows: np.ndarray) -> Iterator[Row]:
        """Compute the distance between the trigram frequencies of samples and of held-out rows."""
        yield _row("js_trigram", jensen_shannon(rows, self.real.held_out, 3), "test")


def _row(metric: str, value: float, reference: str | None = None, extractor: str | None = None) -> Row:
    return {"metric": metric, "value": value, "reference": reference, "extractor": extractor}


def measure_samples(settings: Judge, samples: Path, files: TextFiles, machine: Machine) -> Measurement:
    text = RealText.read(files, settings, machine)
    trials, metadata = text.read_samples(samples)
    inputs = {"samples": digest(samples), **text.inputs}
    return Measurement(text.measure(trials), metadata.vocabulary, inputs, metadata.parameters)


def measure_floor(settings: JudgedDraws, files: TextFiles, machine: Machine) -> Measurement:
    """Measure real text (method `data`) and the controls (shuffled tokens, a chain of trigrams, and one
    repeated snippet), each of as many rows as there are samples.

    For real text, `js_trigram` compares training rows with held-out rows; its other metrics are of held-out
    rows.
    """
    text = RealText.read(files, settings, machine)
    held_out, train = (
        {trial: rows[drawn] for trial, drawn in draw_trials(settings, split, np.arange(len(rows)))}
        for split, rows in (("test", text.real.held_out), ("train", text.real.train))
    )
    floor = chain(_by_trial(held_out, text.measure_rows), _by_trial(train, text.compare_trigrams))
    controls = {}
    for name, draw in CONTROLS.items():
        seeds = [rng.stream_seed(settings.seed, "control", name, trial) for trial in range(settings.trials)]
        drawn = [draw(text.real.train, settings.samples, np.random.default_rng(seed)) for seed in seeds]
        controls[name] = text.measure(dict(enumerate(drawn)))
    measured = {"data": floor, **controls}.items()
    rows = ({**row, "method": method} for method, rows in measured for row in rows)
    return Measurement(rows, text.real.metadata.vocabulary, text.inputs)


def _by_trial(trials: Trials, measure: Callable[[np.ndarray], Iterable[Row]]) -> Iterator[Row]:
    for trial, rows in trials.items():
        for row in measure(rows):
            yield {**row, "trial": trial, "samples": len(rows)}
