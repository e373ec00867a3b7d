"""Checks that the user's own files exist that an experiment names and that a job still has to read."""

from pathlib import Path

from pairflow import published
from pairflow.config import DataSettings, Experiment, nearest
from pairflow.data.source import listing
from pairflow.errors import InputError
from pairflow.files import require_regular
from pairflow.plan.job import Job
from pairflow.plan.jobs import jobs


def require_own_files(root: Path, experiment: Experiment) -> None:
    """Raise InputError if a file or folder of the user's that an experiment needs is missing.

    The message names the first one. A job whose outputs all exist reads nothing: Snakemake uses the outputs
    as they are.
    """
    for job in jobs(root, experiment):
        if all(output.exists() for output in job.outputs.values()):
            continue
        for key, path in _own_files(job, experiment, root).items():
            if not path.exists():
                kind = "folder" if key in ("data.folder", "from") else "file"
                near = nearest(path, published.names()) if key == "from" else ""
                start = "" if path.is_absolute() else f"; relative paths start at {Path.cwd()}"
                raise InputError(f"experiments.{root.name}.{key}: {path}: no such {kind}{near}{start}")
            if not path.is_dir():
                require_regular(path)


def folder_digest(data: DataSettings) -> str:
    """Return a digest of the files in the user's folders of raw data; empty without such a folder.
    Preprocessing runs again if the digest changes."""
    folders = [data.folder, getattr(data, "held_out", None)] if hasattr(data, "folder") else []
    return "".join(listing(folder, *data.folder_files) for folder in folders if folder)


def _own_files(job: Job, experiment: Experiment, root: Path) -> dict[str, Path]:
    """Return the user's own files that a job reads, by the key of the experiment that names each.

    The model of another experiment is left out: Snakemake trains it if it is missing.
    """
    files: dict[str, str | None] = {}
    if job.rule == "adopt" and job.method:
        files = {job.method.replace("-", "."): experiment.own_pairs(job.method)}
    if job.rule == "preprocess":
        files = experiment.data.own_raw()
    if experiment.parent and job.rule in ("preprocess", "train"):
        folder = published.locate(experiment.parent, root.parent.parent)
        files = files if root.parent in folder.parents else files | {"from": str(folder)}
    return {key: Path(file) for key, file in files.items() if file}
