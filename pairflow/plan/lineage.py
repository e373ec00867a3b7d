"""Checks by metadata whether files were made with an experiment's settings, and from one another.

Metadata have a file's parameters and the hashes of its inputs, so that a file of another experiment, seed,
split or method is refused. Hashes are of content: a file that was made again with equal bytes is the same.
Missing files, and inputs whose hash is not in the metadata, are not checked.
"""

import functools
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pairflow.artifacts import Metadata, digest, read_metadata, read_object
from pairflow.errors import InputError
from pairflow.plan.job import Job


def require(root: Path, table: Sequence[Job]) -> None:
    """Raise InputError if a file was not made with the settings and from the inputs of its job in `table`;
    the report, the last job, is not checked.

    The message names the first such file, and the command that makes it again. `root` is the folder of the
    experiment.
    """
    digest_of = functools.cache(digest)
    for job in table[:-1]:  # without the report, the last job
        if found := find_other(job, digest_of):
            command = f"pairflow run {root.name} -- --forcerun {shlex.quote(str(found[0]))}"
            raise InputError(f"{found[1]}; to make it again: {command}")


def stale(table: Sequence[Job]) -> list[Path]:
    """Return the files that were made with other settings, or are damaged; one of each job.

    Snakemake recognises only files that it has made itself, in a run that was not killed.
    """
    return [found[0] for job in table if (found := find_other(job))]


def done(table: Sequence[Job]) -> set[Job]:
    """Return the finished jobs: their outputs were made with the settings in `table`, and the jobs that make
    their inputs are finished.

    Snakemake also compares the times when files changed, so that only its dry run is certain.
    """
    exist = [job for job in table if all(path.exists() for path in job.outputs.values())]
    made = {job for job in exist if not find_other(job)}
    makers = {path: job for job in table for path in job.outputs.values()}
    joined = {path for job in table if job.rule == "gather" and job in made for path in job.needed}
    finished: set[Job] = set()
    for job in table:  # a job comes after the makers of its inputs
        # Snakemake removes the shards when they are joined.
        vanished = job.rule == "pair_shard" and joined.issuperset(job.outputs.values())
        ready = all(makers[path] in finished for path in job.needed if path in makers)
        if ready and (vanished or job in made):
            finished.add(job)
    return finished


def find_other(job: Job, digest_of: Callable[[Path], str] | None = None) -> tuple[Path, str] | None:
    """Return the first output that the job did not make with its settings, or that is damaged, and why.

    With `digest_of`, a function from a path to its hash, the hashes of the job's inputs are compared as well.
    """
    for name, path in job.outputs.items():
        try:
            if path.is_file():
                _require_made_by(job, name, path, digest_of)
        except InputError as error:
            return path, str(error)
    return None


def _require_made_by(job: Job, name: str, path: Path, digest_of: Callable[[Path], str] | None) -> None:
    """Raise InputError if the metadata of the output `name` differ from the job in the split or the settings,
    or with `digest_of` in the hashes of inputs."""
    metadata = _read_facts(path, name)
    metadata.require_split("train" if name == "pairs" else name, path)
    parameters, inputs = metadata.parameters, metadata.inputs
    sources = {key: path for key, path in job.inputs.items() if isinstance(path, Path)}
    expected = job.parameters
    if job.settings:
        expected |= job.settings.recorded(parameters)
    for key, value in expected.items():
        if key in parameters and parameters[key] != value:
            key, there, here = _difference(key, parameters[key], value)
            differs = f"{key} is {there} there and {here} in the configuration"
            raise InputError(f"{path}: from another configuration, {differs}")
    weights = [("weights", path) for path in job.outputs.values() if path.suffix == ".safetensors"]
    for key, source in [*sources.items(), *weights]:
        if digest_of and key in inputs and source.is_file() and inputs[key] != digest_of(source):
            raise InputError(f"{path}: was made from a file other than {source}")


def _difference(key: str, there: object, here: object) -> tuple[str, object, object]:
    """Return the key of the first difference between the values of `key` in a file (`there`) and in the
    configuration (`here`), such as `training.loss`, and its two values."""
    while isinstance(there, Mapping) and isinstance(here, Mapping) and {*there} == {*here}:
        inner = next(name for name in here if there[name] != here[name])
        key, there, here = f"{key}.{inner}", there[inner], here[inner]
    return key, there, here


def _read_facts(path: Path, name: str) -> Metadata:
    """Return a table's metadata, or a network's description as metadata; empty metadata for any other file.
    `name` is what the job calls the file. Raises InputError for a damaged file."""
    if path.suffix == ".parquet":
        return read_metadata(path)
    if name != "description":
        return Metadata(name)
    try:
        facts = read_object(path)
        return Metadata(name, parameters=facts, inputs={**facts["inputs"], "weights": facts["weights"]})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a description of pairflow") from error
