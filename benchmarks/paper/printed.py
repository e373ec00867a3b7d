"""The paper's printed values, as in `tables.csv`, and what the page and this workflow call them."""

import csv
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from pairflow.report.stats import Estimate

TRIALS = 10  # sampling trials behind a printed deviation
DATASETS = {
    "qm9": "QM9",
    "zinc250k": "ZINC-250k",
    "mnist_binary": "MNIST-Binary",
    "cifar10": "CIFAR-10",
    "ffhq64": "FFHQ 64 × 64",
    **{f"lm1b_n{length}": f"LM1B, N = {length}" for length in (16, 32, 64, 128)},
    "mnist_continuous": "continuous MNIST",
}  # by the name that `protocol.name_data` gives an experiment's data
_BY_DATASET = ("appendix_forward_velocity_coverage", "computation_cost_table")  # tables with a row for each
MINUTES = ("pairing_minutes", "runtime_minutes")
_FILE = Path(__file__).with_name("tables.csv")
_NAMES = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))
TITLES: dict[str, str] = _NAMES["titles"]
NUMBERS: dict[str, int] = _NAMES["numbers"]  # of the tables, in the first version of the preprint
FIGURES: dict[str, str] = _NAMES["figures"]  # that draw a table's values
METRICS: dict[str, str] = _NAMES["metrics"]
NOTES: dict[str, str] = _NAMES["notes"]  # by metric
_REMAINING: list[dict[str, Any]] = _NAMES["remaining"]  # what differs from the authors' release, and for whom
_BASES = {"MDLM": "mdlm", "UDLM": "udlm", "Random": "random", "PairFlow": "pairflow", "CondOT": "condot"}
_METHOD = re.compile(
    r"(?P<base>[A-Za-z]+)( \((Full|(?P<subsets>\d+)-Sub)\))?"
    r"(?P<distillations>(\+(DCD|ReDi|RF))*)(\+ReFlow x(?P<rounds>\d+))?"
)
_FOLLOWED = ("qm9",)  # data whose protocol has what confounds: numbers compare, but not their effects
_CONFOUNDED = {  # effects of PairFlow with ReDi by their data
    "qm9": "the authors’ scripts give UDLM+ReDi a learning rate of 6e-5 and PairFlow+ReDi one of 3e-4",
    "cifar10": "the authors’ scripts start ReDi from scratch and train PairFlow on UDLM’s pairs",
}


@dataclass(frozen=True)
class Printed:
    """One value of the paper.

    `text` and `spread` are the value and its deviation as printed, `name` the paper's name of the method.
    `nfe` is None where nothing is sampled; `better` is `higher`, `lower` or empty.
    """

    table: str
    dataset: str
    metric: str
    name: str
    nfe: int | None
    text: str
    spread: str
    unit: str
    better: str
    note: str

    @property
    def value(self) -> float:
        return float(self.text)

    @property
    def std(self) -> float:
        """The printed deviation, between sampling trials of one training; NaN where none is printed."""
        return float(self.spread) if self.spread else np.nan

    @property
    def estimate(self) -> Estimate:
        """The printed mean as that of the trials behind it; a single observation without a deviation."""
        return Estimate(self.value, self.std**2, TRIALS if self.spread else 1)

    @property
    def by_dataset(self) -> bool:
        """Whether its table has a row for each data set, not for each method."""
        return self.table in _BY_DATASET

    @property
    def row(self) -> str:
        return self.data_name if self.by_dataset else self.name

    @property
    def column(self) -> str:
        if self.nfe is not None:
            return f"{self.nfe:,}"
        label = METRICS.get(self.metric, self.metric)
        return f"{self.name} ({label})" if self.metric == "runtime_minutes" else label

    @property
    def data_name(self) -> str:
        """What the page calls the data set."""
        return DATASETS.get(self.dataset) or _NAMES["datasets"].get(self.dataset, self.dataset)

    @property
    def digits(self) -> int:
        """Decimals of the printed value."""
        return len(self.text.partition(".")[2])

    @property
    def method(self) -> str | None:
        """The method as this workflow calls it, if it has experiments on this data; else None."""
        return parse_name(self.name) if self.dataset in DATASETS else None

    @property
    def measurable(self) -> bool:
        """Whether an experiment of this workflow could measure it; properties of data are not measured."""
        return self.metric != "dataset_size" and (
            self.method is not None or (self.dataset in DATASETS and self.metric in MINUTES)
        )

    @property
    def unclear(self) -> bool:
        """Whether the paper leaves open what its value measures, so that not even effects compare."""
        return self.metric == "nn_cosine_dinov2_train"

    @property
    def confounded(self) -> str:
        """Why the effect of PairFlow on this value is not that of its pairs only; empty if it is."""
        redi = "ReDi" in self.name or "ReFlow" in self.name
        return _CONFOUNDED.get(self.dataset, "") if redi else ""

    @property
    def off_protocol(self) -> str:
        """Why the printed value does not follow the protocol that it is listed under; empty if it does."""
        return "" if self.dataset in _FOLLOWED else self.confounded

    @property
    def remaining(self) -> list[str]:
        """What of our networks and sampling differs from the authors' release, and concerns this value."""
        return [
            entry["text"]
            for entry in _REMAINING
            if self.nfe and self.dataset in entry["datasets"] and entry.get("method") in (None, self.method)
        ]


def parse_name(name: str) -> str | None:
    """The paper's name of a method in the grammar of this workflow; None if there is no such method.

    The forward velocity, which is no method of an experiment, is called `forward`.
    """
    if name == "forward velocity":
        return "forward"
    match = _METHOD.fullmatch(name)
    if match is None or match["base"] not in _BASES:
        return None
    subsets = f"-sub{match['subsets']}" if match["subsets"] else ""
    rounds = int(match["rounds"] or 0) * "+redi"
    return f"{_BASES[match['base']]}{subsets}{match['distillations'].lower()}{rounds}"


@cache
def printed() -> tuple[Printed, ...]:
    """All values, in the order of the paper's tables."""
    names = {"method": "name", "value": "text", "std": "spread"}
    with _FILE.open(newline="", encoding="utf-8") as file:
        rows = [{names.get(key, key): text for key, text in row.items()} for row in csv.DictReader(file)]
    return tuple(Printed(nfe=int(nfe) if (nfe := row.pop("nfe")) else None, **row) for row in rows)


def tables() -> dict[str, list[Printed]]:
    """Table -> its values."""
    return {table: list(values) for table, values in groupby(printed(), key=attrgetter("table"))}


def best(values: Iterable[Printed]) -> set[Printed]:
    """The best of values that compare, by what is printed; none of a single one, or without a direction."""
    values = [value for value in values if value.nfe is not None]
    if len(values) < 2 or not values[0].better:
        return set()
    pick = max if values[0].better == "higher" else min
    top = pick(value.value for value in values)
    return {value for value in values if value.value == top}
