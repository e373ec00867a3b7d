"""Everything of an experiment to metrics.parquet, timings.parquet, report.html and figures/."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd
import pyarrow as pa

from pairflow.artifacts import (
    Metadata,
    Provenance,
    as_metrics,
    atomic,
    atomic_folder,
    digest,
    read_provenance,
    read_table,
    token_array,
    write_table,
)
from pairflow.config import Experiment, Settings
from pairflow.errors import InputError
from pairflow.plan import lineage, paths
from pairflow.plan.jobs import jobs
from pairflow.report.experiment import pictures
from pairflow.steps.command import out, step

if TYPE_CHECKING:
    from pairflow.report.experiment.contents import Contents

_UNTIMED = ("diagnose", "report")
_TIMINGS = {
    "step": "string",
    "method": "string",
    "seed": "Int64",
    "evaluation": "string",
    "nfe": "Int64",
    "seconds": "float64",
    "device_seconds": "float64",
    "samples_seen": "Int64",
    "peak_memory_mb": "float64",
    "device": "string",
    "machine": "string",
    "date": "string",
}


@step(Experiment)
@click.option(
    "--root", type=click.Path(path_type=Path), required=True, help="Its folder, results/<experiment>."
)
@out("--metrics", help="All metric rows, Parquet.")
@out("--timings", help="Seconds, memory and device of every job, Parquet.")
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for the page's figures, each as PDF, and as SVG or, of images, PNG. It is replaced.",
)
@out("--out", help="The page, HTML.")
def main(settings: Experiment, root: Path, metrics: Path, timings: Path, figures: Path, out: Path):
    """Gather an experiment's metric rows and timings over its seeds, and write its page and its figures.

    A figure's file has its name from what it shows: main-valid.pdf is the metric `valid` of the evaluation
    `main`.
    """
    from pairflow.report.experiment import files
    from pairflow.report.experiment.page import draw, render

    provenance = Provenance()
    inputs = paths.report_inputs(root, settings)
    frames = [_metrics(root, settings), _coupling_metrics(root, settings), *_correlations(root, settings)]
    frames += _floors(root, settings)
    lineage.require(root, settings)
    rows = pd.concat(frames, ignore_index=True)
    times = _timings(root, settings)
    contents = _contents(root, settings, rows, times)
    parts = draw(contents)
    page = render(contents, parts)
    made = Metadata(
        kind="metrics",
        parameters=settings.model_dump(mode="json"),
        inputs={
            str(path.relative_to(root)): digest(path)
            for kind in ("metrics", "couplings", "correlations", "floors")
            for path in inputs.get(kind, [])
        },
    )
    with (
        atomic(metrics, timings, out) as [new_metrics, new_timings, new_page],
        atomic_folder(figures) as new_figures,
    ):
        write_table(new_metrics, rows, made)
        write_table(new_timings, times, Metadata(kind="timings", inputs={"metrics": digest(new_metrics)}))
        new_page.write_text(page, encoding="utf-8")
        files.save(parts, new_figures)
    provenance.write(out)


def _metrics(root: Path, experiment: Experiment) -> pd.DataFrame:
    """All metric rows; a file that another configuration made is refused by name."""
    frames = []
    for run in paths.runs(experiment):
        settings = experiment.sample_settings(run.evaluation, run.nfe, run.seed)
        frames.append(_rows_made_with(paths.metrics(root, run), run.method, settings))
    return pd.concat(frames, ignore_index=True)


def _correlations(root: Path, experiment: Experiment) -> list[pd.DataFrame]:
    """Rows of the methods' total correlations, where the experiment asks for them."""
    return [
        _rows_made_with(paths.correlation(root, seed, name), name, experiment.correlate_settings(seed))
        for seed in experiment.seeds
        for name in experiment.correlated()
    ]


def _floors(root: Path, experiment: Experiment) -> list[pd.DataFrame]:
    """Rows of real images against real images; none of molecules."""
    if experiment.modality != "images":
        return []
    return [
        read_table(path, "metrics")[0].to_pandas() for path in paths.report_inputs(root, experiment)["floors"]
    ]


def _rows_made_with(path: Path, method: str, settings: Settings) -> pd.DataFrame:
    """The metric rows of a file; InputError if another method or other settings made it."""
    return _made_with(path, "metrics", method, settings).to_pandas()


def _made_with(path: Path, kind: str, method: str, settings: Settings) -> pa.Table:
    table, metadata = read_table(path, kind)
    for key, value in {"method": method, **settings.model_dump(mode="json")}.items():
        found = metadata.parameters.get(key)
        if found != value:
            raise InputError(
                f"{path}: from another configuration, {key} is {found} there and {value} in the configuration"
            )
    return table


def _coupling_metrics(root: Path, experiment: Experiment) -> pd.DataFrame:
    """Rows of the couplings, and of the forward velocity's coverage where the experiment asks for it."""
    files = paths.report_inputs(root, experiment)["couplings"]
    frames = [read_table(path, "metrics")[0].to_pandas() for path in files]
    return (
        pd.concat(frames, ignore_index=True)
        if frames
        else as_metrics(pd.DataFrame(columns=["metric", "value"]))
    )


def _timings(root: Path, experiment: Experiment) -> pd.DataFrame:
    """A row per job, from the provenance beside its first output."""
    rows = [
        {
            **read_provenance(job.record),
            "step": job.rule,
            **{key: getattr(job, key) for key in ("method", "seed", "evaluation", "nfe")},
        }
        for job in jobs(root, experiment)
        if job.rule not in _UNTIMED
    ]
    return pd.DataFrame(rows).reindex(columns=list(_TIMINGS)).astype(_TIMINGS)


def _contents(root: Path, experiment: Experiment, metrics: pd.DataFrame, timings: pd.DataFrame) -> "Contents":
    from pairflow.report.experiment.contents import Contents

    seed = experiment.seeds[0]
    methods = experiment.methods
    provenance = read_provenance(paths.model(root, seed, methods[-1]) / "model.safetensors")
    logs = {name: paths.model(root, seed, name) / "log.parquet" for name in methods}
    show = pictures.contents if experiment.modality == "images" else _molecules
    return Contents(
        experiment=root.name,
        settings=experiment.model_dump(mode="json"),
        metrics=metrics[metrics["evaluation"].isin(experiment.evaluations)],
        couplings=_by_method(metrics[metrics["evaluation"].isin(["coupling", "coverage"])], seed),
        correlations=_by_method(metrics[metrics["evaluation"] == "correlation"], seed),
        timings=timings,
        provenance={**provenance, "command": _command(root)},
        data=_data(root, experiment),
        training_logs={name: read_table(path, "training log")[0].to_pandas() for name, path in logs.items()},
        **show(root, experiment, _samples(root, experiment)),
    )


def _command(root: Path) -> str:
    """What makes the page again, as a shell takes it."""
    return f"snakemake --cores all -- {shlex.quote(f'{root.as_posix()}/report.html')}"


def _data(root: Path, experiment: Experiment) -> dict[str, Any]:
    train, metadata = read_table(paths.data(root, "train.parquet"), "tokens")
    facts = {
        "training_rows": len(train),
        "validation_rows": len(read_table(paths.data(root, "validation.parquet"), "tokens")[0]),
        "length": metadata.length,
        "vocabulary_size": metadata.vocabulary_size,
    }
    if experiment.modality == "images":
        return {**facts, "shape": metadata.shape, "partial": metadata.parameters["partial"]}
    return {
        **facts,
        "rejected_rows": len(read_table(paths.data(root, "rejected.parquet"), "rejected rows")[0]),
        "reference_rows": len(read_table(paths.data(root, "smiles.parquet"), "smiles")[0]),
    }


def _by_method(metrics: pd.DataFrame, seed: int) -> dict[str, dict[str, float]]:
    """Method, coupling, or `forward` for the coverage -> its metrics, of one seed."""
    return {
        str(method): dict(zip(group["metric"], group["value"], strict=True))
        for method, group in metrics[metrics["seed"] == seed].groupby("method", sort=False)
    }


def _samples(root: Path, experiment: Experiment) -> dict[str, dict[int, np.ndarray]]:
    """Token rows of the first seed's and evaluation's first trial, at the lowest and the highest NFE."""
    most = pictures.SAMPLES if experiment.modality == "images" else None
    first = next(iter(experiment.evaluations))
    samples: dict[str, dict[int, np.ndarray]] = {name: {} for name in experiment.methods}
    for run in paths.runs(experiment):
        if (run.seed, run.evaluation) != (experiment.seeds[0], first):
            continue
        if run.nfe in paths.shown_nfe(experiment, run):
            settings = experiment.sample_settings(run.evaluation, run.nfe, run.seed)
            table = _made_with(paths.samples(root, run), "samples", run.method, settings)
            tokens = token_array(table["tokens"])
            samples[run.method][run.nfe] = tokens[table["trial"].to_numpy() == 0][:most]
    return samples


def _molecules(
    root: Path, experiment: Experiment, samples: dict[str, dict[int, np.ndarray]]
) -> dict[str, Any]:
    """The samples as SMILES, and the histograms of properties at the lowest and the highest NFE."""
    from pairflow.data.molecules import Vocabulary

    words = Vocabulary.load(paths.data(root, "vocabulary.json"))
    decoded = {
        method: {nfe: [words.decode(row) for row in tokens] for nfe, tokens in each.items()}
        for method, each in samples.items()
    }
    properties: dict[str, dict[int, dict[str, pd.DataFrame]]] = {}
    for run in paths.runs(experiment):
        if run.nfe in paths.shown_nfe(experiment, run):
            table, _ = read_table(paths.properties(root, run), "property histograms")
            at_nfe = properties.setdefault(run.evaluation, {}).setdefault(run.nfe, {})
            at_nfe[run.method] = _added(at_nfe.get(run.method), table.to_pandas())
    return {"samples": decoded, "properties": properties}


def _added(before: pd.DataFrame | None, counts: pd.DataFrame) -> pd.DataFrame:
    """Histograms of another seed's samples on top of those before; the training molecules are the same."""
    return counts if before is None else before.assign(samples=before["samples"] + counts["samples"])


if __name__ == "__main__":
    main()
