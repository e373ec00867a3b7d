"""Samples of a trained model in trials: token rows, or numbers with measures of their trajectories."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pairflow.artifacts import token_column, token_dtype
from pairflow.config import FlowSampleSettings, SampleSettings
from pairflow.errors import InputError
from pairflow.runtime.resume import BlockKey

if TYPE_CHECKING:
    from torch import Tensor

    from pairflow.training.model import Model


class Trials(NamedTuple):
    """How the samples of a model's trials are drawn.

    Attributes:
        kind: what the table of samples contains, "samples" or "vector samples", for its metadata.
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
    sources: "Tensor | None" = None,
    given: "Tensor | None" = None,
) -> Trials:
    """Return how the samples of a model are drawn, in trials.

    A model of token rows needs SampleSettings, and one of a continuous flow FlowSampleSettings; others raise
    InputError. `sources` and `given` (both (B, N), of token rows) are the source states and the fixed symbols
    of the rows of a trial. Without them, sources are drawn, and no symbol is fixed.
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
