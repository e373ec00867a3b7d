"""The page: one HTML file that opens offline. The template escapes all data and configuration."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd
import yaml
from markupsafe import Markup

from pairflow.report import downloads, figures, interactive
from pairflow.report.experiment import images, molecules
from pairflow.report.experiment.contents import Contents
from pairflow.report.experiment.cost import TrainingCost, distillation, training_costs
from pairflow.report.experiment.quality import blocks
from pairflow.report.experiment.summary import sentences
from pairflow.report.legends import legend
from pairflow.report.scripts import scripts

_FOLDER = Path(__file__).parent.parent
_SHOWN = 12  # molecules of a gallery
_UNFOLDED = 4  # galleries that are open from the start
_STEPS = (
    *("preprocess", "pair", "cover", "train", "teach", "distill", "sample"),
    *("classify", "reference", "floor", "describe_molecules", "chemnet", "evaluate", "correlate"),
)


def environment() -> jinja2.Environment:
    """Templates of this folder, which escape everything, and the filters that they use."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "duration": duration,
        "percent": percent,
        "count": count,
        "breakable": breakable,
        "embedded": interactive.embedded,
        "sort_keys": downloads.sort_keys,
    }
    return environment


def draw(contents: Contents) -> dict[str, Any]:
    """The parts of the page that have figures, by the names that the template gives them."""
    return {
        "blocks": blocks(contents),
        "grids": _grids(contents),
        "pairs": {name: images.pairs(*found, name) for name, found in contents.pairs.items()},
        "neighbours": _neighbours(contents),
        "coupling": _coupling(contents),
        "correlation": _correlation(contents),
        "training": _training(contents),
    }


def render(contents: Contents, parts: Mapping[str, Any] | None = None) -> str:
    """The whole report as HTML: nothing is fetched, and without its scripts all is there to read.

    `parts`: what `draw` has drawn.
    """
    template = environment().get_template("experiment/template.html")
    parts = parts or draw(contents)
    costs = _costs(contents.timings, contents.methods)
    trainings = training_costs(contents.timings, contents.settings)
    return template.render(
        scripts=scripts(bool(parts["training"]) or any(block.plots for block in parts["blocks"])),
        contents=contents,
        is_images=contents.modality == "images",
        settings=contents.settings,
        provenance=contents.provenance,
        summary=sentences(contents),
        facts=_facts(contents),
        configuration=yaml.safe_dump(contents.settings, sort_keys=False, allow_unicode=True, width=100),
        **parts,
        galleries=_galleries(contents),
        shown=_SHOWN,
        unfolded=_UNFOLDED,
        seed=contents.settings["seeds"][0],
        training_costs=trainings,
        costs=costs,
        results_sheet=partial(downloads.results, contents),
        correlation_sheet=partial(downloads.correlation, contents),
        training_sheet=partial(_training_sheet, contents, trainings),
        cost_sheet=partial(_cost_sheet, contents, costs),
    )


@dataclass(frozen=True)
class Cost:
    """Runs of one step, method and device: seconds in all, largest memory (MiB), share of the longest."""

    step: str
    method: str
    device: str
    runs: int
    seconds: float
    memory: float
    share: float

    @property
    def duration(self) -> str:
        return duration(self.seconds)


def duration(seconds: float) -> str:
    """Seconds as a reader says them: `0.8 s`, `45 s`, `3 min 20 s`, `2 h 05 min`; NaN is a dash."""
    if np.isnan(seconds):
        return "–"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"


def percent(share: float) -> str:
    """A share as `2.67 %`, or from a tenth on as `26.7 %`; NaN is a dash."""
    return "–" if np.isnan(share) else f"{100 * share:,.{1 if share >= 0.1 else 2}f} %"


def count(number: float) -> str:
    """A rounded number with commas; NaN is a dash."""
    return "–" if np.isnan(number) else f"{number:,.0f}"


def breakable(method: str) -> Markup:
    """A method's name that a narrow table may break before its distillations."""
    return Markup("<wbr>+").join(method.split("+"))


def _facts(contents: Contents) -> list[tuple[str, str]]:
    """What was run, as terms and values."""
    settings, data = contents.settings, contents.data
    network, training = dict(settings["network"]), settings["training"]
    architecture = network.pop("name")
    evaluations = (
        f"{name}: {each['samples']:,} samples × {each['trials']} trials at NFE {_comma(each['nfe'])}"
        + (f" of {_comma(each['methods'])}" if each.get("methods") else "")
        for name, each in settings["evaluations"].items()
    )
    return [
        ("Data set", str(settings["data"]["source"])),
        *(_image_facts(data) if contents.modality == "images" else _molecule_facts(data)),
        ("Network", f"{architecture} ({_pairs(network)})"),
        ("Loss", str(training["loss"])),
        ("Training", f"{training['iterations']:,} iterations of {training['batch_size']:,} rows"),
        ("Learning rate", f"{training['learning_rate']:g}, {training['decay']}"),
        ("Pairing steps T", f"{settings['pairing']['steps']:,}"),
        ("Methods", _comma(settings["methods"])),
        ("Seeds", _comma(settings["seeds"])),
        ("Evaluation", "; ".join(evaluations)),
        ("Machine", str(contents.provenance["machine"])),
        ("Versions", _pairs(contents.provenance["versions"])),
    ]


def _molecule_facts(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        ("Training rows", f"{data['training_rows']:,}"),
        ("Validation rows", f"{data['validation_rows']:,}"),
        ("Rejected rows", f"{data['rejected_rows']:,}"),
        ("Reference for novelty", f"{data['reference_rows']:,} molecules"),
        ("Length N", f"{data['length']:,} tokens"),
        ("Vocabulary K", f"{data['vocabulary_size']:,} symbols"),
    ]


def _image_facts(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    channels, height, width = data["shape"]
    return [
        ("Training images", f"{data['training_rows']:,}"),
        ("Test images", f"{data['validation_rows']:,}"),
        ("Image size", f"{width} × {height} pixels, {'grey' if channels == 1 else f'{channels} channels'}"),
        ("Length N", f"{data['length']:,} tokens"),
        ("Vocabulary K", f"{data['vocabulary_size']:,} levels"),
    ]


def _comma(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values))


def _pairs(values: Mapping[str, Any]) -> str:
    return _comma(f"{key} {value}" for key, value in values.items())


def _galleries(contents: Contents) -> dict[str, dict[int, molecules.Gallery]]:
    seed = contents.settings["seeds"][0]
    return {
        method: {
            nfe: molecules.gallery(contents.samples[method][nfe], _SHOWN, seed)
            for nfe in sorted(contents.samples[method])
        }
        for method in contents.methods
        if contents.samples.get(method)
    }


def _grids(contents: Contents) -> dict[str, dict[int, images.Png]]:
    return {
        method: {
            nfe: images.grid(found, f"{method} at {nfe} sampling step{'s' * (nfe > 1)}")
            for nfe, found in sorted(contents.images[method].items())
        }
        for method in contents.methods
        if contents.images.get(method)
    }


def _neighbours(contents: Contents) -> dict[str, list[images.Neighbour]]:
    return {
        method: images.neighbours(*contents.neighbours[method])
        for method in contents.methods
        if method in contents.neighbours
    }


def _coupling(contents: Contents) -> dict[str, Any] | None:
    if not contents.distances:
        return None
    length, size = contents.data["length"], contents.data["vocabulary_size"]
    keys = legend(contents.distances, "coupling")
    keys.add(figures.INDEPENDENT, "independent sources, expected", "coupling-independent")
    return {
        "legend": keys,
        "picture": figures.distances(contents.distances, size, "coupling-distances"),
        "jumps": figures.jumps(contents.jumps, "coupling-jumps") if contents.jumps else None,
        "jump_rows": max((values.get("jump_rows", 0) for values in contents.couplings.values()), default=0),
        "jump_sums": {name: values.sum() for name, values in contents.jumps.items()},
        "means": {name: figures.mean_distance(counts) for name, counts in contents.distances.items()},
        "expected": length * (size - 1) / size,
        "symbols": {name: contents.couplings[name] for name in contents.distances},
        "coverage": contents.couplings.get("forward"),
    }


def _correlation(contents: Contents) -> dict[str, Any] | None:
    """Total correlation and its error per method, and the ceiling, which is the same for all."""
    methods = [name for name in contents.methods if name in contents.correlations]
    if not methods:
        return None
    settings = contents.settings["correlation"]
    rows = {name: contents.correlations[name] for name in methods}
    ceiling = rows[methods[0]]["total_correlation_ceiling"]
    values = {
        name: (found["total_correlation"], found["total_correlation_se"]) for name, found in rows.items()
    }
    keys = legend(methods, "correlation")
    keys.add(figures.FLOOR, "ceiling", "correlation-ceiling")
    return {
        "rows": rows,
        "ceiling": ceiling,
        "legend": keys,
        "picture": figures.correlations(values, ceiling, "bits", "correlation-methods"),
        "bits": math.log2(settings["samples"]),
        **settings,
    }


def _training(contents: Contents) -> dict[str, Any] | None:
    """Curves of the bases, and apart from them those of each kind of distillation."""
    labels = {"loss": "training loss per token", "validation_nll": "validation NLL per token (nats)"}
    logs = {
        method: contents.training_logs[method]
        for method in contents.methods
        if method in contents.training_logs
    }
    pictures, plots = {}, []
    for column, label in labels.items():
        drawn = [method for method, log in logs.items() if figures.has_values(log, column)]
        for kind in dict.fromkeys(map(distillation, drawn)):
            part = {method: logs[method] for method in drawn if distillation(method) == kind}
            text = f"{kind}: {label}" if kind else label
            name = f"{kind} {column}".strip()
            pictures[name] = figures.curves(part, column, text, f"training{len(pictures)}")
            plots.append(interactive.curves(part, column, text))
    if not pictures:
        return None
    return {
        "legend": legend(logs, "training"),
        "pictures": pictures,
        "plots": plots,
        "distilled": any(map(distillation, logs)),
    }


def _costs(timings: pd.DataFrame, methods: list[str]) -> list[Cost]:
    """One row per step, method and device, in the order of the workflow."""
    if timings.empty:
        return []
    filled = timings.assign(method=timings.method.fillna(""), device=timings.device.fillna(""))
    groups = filled.groupby(["step", "method", "device"], sort=True)
    totals = groups.agg(
        runs=("seconds", "size"),
        seconds=("seconds", lambda seconds: seconds.sum(min_count=1)),
        memory=("peak_memory_mb", "max"),
    )
    longest = totals.seconds.max() or 1
    rows = [
        Cost(*names, runs, seconds, memory, float(np.nan_to_num(seconds / longest)))
        for names, (runs, seconds, memory) in zip(
            totals.index, totals.itertuples(index=False, name=None), strict=True
        )
    ]
    return sorted(rows, key=lambda row: (_place(row.step, _STEPS), _place(row.method, methods)))


def _training_sheet(
    contents: Contents, trainings: Mapping[str, list[TrainingCost]], title: str
) -> downloads.Sheet:
    rows = [row for each in trainings.values() for row in each]
    columns = {
        "Method": [row.method for row in rows],
        "Work": [row.work for row in rows],
        "Wall time": [duration(row.seconds) for row in rows],
        "Of base": [percent(row.share) for row in rows],
        "Device time": [duration(row.device_seconds) for row in rows],
        "Samples seen": [count(row.samples_seen) for row in rows],
        "Generated": [count(row.samples_generated) for row in rows],
        "Peak memory (MiB)": [count(row.peak_memory_mb) for row in rows],
        "Device": [row.device or "–" for row in rows],
    }
    return downloads.listing(contents, "training-cost", title, columns, [*map(asdict, rows)], "llrrrrrrl")


def _cost_sheet(contents: Contents, rows: list[Cost], title: str) -> downloads.Sheet:
    columns = {
        "Step": [row.step for row in rows],
        "Method": [row.method or "–" for row in rows],
        "Time": [row.duration for row in rows],
        "Peak memory (MiB)": [count(row.memory) for row in rows],
        "Runs": [str(row.runs) for row in rows],
        "Device": [row.device or "–" for row in rows],
    }
    return downloads.listing(contents, "cost", title, columns, [*map(asdict, rows)], "llrrrl")


def _place(name: str, order: Iterable[str]) -> int:
    """Position in an order that has the unknown ones last."""
    known = list(order)
    return known.index(name) if name in known else len(known)
