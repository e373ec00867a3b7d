"""The measured value that belongs to a printed one."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.paper.printed import MINUTES, Printed
from benchmarks.paper.protocol import differences, name_data, protocols, settings_of_model
from benchmarks.paper.verdicts import SEEDS
from pairflow.config import parse_method
from pairflow.report.results import FinishedExperiment
from pairflow.report.stats import Estimate, estimate, group_by_seed
from pairflow.report.words import format_number, pluralise

_WORK = {"base": ("train",), "DCD": ("distill",), "ReDi": ("teach", "distill"), "PairFlow": ("pair",)}
_WORKERS = {"base": "udlm", "DCD": "udlm+dcd", "ReDi": "udlm+redi", "PairFlow": "pairflow"}


class MetricSource(NamedTuple):
    """Metric rows that a value may come from, and why it then does not compare as a number (empty: it does).

    `extractor` is how the extractor's name begins; `unit` is what one of ours is in the printed unit.
    `protocol` names the protocol's evaluation; `evaluation` the rows', where they are of no evaluation's
    samples. `unstated` is what the value depends on and the paper does not state.
    """

    metric: str
    reference: str = ""
    extractor: str = ""
    evaluation: str = ""
    protocol: str = "main"
    unit: float = 1.0
    reason: str = ""
    unstated: str = ""


_NOT_FID = "not FID"
_WEIGHTS = "the paper’s weights are not known"
_FORWARD_STEPS = "number of forward steps"
_UNIT = "unit of the nearest-neighbour distance"  # ours has grey levels from 0 to 255
_KINDS = {"fd": "FD", "nn_cosine": "cosine", "judge_ppl": "perplexity"}
SOURCES = {
    **{name: (MetricSource(name),) for name in ("valid", "unique", "novel", "is")},
    "fid": (MetricSource("fid", "train", "inception"), MetricSource("fd", "train", reason=_NOT_FID)),
    "fid_test": (MetricSource("fid", "test", "inception"), MetricSource("fd", "test", reason=_NOT_FID)),
    "fid_50k": (MetricSource("fid", "train", "inception", protocol="check"),),
    "is_50k": (MetricSource("is", protocol="check"),),
    "fid_dinov2_test": (MetricSource("fd", "test", "dinov2", reason=_WEIGHTS),),
    "nn_l2_train": (MetricSource("nn_l2", "train", unit=1 / 255, unstated=_UNIT),),
    "nn_cosine_dinov2_train": (MetricSource("nn_cosine", "train", "dinov2", reason=_WEIGHTS),),
    "generative_perplexity": (
        MetricSource("gen_ppl"),
        MetricSource("judge_ppl", extractor="kneser-ney", reason="not GPT-2 large"),
    ),
    "entropy": (MetricSource("entropy"),),
    "total_correlation": (MetricSource("total_correlation", evaluation="correlation"),),
    "unique_reached": (MetricSource("unique_reached", evaluation="coverage", unstated=_FORWARD_STEPS),),
    "coverage": (MetricSource("coverage", evaluation="coverage", unit=100, unstated=_FORWARD_STEPS),),
    "coverage_predicted": (MetricSource("coverage_predicted", evaluation="coverage", unit=100),),
}


def _first(texts: list[str]) -> str:
    """The first text, and how many follow it."""
    return texts[0] if len(texts) == 1 else f"{texts[0]}, and {len(texts) - 1} more"


@dataclass(frozen=True)
class Measured:
    """A measured value in the printed unit.

    `origin` identifies the rows that it comes from: values of one origin compare. `reason` says why it is not
    judged as a number. `kind` names it where it is not what is printed, such as a Fréchet distance other than
    FID. `apart`: it is of another kind or scale than the printed one, so that not even their difference is
    shown. `beside` is what to read it with.
    """

    estimate: Estimate
    origin: tuple
    reason: str = ""
    kind: str = ""
    apart: bool = False
    beside: str = ""


@dataclass(frozen=True, eq=False)
class Measurements:
    """The values that a finished experiment has for the paper's tables."""

    run: FinishedExperiment

    def find(self, printed: Printed) -> Measured | None:
        """What was measured where the paper has a printed value; None where nothing was."""
        if printed.dataset != name_data(self.run.experiment):
            return None
        if printed.metric in MINUTES:
            return self._minutes(printed)
        for source in SOURCES.get(printed.metric, ()) if printed.method else ():
            if candidate := next(self._candidates(source, printed), None):
                return self._measured(*candidate, source, printed)
        return None

    def _measured(
        self, origin: tuple, rows: pd.DataFrame, source: MetricSource, printed: Printed
    ) -> Measured:
        own, seeds = estimate(group_by_seed(rows)), rows.seed.nunique()
        others = self._differences(origin[0], source, printed)
        kind = f"{_KINDS[source.metric]} by {origin[-1]}, {source.reason}" if source.reason else ""
        unstated = source.unstated or protocols()[printed.dataset].unstated
        reasons = [
            (bool(kind), kind),
            (self.run.experiment.scale != "paper", "reduced scale"),
            (bool(others), _first(others) if others else ""),
            (bool(printed.off_protocol), f"confounded: {printed.off_protocol}"),
            (bool(unstated), f"unstated: the paper does not say its {unstated}"),
            (seeds < SEEDS, f"{pluralise(seeds, 'training seed')}, {SEEDS} are needed"),
        ]
        return Measured(
            Estimate(own.mean * source.unit, own.variance * source.unit**2, own.count),
            origin,
            reason=next((text for holds, text in reasons if holds), ""),
            kind=kind,
            apart=self.run.reduced or bool(kind),
            beside=self._ceiling(printed) if source.evaluation == "correlation" else "",
        )

    def _differences(self, evaluation: str, source: MetricSource, printed: Printed) -> list[str]:
        """The settings behind a value that are not the protocol's."""
        measurement = {f"evaluations.{evaluation}": f"evaluations.{self._protocol(source)}"}
        if source.evaluation:
            measurement = {"correlation": "correlation"} if source.evaluation == "correlation" else {}
        method = str(printed.method)
        base = "" if method == "forward" else parse_method(method).base
        return differences(self.run.experiment, settings_of_model(method), measurement, base)

    def _protocol(self, source: MetricSource) -> str:
        """The protocol's evaluation that a value is of: that of continuous MNIST has no check beside it."""
        evaluations = protocols()[name_data(self.run.experiment)].evaluations
        return source.protocol if source.protocol in evaluations else "main"

    def _ceiling(self, printed: Printed) -> str:
        """What the total correlation is of unrelated rows of the data, by the same estimate."""
        rows = self._rows.get(("correlation", "total_correlation_ceiling", printed.method, printed.nfe or 0))
        return "" if rows is None else f"ceiling {format_number(rows.value.mean(), printed.digits)}"

    def _candidates(self, source: MetricSource, printed: Printed) -> Iterator[tuple[tuple, pd.DataFrame]]:
        """Origin and rows that fit; the evaluations with the protocol's number of samples first."""
        wanted = protocols()[name_data(self.run.experiment)].evaluations[self._protocol(source)].samples
        samples = {name: settings.samples for name, settings in self.run.experiment.evaluations.items()}
        names = sorted(samples, key=lambda name: samples[name] != wanted)
        for name in [source.evaluation] if source.evaluation else names:
            key = (name, source.metric, printed.method, printed.nfe or 0)
            groups = self._rows[key].groupby(["reference", "extractor"]) if key in self._rows else ()
            for (reference, extractor), rows in groups:
                if source.reference in ("", reference) and extractor.startswith(source.extractor):
                    yield (name, source.metric, reference, extractor), rows

    @cached_property
    def _rows(self) -> dict[tuple, pd.DataFrame]:
        """(evaluation, metric, method, NFE or 0) -> its rows with a value."""
        rows = self.run.metrics.dropna(subset="value")
        texts = dict.fromkeys(["reference", "extractor"], "")
        rows = rows.astype(dict.fromkeys(texts, "object")).fillna({**texts, "nfe": 0})
        return dict(iter(rows.groupby(["evaluation", "metric", "method", "nfe"])))

    def _minutes(self, printed: Printed) -> Measured | None:
        """Minutes of a piece of work, mean over seeds; 0 for a pairing that a method does not have."""
        timings, reduced, reason = self.run.timings, self.run.reduced, "another machine"
        steps: tuple[str, ...] = ("pair",)
        method: str | None = None
        if printed.metric == "runtime_minutes":
            steps, method = _WORK[printed.name], _WORKERS[printed.name]
        elif printed.method:
            method = parse_method(printed.method).coupling
            if method is None and (timings.step == "pair").any():
                return Measured(Estimate(0.0), (), reason, apart=reduced)
        jobs = timings[timings.step.isin(steps) & (timings.method == method)]
        seconds = jobs.groupby("seed")["seconds"].sum(min_count=len(steps)).mean()
        if not np.isfinite(seconds):
            return None
        devices = " and ".join(jobs.device.dropna().unique())
        return Measured(Estimate(float(seconds) / 60), (), f"{reason} ({devices})", apart=reduced)
