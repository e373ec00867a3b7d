"""Training and distillation as functions: the workflow's jobs that make one model, run in this process."""

import shutil
import signal
import sys
import tempfile
import weakref
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
from numpy.typing import ArrayLike
from torch import nn

from pairflow import published
from pairflow.api.local import Runner, needed_jobs, run_jobs
from pairflow.api.own_data import file_of, own_pairs
from pairflow.api.wanted import OWN, Wanted, distillation_like, network_like
from pairflow.arguments import checked_choice, checked_integer, checked_number
from pairflow.artifacts import digest, read_metadata
from pairflow.config import Experiment, check, parse_method, suggest
from pairflow.config.training import DISTILLATIONS, FREQUENCIES
from pairflow.data.draft import NO_START
from pairflow.errors import InputError, Interrupted
from pairflow.files import checked_path, require_folder
from pairflow.generate.loaded import Device, LoadedModel, load
from pairflow.kinds import READINGS
from pairflow.networks.own import blamed, settings_of
from pairflow.plan import paths
from pairflow.plan.jobs import jobs
from pairflow.runtime.progress import bars_of_a_function
from pairflow.runtime.resume import RERUN
from pairflow.training.model import Model


@bars_of_a_function()
def train(
    data: Any,
    *,
    vocabulary_size: int | None = None,
    method: str | None = None,
    network: str | type[nn.Module] | Mapping[str, Any] | None = None,
    sources: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    hours: float | None = None,
    iterations: int | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
    start: str | Path | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    taken_as: str | None = None,
    device: Device = "auto",
    threads: int | None = None,
    progress: bool = True,
    **options: Any,
) -> LoadedModel:
    """Train a model on your rows, as the workflow does.

    The settings are those that `pairflow new` suggests for such data on this machine. With the same settings,
    `pairflow run` makes the same weights.

    Ctrl-C returns the model so far. With a `folder`, the same call resumes the training afterwards, and the
    result is the same as without the interruption.

    Args:
        data: token rows (M, N), integers in [0, K), as an array, a tensor, a list, or a Series or Arrow array
            of lists; or M molecules (SMILES) or texts, as strings in a list, a Series, a column of a table,
            or a file as `pairflow new` reads it.
        vocabulary_size: K, the number of symbols of token rows; None for molecules and text.
        method: a base method and its distillations, such as "udlm" or "pairflow+dcd". Default: "pairflow",
            or with `sources` "pairs-own".
        network: the name of a network, such as "mlp" or "transformer"; a class of your own (docs/python.md);
            or settings, {"name": "mlp", "width": 64}, with a name or a class.
        sources: the source of each token row, (M, N), in place of those that the method computes.
        labels: the class of each row, (M,); `sample(condition="label=<class>")` then asks for a class.
        hours: the time that the training may take.
        iterations: the number of training iterations, in place of `hours`.
        seed: the seed of the pairing and of the training.
        folder: a folder for all files, such as results/mine. Default: a temporary one, which vanishes with
            the model; `LoadedModel.save` keeps the model.
        start: a model to start from (fine-tuning), by its folder or name; "none" to start from scratch.
        settings: sections of an experiment, whose keys replace the suggested ones, such as
            {"training": {"batch_size": 64}, "noise": "frequencies"}.
        taken_as: what the data hold, "molecules", "text", "rows" or "table". Default: found from the content.
        device: "auto" uses the GPU if there is one.
        threads: threads of a CPU. Default: as in the workflow.
        progress: whether to describe the data on stderr, and to show a progress bar.
        options: settings of `pairflow new`, such as `column`, `condition` or `validation_fraction`.

    Returns:
        The model, with `sample`, `decode`, `score` and `save`.

    Raises:
        InputError: if the data, an argument or a setting is not possible, or `folder` has other files.

    Example:
        >>> model = pairflow.train(rows, vocabulary_size=8, iterations=500)  # doctest: +SKIP
    """
    runner = Runner(device, threads, progress)
    wanted: dict[str, Any] = {
        "vocabulary_size": vocabulary_size,
        "method": _checked_method(method, sources is not None),
        "network": network_like(settings_of(network)),
        "labelled": labels is not None,
        "hours": None if hours is None else checked_number("hours", hours, 1e-4, 10_000),
        "iterations": None if iterations is None else checked_integer("iterations", iterations, 1, 10**9),
        "seed": checked_integer("seed", seed, 0, 2**32 - 1),
        "start": None if start in (None, NO_START) else published.locate(start).resolve(),
        "from_scratch": start == NO_START,
        "settings": _checked_settings(settings),
        "taken_as": None if taken_as is None else checked_choice("taken_as", taken_as, READINGS),
        "options": options,
    }
    with _place(folder) as root:
        file = file_of(data, vocabulary_size, labels, root)
        pairs = own_pairs(data, sources, vocabulary_size, root)
        asked = Wanted(**wanted, file=file, own_pairs=pairs)
        experiment = asked.experiment(root, runner)
        _require_same_data(root, file)
        return _make(root, experiment, runner, folder)


@bars_of_a_function()
def distill(
    model: LoadedModel | str | Path,
    distillation: str = "dcd",
    *,
    iterations: int | None = None,
    settings: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
    folder: str | Path | None = None,
    device: Device = "auto",
    threads: int | None = None,
    progress: bool = True,
) -> LoadedModel:
    """Distil a model into one that needs fewer sampling steps, as the workflow does.

    Args:
        model: a model that `train` or `load` returned, or its folder.
        distillation: "dcd" or "redi", or of a continuous flow "rf".
        iterations: the number of training iterations. Default: a fifth of the model's.
        settings: settings of the distillation, which replace the suggested ones, key by key.
        data: the folder with the rows that the model was trained on, such as results/mine/data. Default: that
            of the experiment in which `train` or the workflow has made the model.
        folder: a folder for all files, as in `train`.
        device: "auto" uses the GPU if there is one.
        threads: threads of a CPU. Default: as in the workflow.
        progress: whether to show a progress bar.

    Returns:
        The new model, whose method ends in the distillation, such as "pairflow+dcd".

    Raises:
        InputError: if the model's data are not there, or an argument or a setting is not possible.

    Example:
        >>> fast = pairflow.distill(model, "dcd")  # doctest: +SKIP
    """
    runner = Runner(device, threads, progress)
    parent = (model if isinstance(model, LoadedModel) else load(model, device=device)).model
    checked_choice("distillation", distillation, DISTILLATIONS)
    if iterations is not None:
        checked_integer("iterations", iterations, 1, 10**9)
    source = _folder_of_data(parent, data)
    experiment = _experiment_on(parent, source, distillation, iterations, _checked_settings(settings), runner)
    with _place(folder) as root:
        there = {paths.model(root, parent.seed, parent.method): parent.folder, root / "data": source}
        for new, old in there.items():
            if not new.exists():
                shutil.copytree(old, new)
        return _make(root, experiment, runner, folder, [path for new in there for path in new.iterdir()])


def _experiment_on(
    parent: Model,
    data: Path,
    distillation: str,
    iterations: int | None,
    settings: Mapping[str, Any],
    runner: Runner,
) -> Experiment:
    """Return the experiment on the data in `data` whose only method is this distillation of `parent`.

    `iterations` are a fifth of the parent's if None. `settings` replace the suggested settings of the
    distillation, key by key.
    """
    training, symbols = parent.base_training, parent.vocabulary_size or 1
    rows = pq.read_metadata(data / "train.parquet").num_rows
    suggested = suggest.experiment(
        parent.length,
        symbols,
        rows,
        runner.type,
        compare=True,
        iterations=5 * iterations if iterations else training.iterations,
        network=parent.network_settings,
    )
    method = f"{parent.method}+{distillation}"
    names = dict.fromkeys(parse_method(method).distillations)
    known = {name: distillation_like(name, suggested["distillation"]) for name in names}
    known[distillation] |= settings
    return check(
        Experiment,
        {
            **suggested,
            "description": f"{distillation} of {parent.method}",
            "scale": "reduced",
            "flow": parent.flow,
            "seeds": [parent.seed],
            "noise": "uniform" if parent.frequencies is None else FREQUENCIES,
            "data": read_metadata(data / "train.parquet").parameters,
            "pairing": {"pool": training.pool},
            "training": training.model_dump(exclude={"pool"}),
            "distillation": known,
            "pairs": {name: "none" for name in [parse_method(method).pairs_name] if name},
            "methods": [method],
            "evaluations": {"main": {"nfe": [1]}},
        },
        "distill",
    )


def _folder_of_data(model: Model, folder: str | Path | None) -> Path:
    """Return the folder of a model's training rows: `folder` or its experiment's; InputError without rows."""
    beside = Path(*model.folder.resolve().parts[:-3], "data")
    data = beside if folder is None else checked_path("data", folder)
    if not (data / "train.parquet").is_file():
        raise InputError(
            "data: expected the folder with the rows that the model was trained on (train.parquet), which "
            "`save` leaves out, such as results/mine/data"
        )
    return data


def _checked_method(method: Any, with_sources: bool) -> str:
    if method is None:
        return f"pairs-{OWN}" if with_sources else "pairflow"
    if not isinstance(method, str):
        raise InputError(f"method: expected a name, found {method!r:.200}")
    return parse_method(method).name


def _checked_settings(settings: Any) -> dict[str, Any]:
    if not isinstance(settings or {}, Mapping) or not all(isinstance(key, str) for key in settings or {}):
        raise InputError(f"settings: expected a mapping with names, found {settings!r:.200}")
    return dict(settings or {})


def _make(
    root: Path,
    experiment: Experiment,
    runner: Runner,
    folder: str | Path | None,
    there: Collection[Path] = (),
) -> LoadedModel:
    """Make the model of the experiment's only method in the folder `root`, and load it.

    Jobs whose outputs are among the files `there` are left out. After Ctrl-C, the unfinished model is loaded,
    if there is one, else SystemExit is raised. If the caller gave no `folder`, `root` is removed with the
    model.
    """
    [method], [seed] = experiment.methods, experiment.seeds
    made = paths.model(root, seed, method)
    table = needed_jobs(jobs(root, experiment), made / "model.safetensors", there)
    threads = torch.get_num_threads()
    try:
        with blamed(experiment.network.name):
            run_jobs(root, experiment, table, runner)
    except Interrupted as stop:
        again = "the same call resumes" if folder else "with a folder, the same call would resume"
        done = str(stop).removesuffix(f", {RERUN}")
        so_far = stop.signal == signal.SIGINT and stop.unfinished is not None
        print(f"pairflow: {done}{'; this is the model so far' * so_far}; {again}", file=sys.stderr)
        if not so_far:
            raise SystemExit(128 + stop.signal) from None
        made = root / "unfinished"
        stop.unfinished(made)
    finally:
        torch.set_num_threads(threads)
    model = load(made, device=runner.device)
    if folder is None:
        weakref.finalize(model, shutil.rmtree, root, ignore_errors=True)
    return model


@contextmanager
def _place(folder: str | Path | None) -> Iterator[Path]:
    """Yield the folder of a training: that of the caller, or a temporary one, removed if the block fails."""
    if folder is not None:
        root = checked_path("folder", folder).resolve()
        require_folder("folder", root)
        root.mkdir(parents=True, exist_ok=True)
        yield root
        return
    root = Path(tempfile.mkdtemp(prefix="pairflow-")).resolve()
    try:
        yield root
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise


def _require_same_data(root: Path, file: Path) -> None:
    """Raise InputError if the rows in `root` were made from another file."""
    rows = paths.data(root, "train.parquet")
    source = read_metadata(rows).inputs.get("source") if rows.is_file() and file.is_file() else None
    if source not in (None, digest(file)):
        raise InputError(f"folder: {root} has a training on other data; choose another folder")
