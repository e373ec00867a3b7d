"""Makes the page of one experiment: one HTML file that opens offline."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import pandas as pd
import yaml

from pairflow.kinds import page_of
from pairflow.pairing.bound import least_distance
from pairflow.report import figures
from pairflow.report.contents import Contents
from pairflow.report.drawing import Picture, key, legend
from pairflow.report.experiment import sheets
from pairflow.report.experiment.quality import EvaluationBlock, evaluation_blocks
from pairflow.report.experiment.summary import write_summary
from pairflow.report.headline import find_cautions, make_headline
from pairflow.report.kind_page import KindPage
from pairflow.report.stats import REPETITIONS, SIGNIFICANCE
from pairflow.report.templates import make_environment, scripts
from pairflow.report.words import is_paired, join_words, name_distillation, name_file


class Parts(TypedDict):
    """The parts of the page that have figures, by the names that the template gives them."""

    page: KindPage
    drawn: Mapping[str, object]
    blocks: list[EvaluationBlock]
    coupling: Mapping[str, object] | None
    training: Mapping[str, object] | None


def draw(contents: Contents) -> Parts:
    """Draw the figures of the page. Returns the parts of the page that have figures."""
    page = page_of(contents.experiment)
    return {
        "page": page,
        "drawn": page.draw(contents),
        "blocks": evaluation_blocks(contents),
        "coupling": _draw_coupling(contents),
        "training": _draw_training(contents),
    }


def render(contents: Contents, parts: Parts | None = None) -> str:
    """Write the whole page as HTML. It loads nothing, and is complete without its scripts.

    `parts` is the result of `draw`; None calls `draw`.
    """
    experiment = contents.experiment
    environment = make_environment(metrics=experiment.data.list_metrics())
    parts = parts or draw(contents)
    blocks, correlation = parts["blocks"], _read_correlation(contents)
    headline = make_headline(contents)
    costs = _step_costs(contents.timings, contents.methods)
    return environment.get_template("experiment/template.html").render(
        **parts,
        scripts=scripts(),
        contents=contents,
        part={"rows": {}, "pairs": {}, **contents.part},
        experiment=experiment,
        provenance=contents.provenance,
        headline=headline,
        cautions=find_cautions(headline, contents) if headline else [],
        summary=write_summary(contents),
        leading=min(
            blocks, key=lambda block: not headline or block.name != headline.evaluation, default=None
        ),
        winner=headline.best.method if headline else "",
        configuration=yaml.safe_dump(
            experiment.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100
        ),
        seed=experiment.seeds[0],
        costs=costs,
        significance=SIGNIFICANCE,
        repetitions=REPETITIONS,
        correlation=correlation,
        sheets=sheets.list_sheets(contents, headline, blocks, correlation, costs),
    )


def _draw_coupling(contents: Contents) -> dict[str, object] | None:
    if not contents.distances:
        return None
    length, size = contents.data["length"], contents.data["vocabulary_size"]
    keys, uniform = legend(contents.distances, "coupling"), contents.experiment.noise == "uniform"
    if uniform:
        keys.append((key(figures.INDEPENDENT, "coupling-independent"), "independent sources, expected"))
    return {
        "legend": keys,
        "picture": figures.distances(contents.distances, size if uniform else None, "coupling-distances"),
        "means": {name: contents.couplings[name]["hamming_mean"] for name in contents.distances},
        "expected": contents.independent_distance,
        "nearest": max(values.get("hamming_nearest", 0.0) for values in contents.couplings.values()),
        "least": least_distance(contents.data["training_rows"], length, size),
    }


def _read_correlation(contents: Contents) -> sheets.CorrelationPart | None:
    """Return the total correlation of each method, its standard error, and the ceiling that methods share;
    None if it was not measured."""
    settings = contents.experiment.correlation
    metrics = {
        name: contents.correlations[name] for name in contents.methods if name in contents.correlations
    }
    if not metrics or settings is None:
        return None
    return {
        "rows": {
            name: (own["total_correlation"], own["total_correlation_se"]) for name, own in metrics.items()
        },
        "ceiling": next(iter(metrics.values()))["total_correlation_ceiling"],
        "bits": math.log2(settings.samples),
        "sources": settings.sources,
    }


def _draw_training(contents: Contents) -> dict[str, object] | None:
    """Draw the training curves: a chart of the bases, and one for each kind of distillation. Returns them
    with what the template says of them; None if nothing was logged."""
    labels = {"loss": "training loss per token", "validation_nll": "validation NLL per token (nats)"}
    logs = contents.logs
    pictures: dict[str, Picture] = {}
    for column, label in labels.items():
        logged = [method for method, log in logs.items() if figures.has_values(log, column)]
        for kind in dict.fromkeys(map(name_distillation, logged)):
            part = {method: logs[method] for method in logged if name_distillation(method) == kind}
            text = f"{kind}: {label}" if kind else label
            name = f"{kind} {column}".strip()
            pictures[name] = figures.curves(part, column, text, f"training-{name_file(name)}")
    if not pictures:
        return None
    paired = [method for method in logs if is_paired(method)]
    return {
        "legend": legend(logs, "training"),
        "pictures": pictures,
        "distilled": any(map(name_distillation, logs)),
        "validated": any("validation_nll" in name for name in pictures),
        "paired": join_words(paired) if paired else "",
    }


def _step_costs(timings: pd.DataFrame, methods: Sequence[str]) -> list[dict[str, Any]]:
    """Sum up the jobs by step, method and device, in the order of the workflow.

    A record has the number of jobs (`runs`), the sum of their seconds, their largest memory (MiB), and its
    `share`: its seconds relative to the longest record's.
    """
    if timings.empty:
        return []
    keys = ["step", "method", "device"]
    jobs = timings.fillna({"method": "", "device": ""}).groupby(keys)
    totals = jobs.agg(runs=("seconds", "size"), memory=("peak_memory_mb", "max"))
    totals = totals.assign(seconds=jobs["seconds"].sum(min_count=1)).reset_index()
    totals["share"] = np.nan_to_num(totals.seconds / (totals.seconds.max() or 1))
    order = {name: index for index, name in enumerate([*timings.step.unique(), "", *methods])}
    ordered = totals.sort_values(keys[:2], key=lambda names: names.map(order), kind="stable")
    return [{str(key): value for key, value in row.items()} for row in ordered.to_dict("records")]
