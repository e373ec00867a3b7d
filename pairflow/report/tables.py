"""Metric rows -> means and standard deviations -> tables that mark what is not worse than a column's best."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

import numpy as np
import pandas as pd

from pairflow.report.stats import REPETITIONS, Difference, Values, adjust, difference, estimate, group_by_seed
from pairflow.report.words import format_number, join_words, pluralise

_SAME_ENTROPY = 0.02  # entropies that differ by more, as a share, are not equal
REAL = "data"  # the method of metric rows that compare real data with real data


@dataclass(frozen=True)
class Metric:
    """How the page names, orders and draws a metric, and which of two values it calls the better one.

    `best` is `highest`, `lowest` or empty. The summary is about the first metric with rows and a `headline`.
    `against` words the reference, training or test, where a metric has one. `counted` metrics are numbers of
    samples, printed with one decimal. `group` is one of `GROUPS`, empty for the main metrics. `features`: it
    compares images by an extractor's features, not by their pixels. `digits` is the least number of decimals.
    """

    label: str
    modality: str
    best: str = ""
    headline: str = ""
    against: str = "to the {} images"
    log: bool = False
    chart: bool = True
    counted: bool = False
    group: str = ""
    features: bool = True
    digits: int = 1

    @property
    def real(self) -> str:
        """What a floor is measured on."""
        return {"tokens": "real rows", "text": "held-out text", "vectors": "held-out data"}.get(
            self.modality, "real images"
        )

    def could_show(self, cell: Difference) -> bool:
        """Whether a gain as large as `visible` is possible.

        Where lower is better no gain exceeds the baseline, but of kernel distances, which may be negative.
        """
        return self.best != "lowest" or self.group == "kernel" or cell.visible <= cell.base


def _count(label: str, best: str = "highest", headline: str = "", group: str = "") -> Metric:
    return Metric(label, "molecules", best, headline, chart=not group, counted=True, group=group)


def _of_rows(label: str, against: str, **options: Any) -> Metric:
    return Metric(label, "tokens", against=against, **options)


def _of_text(label: str, against: str = "", best: str = "", **options: Any) -> Metric:
    return Metric(label, "text", best, against=against, **options)


def _of_vectors(label: str, against: str = "to training data", **options: Any) -> Metric:
    return Metric(label, "vectors", against=against, **options)


def _ngram(label: str) -> Metric:
    return _of_rows(label, "to held-out rows", best="lowest", headline=f"the {label}")


def _likeness(label: str, group: str, best: str = "lowest") -> Metric:
    return Metric(label, "molecules", best, chart=False, group=group)


def _nearest(label: str, against: str = "to the nearest {} image", **options: Any) -> Metric:
    return Metric(label, "images", against=against, group="neighbours", **options)


# Of tables: the main ones have no title, the others are folded.
GROUPS = {
    "": "",
    "structure": "Pieces, scaffolds, similarity",
    "moses": "Beside held-out molecules, and filters (MOSES)",
    "properties": "Distance of properties from the training set’s",
    "reasons": "Why samples are invalid",
    "spellings": "Spellings, as the paper counts",
    "kernel": "Kernel distances",
    "neighbours": "Distance to the nearest images",
    "rows": "Copies and repeats",
    "ngrams": "Frequencies of n-grams",
    "repeats": "Repeats, and copies of training text",
    "paths": "Paths from source to sample",
}
METRICS = {
    "useful_strict": _count("useful", headline="the number of useful molecules"),
    "useful": _count("useful by QED and logP"),
    "valid": _count("valid", headline="the number of valid molecules"),
    "unique_strict": _count("unique"),
    "novel_strict": _count("novel"),
    "in_class": _count("in the class asked for"),
    "unique": _count("unique spellings", group="spellings"),
    "novel": _count("novel spellings", group="spellings"),
    "invalid_empty": _count("empty", "", group="reasons"),
    "invalid_syntax": _count("syntax", "", group="reasons"),
    "invalid_ring": _count("ring closure", "", group="reasons"),
    "invalid_valence": _count("valence", "", group="reasons"),
    "invalid_kekulize": _count("aromaticity", "", group="reasons"),
    "connected": _count("connected", group="structure"),
    "scaffolds": _count("scaffolds", group="structure"),
    "novel_scaffolds": _count("novel scaffolds", group="structure"),
    "internal_diversity": _likeness("internal diversity", "structure", "highest"),
    "nn_similarity": _likeness("similarity to the nearest training molecule", "structure", ""),
    "internal_diversity_2": _likeness("internal diversity 2", "moses", "highest"),
    "filters": _likeness("share that passes the filters", "moses", "highest"),
    "held_out_similarity": _likeness("similarity to the nearest held-out molecule", "moses", "highest"),
    "held_out_fragments": _likeness("fragments as in held-out molecules", "moses", "highest"),
    "held_out_scaffolds": _likeness("scaffolds as in held-out molecules", "moses", "highest"),
    "unseen_similarity": _likeness("similarity to the nearest with an unseen scaffold", "moses", "highest"),
    "unseen_fragments": _likeness("fragments as in molecules with unseen scaffolds", "moses", "highest"),
    "unseen_scaffolds": _likeness("scaffolds as in molecules with unseen ones", "moses", "highest"),
    "qed_wasserstein": _likeness("QED", "properties"),
    "sa_wasserstein": _likeness("SA score", "properties"),
    "logp_wasserstein": _likeness("logP", "properties"),
    "weight_wasserstein": _likeness("molecular weight (g/mol)", "properties"),
    "fcd": _likeness("FCD", "properties"),
    "valid_per_second": _likeness("valid per second", "speed", "highest"),
    "unique_per_second": _likeness("unique per second", "speed", "highest"),
    "novel_per_second": _likeness("novel per second", "speed", "highest"),
    "fid": Metric("FID", "images", "lowest", "FID", log=True),
    "fd": Metric("FD", "images", "lowest", "FD", log=True),
    "is": Metric("IS", "images", "highest"),
    "kid": Metric("KID", "images", "lowest", log=True, group="kernel"),
    "kd": Metric("KD", "images", "lowest", log=True, group="kernel"),
    "nn_l2": _nearest("L2", log=True, features=False),
    "nn_cosine": _nearest("cosine"),
    "nn_copies": _nearest("share of copies", against="of {} images", chart=False, features=False),
    "bigram_tv": _ngram("bigram distance"),
    "unigram_tv": _ngram("unigram distance"),
    "nn_hamming": _of_rows("Hamming distance", "to training rows", group="rows"),
    "copies": _of_rows("share of copies", "of training rows", chart=False, group="rows"),
    "distinct": _of_rows("share of distinct rows", "", chart=False, group="rows"),
    "chamfer": _of_vectors(
        "Chamfer distance", best="lowest", headline="the Chamfer distance", log=True, digits=4
    ),
    "chamfer_all": _of_vectors("Chamfer distance, all coordinates", best="lowest", log=True, digits=4),
    "w2": _of_vectors("2-Wasserstein distance", best="lowest", log=True, digits=3),
    "path_energy": _of_vectors("path energy", "", digits=3, group="paths"),
    "straightness": _of_vectors("deviation from straight paths", "", digits=3, group="paths"),
    "judge_ppl": _of_text("judge perplexity", best="lowest", headline="the judge’s perplexity", log=True),
    "gen_ppl": _of_text("generative perplexity", best="lowest", log=True),
    "entropy": _of_text("entropy (nats)", digits=2),
    "known_words": _of_text("share of known words", best="highest"),
    "js_trigram": _of_text("trigram distance", "to held-out text", "lowest", group="ngrams"),
    "js_bigram": _of_text("bigram distance", "to held-out text", "lowest", group="ngrams"),
    "js_unigram": _of_text("unigram distance", "to held-out text", "lowest", group="ngrams"),
    "rep_4": _of_text("repeated 4-grams of a sample", chart=False, group="repeats"),
    "distinct_4": _of_text("distinct 4-grams of a trial", chart=False, group="repeats"),
    "copied_span": _of_text("longest copied span", "of {} text", chart=False, group="repeats"),
    "copied_span_max": _of_text("longest copied span of a trial", "of {} text", chart=False, group="repeats"),
}
# In a complete data set every molecule that keeps its rules is known, so that a novel one breaks them.
_OFF_RULES = {
    "novel_strict": _count("off the rules", "lowest"),
    "novel": _count("off the rules, spellings", "lowest", group="spellings"),
    "novel_scaffolds": _count("scaffolds that no training molecule has", "", group="structure"),
}


def describe_metric(name: str, complete: bool = False) -> Metric:
    """How the page presents a metric; `complete`: of an experiment whose data set is complete."""
    return _OFF_RULES.get(name, METRICS[name]) if complete else METRICS[name]


def list_metrics(modality: str, group: str | None = None) -> list[str]:
    """Names of a modality's metrics, or of one group among them, in the page's order."""
    shared = {"images": "paths"}.get(modality)  # images of a continuous flow have paths, as vectors do
    chosen = {
        name: metric
        for name, metric in METRICS.items()
        if metric.modality == modality or (shared and metric.group == shared)
    }
    return [name for name, metric in chosen.items() if group in (None, metric.group)]


@dataclass(frozen=True)
class Cell:
    """Mean of `count` values and a sample standard deviation; NaN where there is none.

    Over several seeds the mean is that of the `seeds` means, `std` is between these, and `trials` is the
    deviation between the trials of one seed. With a single seed `std` is between its trials.
    """

    mean: float = np.nan
    std: float = np.nan
    count: int = 0
    best: bool = False
    digits: int = 1
    seeds: int = 1
    trials: float = np.nan

    @property
    def text(self) -> str:
        return format_number(self.mean, self.digits) if self.count else "–"

    @property
    def spread(self) -> str:
        return self._deviation(self.std)

    @property
    def trial_spread(self) -> str:
        """The deviation between the trials of one seed, where `spread` is between seeds."""
        return self._deviation(self.trials)

    def _deviation(self, value: float) -> str:
        return f"± {value:,.{self.digits}f}" if np.isfinite(value) else ""


@dataclass(frozen=True)
class Table:
    """One metric: rows are methods, columns are numbers of sampling steps.

    `beside` completes the metric's label; `floor` is the same metric for real data, if it is known; `seeds`
    counts the training seeds of the evaluation. Evaluation, reference and extractor are those of the metric
    rows; molecules have only the first. `complete` is that of `describe_metric`. `calls` are the methods'
    calls of the network for a sample, column by column.
    """

    metric: str
    columns: list[int]
    rows: dict[str, list[Cell]]
    beside: str = ""
    floor: Cell | None = None
    evaluation: str = ""
    reference: str = ""
    extractor: str = ""
    seeds: int = 1
    complete: bool = False
    calls: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def about(self) -> Metric:
        return describe_metric(self.metric, self.complete)

    @property
    def label(self) -> str:
        return f"{self.about.label} {self.beside}".strip()

    @property
    def count(self) -> int:
        """Values behind a complete cell."""
        return max((cell.count for cells in self.rows.values() for cell in cells), default=0)

    @property
    def call_rows(self) -> dict[str, Sequence[int]]:
        """Methods with the same calls -> these calls. All methods have no name, and unknown calls no row."""
        groups: dict[tuple[int, ...], list[str]] = {}
        for method in self.rows:
            if method in self.calls:
                groups.setdefault(tuple(self.calls[method]), []).append(method)
        names = [join_words(methods) if len(methods) < 3 else "other methods" for methods in groups.values()]
        return dict(zip(names if len(groups) > 1 else [""], groups, strict=False))

    @property
    def tested(self) -> bool:
        """Whether a test says what is marked beside the best mean."""
        return (self.seeds if self.seeds > 1 else self.count) >= REPETITIONS

    def lack(self, cell: Cell) -> str:
        """How many seeds or values a cell has, if it has fewer than a complete one."""
        if not cell.count:
            return ""
        if cell.seeds < self.seeds:
            return f"{cell.seeds} of {self.seeds} seeds"
        return f"n = {cell.count}" if cell.count < self.count else ""


def summarise(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rows evaluation, metric, method, nfe, values, all_seeds.

    `values` are `stats.Values`, without those that are NaN; `all_seeds` is the number of seeds with any value
    in the evaluation.
    """
    keys = ["evaluation", "metric", "method", "nfe"]
    rows = [(*key, group_by_seed(group)) for key, group in metrics.groupby(keys, sort=True)]
    summary = pd.DataFrame(rows, columns=[*keys, "values"])
    all_seeds = metrics.dropna(subset="value").groupby("evaluation")["seed"].nunique()
    return summary.assign(all_seeds=summary.evaluation.map(all_seeds).fillna(0).astype(int))


def make_table(
    summary: pd.DataFrame,
    evaluation: str,
    metric: str,
    methods: list[str],
    beside: str = "",
    floor: Cell | None = None,
    reference: str = "",
    extractor: str = "",
    complete: bool = False,
) -> Table:
    """The table of one metric; methods without any row are left out.

    Marked in each column are the best mean and those after it, down to the first that the test of
    `stats.difference`, with Holm's correction over the column, does not leave open. Those that print alike
    are marked together. Fewer than three seeds, or trials of one, are not tested.
    """
    about = describe_metric(metric, complete)
    part = summary[(summary.evaluation == evaluation) & (summary.metric == metric)]
    columns = sorted(int(nfe) for nfe in part.nfe.unique())
    seeds = max(int(part["all_seeds"].max()), 1) if len(part) else 1
    values = dict(zip(zip(part.method, part.nfe, strict=True), part["values"], strict=True))
    cells = {key: _cell(own, seeds > 1) for key, own in values.items()}
    means = [*(cell.mean for cell in cells.values()), *([floor.mean] if floor else [])]
    digits = 1 if about.counted else max(about.digits, choose_digits(means))
    rows = {
        method: [replace(cells.get((method, nfe), Cell()), digits=digits) for nfe in columns]
        for method in methods
        if method in set(part.method)
    }
    marked = {method: [*row] for method, row in rows.items()}
    for place, nfe in enumerate(columns):
        column = {method: row[place] for method, row in rows.items() if row[place].count}
        own = {method: values[method, nfe] for method in column}
        for method in _best(column, own, about.best):
            marked[method][place] = replace(column[method], best=True)
    floor = replace(floor, digits=digits) if floor else None
    return Table(metric, columns, marked, beside, floor, evaluation, reference, extractor, seeds, complete)


def _cell(values: Values, several: bool) -> Cell:
    """A deviation between trials never stands where others are between seeds."""
    if not values:
        return Cell()
    own = estimate(values)
    std, trials = (own.between, own.within) if several else (own.within, np.nan)
    return Cell(own.mean, std, own.trials, seeds=own.seeds, trials=trials)


def choose_digits(values: Sequence[float]) -> int:
    """Number of decimals, 1 to 4, that shows two digits of the smallest value."""
    sizes = [abs(value) for value in values if np.isfinite(value) and value]
    return int(np.clip(1 - np.floor(np.log10(min(sizes))), 1, 4)) if sizes else 1


def _best(cells: Mapping[str, Cell], values: Mapping[str, Values], best: str) -> list[str]:
    """The marked methods of a column; none where there is no choice. Without a test those that tie."""
    if not best or len(cells) < 2:
        return []
    first, *others = sorted(cells, key=lambda method: cells[method].mean, reverse=best == "highest")
    tests = adjust(difference(values[first], values[method]) for method in others)
    following = takewhile(
        lambda item: cells[item[0]].text == cells[first].text or item[1].undecided,
        zip(others, tests, strict=True),
    )
    return [first, *(method for method, _ in following)]


def describe_scope(metrics: pd.DataFrame, evaluation: str) -> str:
    """What an evaluation's numbers are counted from: `1,024 samples × 10 trials × 3 seeds`."""
    part = metrics[metrics.evaluation == evaluation]
    counts = {"trial": part.trial.nunique(), "seed": part.seed.nunique()}
    parts = [pluralise(count, name) for name, count in counts.items() if count]
    return " × ".join([f"{list_counts(part.samples)} samples", *parts])


def differ_in_entropy(one: float, other: float) -> bool:
    """Whether samples of text with these mean entropies are too unlike for a comparison of perplexities."""
    return abs(one - other) > _SAME_ENTROPY * max(one, other)


def list_counts(counts: Iterable[int]) -> str:
    """The distinct counts in words: `1,000 or 5,000`."""
    return " or ".join(f"{value:,}" for value in sorted({*counts}))
