"""Training of a model on rows or pairs, for the steps `train` and `distill`."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from pairflow.artifacts import (
    OWN,
    Metadata,
    Provenance,
    atomic,
    digest,
    label_array,
    read_metadata,
    read_table,
    token_array,
    write_table,
)
from pairflow.artifacts.tables import points_of
from pairflow.config import (
    FLOWS,
    NETWORKS,
    DistillSettings,
    Optimisation,
    TrainSettings,
    parse_method,
)
from pairflow.config.training import FREQUENCIES, Distillation
from pairflow.errors import InputError, Interrupted
from pairflow.pairing.prior import frequencies
from pairflow.runtime import distributed
from pairflow.runtime.resume import ResumeOptions, remove_states
from pairflow.runtime.snapshots import Snapshots
from pairflow.training.bound import compare_classes
from pairflow.training.loop import Trained, optimise
from pairflow.training.model import DiscreteModel, Model, model_class
from pairflow.training.objectives import Labels, Objective, Validator
from pairflow.training.options import MODEL_FILES, FitOptions, ModelPaths
from pairflow.training.state import moving_average


class TrainingRows(NamedTuple):
    """The data of a training run.

    Attributes:
        x0: source tokens (M, N), or None. In a continuous flow x0 and x1 (M, ...) are vectors or images.
        x1: data tokens (M, N).
        metadata: the metadata of the rows.
        validation: validation tokens (V, N); V is 0 in a continuous flow.
        padding: the padding symbol of the validation rows, or None.
        inputs: the hashes of the files.
        labels: the labels of x1, (M,) or (M, P) of P properties, as `metadata.condition` says; or None.
        potentials: the potentials (M,) of a semidiscrete coupling, or None.
        held_out_labels: the labels of the validation rows, or None.
    """

    x0: np.ndarray | None
    x1: np.ndarray
    metadata: Metadata
    validation: np.ndarray
    padding: int | None
    inputs: dict[str, str]
    labels: np.ndarray | None = None
    potentials: np.ndarray | None = None
    held_out_labels: np.ndarray | None = None


def read_rows(data: Path, validation: Path, flow: str, *, pairs: bool) -> TrainingRows:
    """Read the training rows, or with `pairs` the pairs, in `data`, and the validation rows in `validation`.

    `flow` is the model's, "discrete" or "continuous". Raises InputError unless both files belong to one data
    set.
    """
    tokens = FLOWS[flow].tokens
    table, metadata = read_table(data, *([FLOWS[flow].pairs] if pairs else FLOWS[flow].rows))
    held_out = read_metadata(validation)
    metadata.require_same_vocabulary(held_out.vocabulary, data, validation)
    metadata.require_same_data(held_out.data, data, validation)
    metadata.require_split("train", data)
    held_out.require_split("validation", validation)
    shape = [metadata.length or 0] if tokens else metadata.shape or [metadata.length or 0]
    x0, x1 = (token_array(table[name]).reshape(-1, *shape) if pairs else None for name in ("x0", "x1"))
    if x1 is None:
        x1 = token_array(table["tokens"]) if tokens else points_of(table, metadata)
    measured = read_table(validation, "tokens")[0] if tokens else None
    # Images have labels without classes, and the pairs of a coupling have no labels.
    labels = label_array(table) if tokens and metadata.condition is not None else None
    return TrainingRows(
        x0=x0,
        x1=x1,
        metadata=metadata,
        validation=np.empty((0, *shape)) if measured is None else token_array(measured["tokens"]),
        padding=held_out.padding if tokens else None,
        inputs={"data": digest(data), "validation": digest(validation)},
        labels=labels,
        potentials=table["potential"].to_numpy() if "potential" in table.column_names else None,
        held_out_labels=label_array(measured) if measured and held_out.condition is not None else None,
    )


def with_labels(rows: TrainingRows, data: Path, labelled: Path | None) -> TrainingRows:
    """Return `rows` with the labels that the token rows in the file `labelled` have, if any.

    Rows of pairs (`data` is their file) have no labels of their own, but the order of the token rows. Raises
    InputError if pairs of labelled data come without `labelled`, or if the rows of the two files differ.
    """
    if labelled is None or read_metadata(labelled).condition is None:
        if rows.metadata.condition is not None and rows.labels is None:
            raise InputError(f"{data}: pairs of data with labels; name the token rows with --labels")
        return rows
    table, metadata = read_table(labelled, "tokens")
    if not np.array_equal(token_array(table["tokens"]), rows.x1):
        raise InputError(f"{data} and {labelled} do not match: their rows differ")
    described = replace(rows.metadata, condition=metadata.condition)
    inputs = {**rows.inputs, "labels": digest(labelled)}
    return rows._replace(labels=label_array(table), metadata=described, inputs=inputs)


def labels_of(rows: TrainingRows, model: Model) -> Labels | None:
    """Return the labels for the training of a conditional model; None if the rows have no labels."""
    return None if rows.labels is None else Labels(rows.labels, model.sizes, model.seed, model.device)


def read_base_rows(
    settings: TrainSettings, data: Path, validation: Path, labelled: Path | None = None
) -> TrainingRows:
    """Read the rows or pairs in `data` on which to train a base method, and the validation rows.

    Labels come from the file `labelled`, if any. Raises InputError for a method with a distillation, and for
    pairs of a coupling or noise other than in the settings.
    """
    method = settings.method
    parsed = parse_method(method)
    if parsed.parent:
        raise InputError(f"this command trains base methods; use `pairflow distill` for '{method}'")
    flow = model_class(settings.training.loss).flow
    rows = read_rows(data, validation, flow, pairs=parsed.coupling is not None)
    coupling = rows.metadata.parameters.get("coupling")
    if parsed.coupling and coupling not in ([parsed.coupling, OWN] if parsed.pairs_name else [parsed.base]):
        raise InputError(f"{data}: pairs of the coupling {coupling}, but the method is {method}")
    noise = rows.metadata.parameters.get("noise", "uniform")
    if parsed.coupling and not parsed.pairs_name and noise != settings.noise:
        raise InputError(f"{data}: pairs of the noise {noise}, but the model's is {settings.noise}")
    return with_labels(rows, data, labelled)


def frequencies_of(settings: TrainSettings, rows: TrainingRows, device: torch.device) -> torch.Tensor | None:
    """Return the probabilities (N, K) of noise by frequency, from the training rows; None for other noise."""
    if settings.noise != FREQUENCIES:
        return None
    return torch.from_numpy(frequencies(rows.x1, rows.metadata.dimensions[1])).to(device)


def load_parent(settings: DistillSettings, folder: Path, device: torch.device) -> Model:
    """Load the model to distil from `folder`.

    Raises InputError unless this model, the distillation and the method's name in the settings agree.
    """
    method = parse_method(settings.method)
    how = settings.distillation
    if method.distillations[-1:] != (how.name,):
        raise InputError(f"method '{settings.method}': expected a name that ends in +{how.name}")
    parent = Model.load(folder, which=how.start_from, device=device)
    if parent.method != method.parent:
        raise InputError(f"{folder}: a model of {parent.method}, but {settings.method} needs {method.parent}")
    return parent


def read_distillation_rows(how: Distillation, parent: Model, data: Path, validation: Path) -> TrainingRows:
    """Read the data, or the parent's pairs, as the distillation with the settings `how` requires.

    The rows have labels if the parent is conditional. Raises InputError if the files do not fit the parent.
    """
    if how.flow != parent.flow:
        raise InputError(
            f"{parent.folder}: +{type(how).__name__.lower()} needs a model of a {how.flow} flow; "
            f"this one is {parent.flow}"
        )
    rows = read_rows(data, validation, parent.flow, pairs=how.on_pairs)
    rows.metadata.require_same_vocabulary(parent.vocabulary, data, parent.folder)
    rows.metadata.require_same_data(parent.data, data, parent.folder)
    if how.on_pairs and rows.metadata.inputs.get("model") != parent.weights:
        raise InputError(f"{data}: these pairs were not made by the model in {parent.folder}")
    if not parent.condition:
        return rows._replace(labels=None)
    same = rows.metadata.condition == parent.condition_facts
    # A label equal to the number of classes stands for rows without a value, so that it is no error.
    if not same or rows.labels is None or (rows.labels > parent.sizes).any():
        raise InputError(
            f"{data}: its labels are missing, or differ from the classes of the model in {parent.folder}"
        )
    return rows


def inherited_average(how: Distillation, parent: Model) -> AveragedModel | None:
    """Return the parent's averaged weights as a moving average to continue, with the parent's decay.

    It counts the parent's iterations as updates. None if the settings `how` ask for a fresh average.
    """
    if how.ema == "fresh":
        return None
    averaged, base = Model.load(parent.folder, which="ema", device=parent.device), parent.base_training
    return moving_average(averaged.network, base.ema_decay, updates=base.iterations)


def fit(
    model: Model,
    objective: Objective,
    settings: Optimisation,
    rows: TrainingRows,
    outputs: ModelPaths,
    options: FitOptions,
    provenance: Provenance,
    *,
    files: dict[str, bytes],
    average: AveragedModel | None = None,
) -> None:
    """Train a model and write its folder. An interrupted run resumes, with the same weights, bit for bit.

    `settings` has the batch size, iterations, learning rate and so on; `rows` has the validation rows;
    `outputs` are the files to write; `options` say how to run. `files` (name -> content) are written next to
    the weights. `average` is a moving average to continue. Raises Interrupted on a signal that asks to stop.
    """
    device, seed = model.device, model.seed
    provenance.devices = distributed.world_size()
    provenance.samples = settings.iterations * settings.batch_size
    resume = ResumeOptions(options.resume, options.save_every)
    # A saved state is valid only for the same rounding: devices and slices change the order of sums. So do
    # threads, of which it restores the number.
    rounding = {"device": device.type, "micro_batch": options.micro_batch}
    rounding["torch"] = str(torch.__version__)
    folder = resume.state_folder(outputs.model, model.method, model.describe() | rounding)
    validate = None
    if isinstance(model, DiscreteModel) and len(rows.validation):
        measured = (rows.validation, model.corruption, model.prediction, rows.padding)
        validate = Validator(*measured, seed, device)
    try:
        trained = optimise(
            model.network,
            objective,
            settings,
            seed=seed,
            average=average,
            validate=validate,
            snapshots=Snapshots(folder, options.save_every, provenance),
            micro_batch=options.micro_batch,
            in_slices=NETWORKS[model.network_settings["name"]].in_slices,
            progress=not options.quiet,
        )
    except Interrupted as stop:
        stop.unfinished = partial(_write_unfinished, model, stop.unfinished, files=files)
        raise
    if distributed.rank() == 0:
        provenance.threads = torch.get_num_threads() if device.type == "cpu" else None
        _write(model, trained.ema, _with_classes(trained, model, rows), outputs, files)
        provenance.write(outputs.model)
        # States are removed last: a run that is killed before this can still resume.
        remove_states(folder)


def _with_classes(trained: Trained, model: Model, rows: TrainingRows) -> pd.DataFrame:
    """Return the training log; its last row may also have the results of `compare_classes`.

    It has them if the model has learnt the classes of one property: how often held-out rows are likelier
    under their own class than under any other.
    """
    condition, log, labels = model.condition, trained.log, rows.held_out_labels
    if not isinstance(model, DiscreteModel) or condition is None or labels is None:
        return log
    if not condition.are_integers or not len(labels):
        return log
    ignored = model.training is not None and model.training.ignore_padding
    found = compare_classes(
        trained.ema,
        model.corruption,
        rows.validation,
        labels,
        condition.sizes[0],
        prediction=model.prediction,
        seed=model.seed,
        padding=rows.padding if ignored else None,
        device=model.device,
    )
    for name, value in found.items():
        log[name] = np.where(np.arange(len(log)) == len(log) - 1, value, np.nan)
    return log


def _write_unfinished(model: Model, so_far: Trained, folder: Path, files: dict[str, bytes]) -> None:
    """Write an interrupted training as a model into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    outputs = ModelPaths(*(folder / name for name in MODEL_FILES[: len(ModelPaths._fields)]))
    _write(model, so_far.ema, so_far.log, outputs, files)


def _write(
    model: Model, ema: nn.Module, table: pd.DataFrame, outputs: ModelPaths, files: dict[str, bytes]
) -> None:
    """Write weights, description, log (`table`) and additional files (name -> content), all or nothing."""
    paths = [outputs.model.parent / name for name in files]
    with atomic(*outputs, *paths) as [weights, description, log, *new_files]:
        model.save(weights, description, raw=model.network, ema=ema)
        write_table(log, table, Metadata(kind="training log"))
        for path, content in zip(new_files, files.values(), strict=True):
            path.write_bytes(content)
