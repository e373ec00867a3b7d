"""Reads all that an experiment's page shows. `plan.lineage.require` must have checked its files before."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, as_metrics, digest, read_provenance, read_table, token_array
from pairflow.config import Experiment
from pairflow.kinds.images.page import pictures
from pairflow.kinds.text.controls import CONTROLS
from pairflow.kinds.tokens.page import spelled as tokens
from pairflow.kinds.vectors.page import clouds as vectors
from pairflow.plan import paths
from pairflow.plan.jobs import jobs, report_inputs
from pairflow.report.closing import sample_command
from pairflow.report.experiment import bounds
from pairflow.report.experiment.contents import Contents
from pairflow.report.results import read_logs
from pairflow.report.trajectory import Trajectory, follow

_EXAMPLES = 12  # training molecules
_UNTIMED = ("diagnose", "report")
_TIMINGS = {
    **{"step": "string", "method": "string", "seed": "Int64", "evaluation": "string", "nfe": "Int64"},
    **{"seconds": "float64", "device_seconds": "float64", "samples_seen": "Int64"},
    **{"peak_memory_mb": "float64", "device": "string", "machine": "string", "date": "string"},
}
_METRICS = ("metrics", "couplings", "correlations", "floors")  # kinds of inputs that hold metric rows


def read_metrics(root: Path, experiment: Experiment) -> pd.DataFrame:
    """All metric rows over the seeds: of samples, couplings, correlations, real data and logs."""
    frames = [read_table(path, "metrics")[0].to_pandas() for path in _metric_files(root, experiment)]
    if experiment.modality in bounds.BOUNDED:
        frames.append(bounds.read_bounds(root, experiment))
    return pd.concat(frames or [as_metrics(pd.DataFrame(columns=["metric", "value"]))], ignore_index=True)


def describe_metrics(root: Path, experiment: Experiment) -> Metadata:
    """Metadata of the gathered rows: the experiment, and the hashes of what they come from."""
    files = _metric_files(root, experiment)
    if experiment.modality in bounds.BOUNDED:
        files += bounds.bound_models(root, experiment).values()
    return Metadata(
        kind="metrics",
        parameters=experiment.model_dump(mode="json"),
        inputs={str(path.relative_to(root)): digest(path) for path in files},
    )


def _metric_files(root: Path, experiment: Experiment) -> list[Path]:
    inputs = report_inputs(root, experiment)
    return [path for kind in _METRICS for path in inputs.get(kind, [])]


def read_timings(root: Path, experiment: Experiment) -> pd.DataFrame:
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


def read_contents(
    root: Path, experiment: Experiment, metrics: pd.DataFrame, timings: pd.DataFrame
) -> Contents:
    """What the page shows, given its metric rows and timings."""
    seed = experiment.seeds[0]
    methods = experiment.methods
    page = f"{root.as_posix()}/report.html"
    provenance = read_provenance(paths.model(root, seed, methods[-1]) / "model.safetensors")
    readers: dict[str, Callable[[Path, Experiment, pictures.Samples], dict[str, Any]]] = {
        "molecules": _read_molecules,
        "images": pictures.read_images,
        "text": tokens.read_text,
        "tokens": tokens.read_rows,
        "vectors": vectors.read_vectors,
    }
    sampled = metrics[metrics["evaluation"].isin(experiment.evaluations)]
    return Contents(
        name=root.name,
        experiment=experiment,
        metrics=sampled[~sampled["method"].isin(CONTROLS)],
        controls=sampled[sampled["method"].isin(CONTROLS)],
        couplings=_by_method(metrics[metrics["evaluation"].isin(["coupling", "coverage"])], seed),
        correlations=_by_method(metrics[metrics["evaluation"] == "correlation"], seed),
        timings=timings,
        provenance={**provenance, "command": f"snakemake --cores all -- {shlex.quote(page)}"},
        data=_describe_data(root, experiment),
        training_logs=read_logs(root, experiment),
        bounds=bounds.mean_bounds(metrics),
        bits=bounds.mean_bounds(metrics, "bpc_bound"),
        sample_command=sample_command(root, experiment),
        trajectory=_read_trajectory(root, experiment),
        **readers[experiment.modality](root, experiment, _read_samples(root, experiment)),
    )


def _describe_data(root: Path, experiment: Experiment) -> dict[str, Any]:
    kind = "vectors" if experiment.modality == "vectors" else "tokens"
    train, metadata = read_table(paths.data(root, "train.parquet"), kind)
    shared = {
        "training_rows": len(train),
        "validation_rows": _count_rows(root, "validation.parquet", kind),
        "length": metadata.length,
        "vocabulary_size": metadata.vocabulary_size,
    }
    if experiment.modality in ("tokens", "vectors"):
        return shared
    if experiment.modality == "text":
        judge = _count_rows(root, "judge.parquet", "tokens")
        rejected = _count_rows(root, "rejected.parquet", "rejected rows")
        return {**shared, "judge_rows": judge, "rejected_rows": rejected}
    if experiment.modality == "images":
        return {**shared, "shape": metadata.shape, "partial": metadata.parameters["partial"]}
    return {
        **shared,
        "rejected_rows": _count_rows(root, "rejected.parquet", "rejected rows"),
        "reference_rows": _count_rows(root, "smiles.parquet", "smiles"),
    }


def _count_rows(root: Path, name: str, kind: str) -> int:
    return len(read_table(paths.data(root, name), kind)[0])


def _by_method(metrics: pd.DataFrame, seed: int) -> dict[str, dict[str, float]]:
    """Method, coupling, or `forward` for the coverage -> its metrics of one seed."""
    return {
        str(method): dict(zip(group["metric"], group["value"], strict=True))
        for method, group in metrics[metrics["seed"] == seed].groupby("method", sort=False)
    }


def _read_samples(root: Path, experiment: Experiment) -> dict[str, dict[int, np.ndarray]]:
    """Rows or vectors of the first seed's and evaluation's first trial, at the NFE that it says are shown."""
    shown = {"images": pictures.SAMPLES, "vectors": vectors.SHOWN}
    shown |= {"text": tokens.SHOWN, "tokens": tokens.SHOWN}
    of_vectors = experiment.modality == "vectors"
    most = shown.get(experiment.modality)
    samples: dict[str, dict[int, np.ndarray]] = {name: {} for name in experiment.methods}
    for run in paths.shown_runs(experiment):
        table, _ = read_table(paths.samples(root, run), "vector samples" if of_vectors else "samples")
        drawn = token_array(table["values" if of_vectors else "tokens"])
        samples[run.method][run.nfe] = drawn[table["trial"].to_numpy() == 0][:most]
    return samples


def _read_trajectory(root: Path, experiment: Experiment) -> Trajectory | None:
    """A random training row on its way to noise, where PairFlow pairs all of the data."""
    if experiment.flow == "continuous" or "pairflow" not in experiment.couplings():
        return None
    table, metadata = read_table(paths.data(root, "train.parquet"), "tokens")
    seed, size = experiment.seeds[0], metadata.dimensions[1]
    row = pictures.choose_examples(len(table), 1, seed)[0]
    settings = {"vocabulary_size": size, "steps": experiment.pairing.steps, "seed": seed}
    return follow(token_array(table["tokens"]), row, **settings)


def _read_molecules(root: Path, experiment: Experiment, samples: pictures.Samples) -> dict[str, Any]:
    """Samples and some training molecules as SMILES, property histograms at the NFE shown."""
    from pairflow.kinds.molecules.prepare import PAD, Vocabulary

    vocabulary = Vocabulary.load(paths.data(root, "vocabulary.json"))
    decoded = {
        method: {nfe: [vocabulary.decode(row) for row in tokens] for nfe, tokens in by_nfe.items()}
        for method, by_nfe in samples.items()
    }
    properties: dict[str, dict[int, dict[str, pd.DataFrame]]] = {}
    for run in paths.runs(experiment):
        if run.nfe in paths.shown_nfe(experiment, run.evaluation):
            table, _ = read_table(paths.measured(root, run, "properties"), "property histograms")
            by_method = properties.setdefault(run.evaluation, {}).setdefault(run.nfe, {})
            by_method[run.method] = _add_counts(by_method.get(run.method), table.to_pandas())
    table, _ = read_table(paths.data(root, "train.parquet"), "tokens")
    rows = pictures.choose_examples(len(table), _EXAMPLES, experiment.seeds[0])
    examples = [vocabulary.decode(row) for row in token_array(table["tokens"].take(rows))]
    symbols = dict(enumerate(vocabulary.tokens)) | {PAD: "·"}
    return {"samples": decoded, "examples": examples, "properties": properties, "symbols": symbols}


def _add_counts(before: pd.DataFrame | None, counts: pd.DataFrame) -> pd.DataFrame:
    """Histograms of another seed's samples added to those before; the training molecules are the same."""
    return counts if before is None else before.assign(samples=before["samples"] + counts["samples"])
