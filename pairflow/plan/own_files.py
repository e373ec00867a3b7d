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
        for key, file in (_own_files(job, experiment) | _start(job, experiment, root)).items():
            if file and Path(file).exists() and not Path(file).is_dir():
                require_regular(Path(file))
            elif file and not Path(file).exists():
                kind = "folder" if key in ("data.folder", "from") else "file"
                near = nearest(file, published.names()) if key == "from" else ""
                start = "" if Path(file).is_absolute() else f"; relative paths start at {Path.cwd()}"
                raise InputError(f"experiments.{root.name}.{key}: {file}: no such {kind}{near}{start}")


def _own_files(job: Job, experiment: Experiment) -> dict[str, str | None]:
    """What a job reads of the user's own, by the key of the experiment that names it; None for nothing."""
    if job.rule == "preprocess":
        return kind_of(experiment.data).own_raw(experiment.data)
    if job.rule == "adopt":
        return {
            f"pairs.{name}": file for name, file in experiment.pairs.items() if job.method == f"pairs-{name}"
        }
    return {}


def _start(job: Job, experiment: Experiment, root: Path) -> dict[str, str | None]:
    """The model that training starts from. That of another experiment is Snakemake's task."""
    if not experiment.parent or job.rule not in ("preprocess", "train"):
        return {}
    folder = published.locate(experiment.parent, root.parent.parent)
    return {} if root.parent in folder.parents else {"from": str(folder)}
