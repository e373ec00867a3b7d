"""Reads everything that an experiment's page shows, after `plan.lineage.require` has checked its files."""

import shlex
from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, as_metrics, digest, read_provenance, read_table, token_array
from pairflow.config import Experiment
from pairflow.kinds import page_of
from pairflow.plan import paths
from pairflow.plan.jobs import jobs, report_inputs
from pairflow.report.contents import Contents
from pairflow.report.kind_page import name_column
from pairflow.report.results import CONDITION, LIKELIHOOD, read_logs

_UNTIMED = ("diagnose", "report")
_TIMINGS = {
    **{"step": "string", "method": "string", "seed": "Int64", "evaluation": "string", "nfe": "Int64"},
    **{"seconds": "float64", "device_seconds": "float64", "samples_seen": "Int64"},
    **{"peak_memory_mb": "float64", "device": "string", "machine": "string", "date": "string"},
}
_METRICS = ("metrics", "couplings", "correlations", "floors")  # kinds of inputs that hold metric rows


def read_metrics(root: Path, experiment: Experiment) -> pd.DataFrame:
    """Read all metric rows of all seeds: of samples, couplings, correlations, real data and logs."""
    frames = [read_table(path, "metrics")[0].to_pandas() for path in _metric_files(root, experiment)]
    if page_of(experiment).bounded:
        frames.append(_read_bounds(root, experiment))
    return pd.concat(frames, ignore_index=True)


def describe_metrics(root: Path, experiment: Experiment) -> Metadata:
    """Make the metadata of the rows of `read_metrics`: the experiment, and the hashes of their files."""
    files = _metric_files(root, experiment)
    if page_of(experiment).bounded:
        files += _bound_models(root, experiment).values()
    return Metadata(
        kind="metrics",
        parameters=experiment.model_dump(mode="json"),
        inputs={str(path.relative_to(root)): digest(path) for path in files},
    )


def _metric_files(root: Path, experiment: Experiment) -> list[Path]:
    inputs = report_inputs(root, experiment)
    return [path for kind in _METRICS for path in inputs.get(kind, [])]


def read_timings(root: Path, experiment: Experiment) -> pd.DataFrame:
    """Read a row per job, from the provenance of its first output; jobs of `_UNTIMED` are left out."""
    rows = [
        read_provenance(job.record) | vars(job) | {"step": job.rule}
        for job in jobs(root, experiment)
        if job.rule not in _UNTIMED
    ]
    return pd.DataFrame(rows).reindex(columns=list(_TIMINGS)).astype(_TIMINGS)


def read_contents(
    root: Path, experiment: Experiment, metrics: pd.DataFrame, timings: pd.DataFrame
) -> Contents:
    """Read what the page shows besides the given metric rows and timings."""
    page = page_of(experiment)
    model = paths.model(root, experiment.seeds[0], experiment.methods[-1])
    command = f"snakemake --cores all -- {shlex.quote(f'{root.as_posix()}/report.html')}"
    train, metadata = read_table(paths.data(root, "train.parquet"), "tokens", "vectors")
    counted = {"validation": "", **page.counted}
    rows = {name: read_table(paths.data(root, f"{name}.parquet"))[0].num_rows for name in counted}
    return Contents(
        name=root.name,
        experiment=experiment,
        metrics=metrics,
        timings=timings,
        provenance={**read_provenance(model / "model.safetensors"), "command": command},
        partial=metadata.parameters.get("partial"),
        logs=read_logs(root, experiment),
        data={
            "training_rows": len(train),
            **{f"{name}_rows": number for name, number in rows.items()},
            "length": metadata.length,
            "vocabulary_size": metadata.vocabulary_size,
            "shape": metadata.shape,
        },
        sample_command=page.sample_command(root, experiment),
        part=page.read(root, experiment, _read_samples(root, experiment)),
    )


def _read_samples(root: Path, experiment: Experiment) -> dict[str, dict[int, np.ndarray]]:
    """Read {method: {NFE: first trial's rows}} of the first evaluation and seed, at the shown NFE."""
    most = page_of(experiment).shown
    samples: dict[str, dict[int, np.ndarray]] = {name: {} for name in experiment.methods}
    for run in paths.shown_runs(experiment):
        table, _ = read_table(paths.samples(root, run), "samples", "vector samples")
        drawn = token_array(table[name_column(table)])
        samples[run.method][run.nfe] = drawn[table["trial"].to_numpy() == 0][:most]
    return samples


def _bound_models(root: Path, experiment: Experiment) -> dict[tuple[str, int], Path]:
    """Return {(method, seed): path of the weights}; the log next to each ends in the bound on held-out NLL.

    Metadata have the hash of the weights, not of the log: the log also has times, which differ between equal
    trainings.
    """
    return {
        (method, seed): paths.model(root, seed, method) / "model.safetensors"
        for seed in experiment.seeds
        for method in experiment.methods
    }


def _read_bounds(root: Path, experiment: Experiment) -> pd.DataFrame:
    """Make metric rows from logs: `nll_bound` (last validation, nats per token), and what the kind adds; and
    in the evaluation `condition` how often held-out rows are likelier under their own class.

    There are no rows if no data are held out.
    """
    held_out = token_array(read_table(paths.data(root, "validation.parquet"), "tokens")[0]["tokens"])
    convert = page_of(experiment).prepare_bounds(root, held_out)
    rows = []
    for (method, seed), weights in _bound_models(root, experiment).items():
        log, _ = read_table(weights.with_name("log.parquet"), "training log")
        measured = log.to_pandas()["validation_nll"].dropna()
        if measured.empty:
            continue
        nll = float(measured.iloc[-1])
        of_model = {"method": method, "seed": seed, "evaluation": LIKELIHOOD, "samples": len(held_out)}
        values = {"nll_bound": nll, **convert(nll)}
        rows += [{**of_model, "metric": name, "value": bound} for name, bound in values.items()]
        last = log.to_pandas().iloc[-1]
        for name in ("likelier_in_class", "likelier_by_chance"):
            if name in last:
                judged = {"evaluation": CONDITION, "samples": int(last["likelier_rows"])}
                rows.append({**of_model, **judged, "metric": name, "value": last[name]})
    columns = ["method", "seed", "metric", "value", "evaluation", "samples"]
    return as_metrics(pd.DataFrame(rows, columns=columns), reference="test")
