"""The user's own files that an experiment names, as far as jobs still need them."""

from pathlib import Path

from pairflow import published
from pairflow.config import Experiment, nearest
from pairflow.errors import InputError
from pairflow.files import require_regular
from pairflow.kinds import kind_of
from pairflow.plan.job import Job
from pairflow.plan.jobs import jobs


def require_own_files(root: Path, experiment: Experiment) -> None:
    """InputError for the first file or folder that a job on the way to the report needs, if it is none.

    A job whose outputs are all there needs none: Snakemake takes them as they are.
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


def _own_files(job: Job, experiment: Experiment, root: Path) -> dict[str, Path]:
    """What a job reads of the user's own, by the key of the experiment that names it.

    A model of another experiment, from which a training starts, is Snakemake's task.
    """
    files: dict[str, str | None] = {}
    if job.rule == "adopt" and job.method:
        files = {job.method.replace("-", "."): experiment.own_pairs(job.method)}
    if job.rule == "preprocess":
        files = kind_of(experiment.data).own_raw(experiment.data)
    if experiment.parent and job.rule in ("preprocess", "train"):
        folder = published.locate(experiment.parent, root.parent.parent)
        files = files if root.parent in folder.parents else files | {"from": str(folder)}
    return {key: Path(file) for key, file in files.items() if file}
