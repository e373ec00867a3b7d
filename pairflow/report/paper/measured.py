"""A finished experiment, and the measured value that belongs to a printed one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pairflow.config import parse_method
from pairflow.report.paper.printed import Printed
from pairflow.report.paper.verdicts import SEEDS, Estimate, estimate

_SAMPLES = {"qm9": 1024, "zinc250k": 1024, "mnist_binary": 1000, "cifar10": 5000}
_CHECK = 50_000
_STATES = 20_000 * 10  # source states x samples each
_KEYS = ["evaluation", "metric", "method", "nfe", "reference", "extractor"]
_WORK = {"base": ("train",), "DCD": ("distill",), "ReDi": ("teach", "distill"), "PairFlow": ("pair",)}
_WORKERS = {"base": "udlm", "DCD": "udlm+dcd", "ReDi": "udlm+redi", "PairFlow": "pairflow"}
MINUTES = ("pairing_minutes", "runtime_minutes")


class Source(NamedTuple):
    """Where a value may come from, and why it is then not comparable as a number (empty: it is).

    `extractor` is how the extractor's name begins; `unit` is what one of ours is in the printed unit.
    """

    metric: str
    reference: str = ""
    extractor: str = ""
    evaluation: str = ""
    samples: int | None = None
    unit: float = 1.0
    reason: str = ""


_NOT_FID = "not FID"
_WEIGHTS = "the paper’s weights are not known"
_KINDS = {"fd": "FD", "nn_cosine": "cosine"}
_SOURCES = {
    **{name: (Source(name),) for name in ("valid", "unique", "novel", "is")},
    "fid": (Source("fid", "train", "inception"), Source("fd", "train", reason=_NOT_FID)),
    "fid_test": (Source("fid", "test", "inception"), Source("fd", "test", reason=_NOT_FID)),
    "fid_50k": (Source("fid", "train", "inception", samples=_CHECK),),
    "is_50k": (Source("is", samples=_CHECK),),
    "fid_dinov2_test": (Source("fd", "test", "dinov2", reason=_WEIGHTS),),
    "nn_l2_train": (Source("nn_l2", "train", unit=1 / 255),),
    "nn_cosine_dinov2_train": (Source("nn_cosine", "train", "dinov2", reason=_WEIGHTS),),
    "total_correlation": (Source("total_correlation", evaluation="correlation", samples=_STATES),),
    "unique_reached": (Source("unique_reached", evaluation="coverage"),),
    "coverage": (Source("coverage", evaluation="coverage", unit=100),),
    "coverage_predicted": (Source("coverage_predicted", evaluation="coverage", unit=100),),
}


@dataclass(frozen=True)
class Measured:
    """A measured value in the printed unit; `of` is what it was made of, `reason` why no number is judged.

    `kind` names it where it is not what is printed, such as another Fréchet distance than FID. `apart`: it is
    of another kind or scale than the printed one, so that not even their difference is shown.
    """

    estimate: Estimate
    of: tuple
    reason: str = ""
    kind: str = ""
    apart: bool = False


@dataclass(frozen=True, eq=False)
class Run:
    """A finished experiment: its name, settings, metric rows and timings, as in `Contents`.

    `provenance` has the date and the commit of its report, if they are known.
    """

    name: str
    settings: Mapping[str, Any]
    metrics: pd.DataFrame
    timings: pd.DataFrame
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dataset(self) -> str:
        return self.settings["data"]["source"]

    @property
    def seeds(self) -> int:
        return len(self.settings["seeds"])

    @property
    def reduced(self) -> bool:
        """Whether its numbers are not the paper's by their scale or by a part of the data left out."""
        data = self.settings["data"]
        part = data["training_rows"] is not None or data.get("max_heavy_atoms") is not None
        return self.settings["scale"] != "paper" or part

    @property
    def scale(self) -> str:
        return "reduced scale" if self.reduced else "paper’s scale"

    def measured(self, printed: Printed) -> Measured | None:
        """What was measured where the paper has a printed value; None where nothing was."""
        if printed.dataset != self.dataset:
            return None
        if printed.metric in MINUTES:
            return self._minutes(printed)
        for source in _SOURCES.get(printed.metric, ()) if printed.method else ():
            for of, rows in self._candidates(source, printed):
                rows = rows.dropna(subset="value")
                if len(rows):
                    return self._measured(rows, of, source, printed)
        return None

    def _measured(self, rows: pd.DataFrame, of: tuple, source: Source, printed: Printed) -> Measured:
        found, seeds, samples = estimate(rows), rows.seed.nunique(), int(rows.samples.max())
        wanted = source.samples or (samples if source.evaluation else _SAMPLES[self.dataset])
        kind = f"{_KINDS[source.metric]} by {of[-1]}, {source.reason}" if source.reason else ""
        reasons = [
            (bool(kind), kind),
            (self.reduced, "reduced scale"),
            (bool(printed.confounded), f"confounded: {printed.confounded}"),
            (samples != wanted, f"{samples:,} samples, the paper has {wanted:,}"),
            (seeds < SEEDS, f"{seeds} training seed{'s' * (seeds > 1)}, {SEEDS} are needed"),
        ]
        return Measured(
            Estimate(found.mean * source.unit, found.variance * source.unit**2, found.count),
            of,
            reason=next((text for holds, text in reasons if holds), ""),
            kind=kind,
            apart=self.reduced or bool(kind),
        )

    def _candidates(self, source: Source, printed: Printed) -> Iterator[tuple[tuple, pd.DataFrame]]:
        """What rows that fit are made of, and the rows; those with the protocol's number of samples first."""
        wanted = source.samples or _SAMPLES[self.dataset]
        samples = {name: each["samples"] for name, each in self.settings["evaluations"].items()}
        names = sorted(samples, key=lambda name: samples[name] != wanted)
        if source.samples:
            names = [name for name in names if samples[name] == wanted]
        for name in [source.evaluation] if source.evaluation else names:
            key = (name, source.metric, printed.method, printed.nfe or 0)
            for (reference, extractor), rows in self._groups.get(key, {}).items():
                if source.reference in ("", reference) and extractor.startswith(source.extractor):
                    yield (name, source.metric, reference, extractor), rows

    @cached_property
    def _groups(self) -> dict[tuple, dict[tuple[str, str], pd.DataFrame]]:
        """(evaluation, metric, method, NFE or 0) -> (reference, extractor) -> rows, which compare."""
        rows = self.metrics[self.metrics.evaluation != "coupling"]
        texts = dict.fromkeys(["reference", "extractor"], "")
        rows = rows.astype(dict.fromkeys(texts, "object")).fillna({**texts, "nfe": 0})
        found: dict[tuple, dict[tuple[str, str], pd.DataFrame]] = {}
        for key, group in rows.groupby(_KEYS, sort=True):
            found.setdefault(key[:4], {})[key[4:]] = group
        return found

    def _minutes(self, printed: Printed) -> Measured | None:
        """Minutes of a piece of work, mean over seeds; 0 for a pairing that a method does not have."""
        reason = "another machine"
        if printed.metric == "runtime_minutes":
            steps, method = _WORK[printed.name], _WORKERS[printed.name]
        else:
            steps, method = ("pair",), parse_method(printed.method).coupling
            if method is None and (self.timings.step == "pair").any():
                return Measured(Estimate(0.0), (), reason, apart=self.reduced)
        jobs = self.timings[self.timings.step.isin(steps) & (self.timings.method == method)]
        seconds = jobs.groupby("seed")["seconds"].sum(min_count=len(steps)).mean()
        if not np.isfinite(seconds):
            return None
        devices = " and ".join(jobs.device.dropna().unique())
        return Measured(Estimate(float(seconds) / 60), (), f"{reason} ({devices})", apart=self.reduced)
