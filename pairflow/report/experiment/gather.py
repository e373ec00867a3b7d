"""Reads everything that an experiment's page shows, after `plan.lineage.require` has checked its files."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, as_metrics, digest, read_provenance, read_table, token_array
from pairflow.config import Experiment
from pairflow.plan import paths
from pairflow.plan.job import Job
from pairflow.report.contents import Contents
from pairflow.report.kind_page import KindPage, name_column
from pairflow.report.results import CONDITION, LIKELIHOOD, read_logs

_UNTIMED = ("diagnose", "report")
_TIMINGS = {
    **{"step": "string", "method": "string", "seed": "Int64", "evaluation": "string", "nfe": "Int64"},
    **{"seconds": "float64", "device_seconds": "float64", "samples_seen": "Int64"},
    **{"peak_memory_mb": "float64", "device": "string", "machine": "string", "date": "string"},
}
_METRICS = ("metrics", "couplings", "correlations", "floors")  # kinds of inputs that hold metric rows


def read_metrics(
    root: Path, experiment: Experiment, page: KindPage, report: Job
) -> tuple[pd.DataFrame, Metadata]:
    """Return all metric rows of all seeds, and their metadata.

    The rows are about samples, couplings, correlations, real data and logs. `page` says whether training logs
    have bounds. `report` is the report's job, whose inputs are the files to read. The metadata have the
    experiment, and the hashes of these files.
    """
    files = [path for kind in _METRICS for path in report.groups.get(kind, [])]
    frames = [read_table(path, "metrics")[0].to_pandas() for path in files]
    if page.bounded:
        # The log next to each model ends in the bound on held-out NLL. Metadata have the hash of the weights,
        # not of the log: the log also has times, which differ between equal trainings.
        pairs = [(method, seed) for seed in experiment.seeds for method in experiment.methods]
        models = {pair: paths.model(root, pair[1], pair[0]) / "model.safetensors" for pair in pairs}
        frames.append(_read_bounds(root, page, models))
        files += models.values()
    return pd.concat(frames, ignore_index=True), Metadata(
        kind="metrics",
        parameters=experiment.model_dump(mode="json"),
        inputs={str(path.relative_to(root)): digest(path) for path in files},
    )


def read_timings(table: Iterable[Job]) -> pd.DataFrame:
    """Return a frame with a row for each job in `table`, from the provenance of its first output; jobs whose
    rule is in `_UNTIMED` are left out."""
    rows = [
        read_provenance(job.record) | vars(job) | {"step": job.rule}
        for job in table
        if job.rule not in _UNTIMED
    ]
    return pd.DataFrame(rows).reindex(columns=list(_TIMINGS)).astype(_TIMINGS)


def read_contents(
    root: Path, experiment: Experiment, page: KindPage, metrics: pd.DataFrame, timings: pd.DataFrame
) -> Contents:
    """Read what the page shows besides the given metric rows and timings."""
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
        data={
            "training_rows": len(train),
            **{f"{name}_rows": number for name, number in rows.items()},
            "length": metadata.length,
            "vocabulary_size": metadata.vocabulary_size,
            "shape": metadata.shape,
        },
        sample_command=page.sample_command(root, experiment),
        part=page.read(root, experiment, _read_samples(root, experiment, page.shown)),
        logs=read_logs(root, experiment),
    )


def _read_samples(root: Path, experiment: Experiment, most: int | None) -> dict[str, dict[int, np.ndarray]]:
    """Read {method: {NFE: rows (B, N)}}: the first `most` rows (None: all) of the first trial, for the first
    evaluation and seed, at the NFE that pages show."""
    samples: dict[str, dict[int, np.ndarray]] = {name: {} for name in experiment.methods}
    for run in paths.shown_runs(experiment):
        table, _ = read_table(paths.samples(root, run), "samples", "vector samples")
        drawn = token_array(table[name_column(table)])
        samples[run.method][run.nfe] = drawn[table["trial"].to_numpy() == 0][:most]
    return samples


def _read_bounds(root: Path, page: KindPage, models: Mapping[tuple[str, int], Path]) -> pd.DataFrame:
    """Make metric rows from the training logs beside `models`, which has the file of weights by (method,
    seed).

    The metrics are `nll_bound` (last validation, nats per token), and what `page` adds for the kind of data;
    and in the evaluation `condition` how often held-out rows are likelier under their own class. Without
    held-out rows the table is empty.
    """
    held_out = token_array(read_table(paths.data(root, "validation.parquet"), "tokens")[0]["tokens"])
    convert = page.prepare_bounds(root, held_out)
    rows = []
    for (method, seed), weights in models.items():
        log = read_table(weights.with_name("log.parquet"), "training log")[0].to_pandas()
        measured = log["validation_nll"].dropna()
        if measured.empty:
            continue
        nll = float(measured.iloc[-1])
        of_model = {"method": method, "seed": seed, "evaluation": LIKELIHOOD, "samples": len(held_out)}
        values = {"nll_bound": nll, **convert(nll)}
        rows += [{**of_model, "metric": name, "value": bound} for name, bound in values.items()]
        last = log.iloc[-1]
        for name in ("likelier_in_class", "likelier_by_chance"):
            if name in last:
                judged = {"evaluation": CONDITION, "samples": int(last["likelier_rows"])}
                rows.append({**of_model, **judged, "metric": name, "value": last[name]})
    columns = ["method", "seed", "metric", "value", "evaluation", "samples"]
    return as_metrics(pd.DataFrame(rows, columns=columns), reference="test")
