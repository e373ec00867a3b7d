"""Samples of a trained model in trials: token rows, or numbers with measures of their trajectories."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pairflow.artifacts import read_table, token_array, token_column, token_dtype
from pairflow.config import FlowSampleSettings, SampleSettings
from pairflow.errors import InputError
from pairflow.runtime.resume import BlockKey

if TYPE_CHECKING:
    from torch import Tensor

    from pairflow.training.model import DiscreteModel, Model


class Trials(NamedTuple):
    """How the samples of a model's trials are drawn.

    Attributes:
        kind: the kind of their table.
        calls: network evaluations per sample.
        draw: a function of (trial, first row, number of rows) that draws a batch (rows, ...).
        columns: a function of the joined batches that returns the columns of the table.
    """

    kind: str
    calls: int
    draw: Callable[[BlockKey], np.ndarray]
    columns: Callable[[np.ndarray], Mapping[str, object]]


def trials(
    model: "Model",
    settings: SampleSettings | FlowSampleSettings,
    held_out: Path | None = None,
    sources: "Tensor | None" = None,
    given: "Tensor | None" = None,
) -> Trials:
    """Return the trials of a model. With `noise`, samples are variants of the rows in the file `held_out`, in
    turn.

    Without it, `sources` and `given` hold the source state and the fixed symbols of each row of a trial.
    Raises InputError if the settings are for models of the other flow, or if the file has rows of other data.
    """
    from pairflow.training.model import DiscreteModel, VelocityModel
    from pairflow.training.velocity import draw_samples, path_columns

    if isinstance(model, VelocityModel) and isinstance(settings, FlowSampleSettings):
        solver, velocity = settings, model

        def solve(batch: BlockKey) -> np.ndarray:
            trial, first, rows = batch
            return draw_samples(velocity, solver, rows, trial, first)

        kind = "vector samples" if model.vocabulary_size is None else "samples"
        columns = partial(path_columns, vocabulary_size=model.vocabulary_size)
        return Trials(kind, settings.nfe, solve, columns)
    if isinstance(model, DiscreteModel) and isinstance(settings, SampleSettings):
        if settings.grammar:
            from pairflow.generate.choice import with_grammar  # of molecules: it imports RDKit

            model = with_grammar(model)
        if settings.noise is not None:
            return _variants(model, settings, settings.noise, held_out)
        update, denoiser = settings, model

        def draw(batch: BlockKey) -> np.ndarray:
            trial, first, rows = batch
            x0, kept = (
                None if states is None else states[first : first + rows] for states in (sources, given)
            )
            plan = replace(denoiser.plan(update, update.nfe, rows, first), given=kept)
            _, samples = denoiser.draw(plan, rows, update.seed, "sample", trial, first, sources=x0)
            return samples.numpy().astype(token_dtype(denoiser.corruption.symbols))

        symbols = model.vocabulary_size
        calls = settings.count_calls(settings.nfe)
        return Trials("samples", calls, draw, lambda drawn: {"tokens": token_column(drawn, symbols)})
    raise InputError(f"{model.folder}: --solver is needed with a model of a continuous flow, and only then")


def _variants(
    model: "DiscreteModel", settings: SampleSettings, noise: float, held_out: Path | None
) -> Trials:
    """Return samples that are variants of the R rows in a file: sample number i of each trial varies row i
    mod R, which their table has in the column `origin`. Raises InputError without a file."""
    import torch

    from pairflow.generate.variants import vary

    if held_out is None:
        raise InputError("--held-out: needed with --noise, for rows to vary")
    table, metadata = read_table(held_out, "tokens")
    metadata.require_same_vocabulary(model.vocabulary, held_out, model.folder)
    metadata.require_same_data(model.data, held_out, model.folder)
    metadata.require_split("validation", held_out)
    rows = token_array(table["tokens"])
    numbers = np.arange(settings.samples) % len(rows)
    dtype = token_dtype(model.corruption.symbols)

    def draw(batch: BlockKey) -> np.ndarray:
        trial, first, count = batch
        origins = torch.from_numpy(rows[numbers[first : first + count]].astype(np.int64))
        plan = model.plan(settings, settings.nfe, count, first)
        varied = vary(model, plan, origins, noise, settings.seed, "sample", trial, first)
        return varied.numpy().astype(dtype)

    def columns(drawn: np.ndarray) -> Mapping[str, object]:
        symbols, origins = model.vocabulary_size, rows[np.tile(numbers, settings.trials)]
        return {"tokens": token_column(drawn, symbols), "origin": token_column(origins, symbols)}

    return Trials("samples", settings.count_calls(settings.nfe), draw, columns)
