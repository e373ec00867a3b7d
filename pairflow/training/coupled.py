"""Chooses how the batches of a base model couple sources (rows of noise) with data rows."""

from functools import partial

import numpy as np
import torch

from pairflow import rng
from pairflow.config import BASES, parse_method
from pairflow.config.methods import INDEPENDENT
from pairflow.errors import InputError
from pairflow.flow.couple import COUPLINGS, Coupling, Semidiscrete
from pairflow.pairing.spaces import space_of
from pairflow.pairing.transport import SemidiscreteCoupling
from pairflow.settings.conditions import ONE_PROPERTY
from pairflow.training.fit import TrainingRows
from pairflow.training.model import Model


def couple(model: Model, rows: TrainingRows) -> tuple[TrainingRows, Coupling]:
    """Return the rows to train on, and the coupling that the base method of `model` uses.

    A semidiscrete coupling gives every batch new sources, so its rows have no x0. Raises InputError if it
    needs potentials that the rows lack, or if a coupling within classes gets other labels than classes.
    """
    method = parse_method(model.method)
    if method.couple != INDEPENDENT and rows.labels is not None and rows.labels.ndim > 1:
        raise InputError(f"{model.method}: takes {ONE_PROPERTY}")
    if BASES[method.base].balanced:
        return rows._replace(x0=None), _semidiscrete(model, rows)
    return rows, COUPLINGS[method.couple](model.base_training.pooled_batches)


def _semidiscrete(model: Model, rows: TrainingRows) -> Coupling:
    """Return the semidiscrete coupling with the potentials of the rows, separate for each class.

    Raises InputError if the rows have no potentials.
    """
    if rows.potentials is None:
        raise InputError(f"{model.method}: expected pairs with potentials, from `pairflow potentials`")
    labels = np.zeros(len(rows.x1)) if rows.labels is None else rows.labels
    tau, seed = rows.metadata.parameters["tau"], rng.stream_seed(model.seed, "transport")
    device = torch.device("cpu") if rows.metadata.vocabulary_size else model.device
    assign = {}
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        space = space_of(rows.x1[members], rows.metadata.vocabulary_size, device)
        part = SemidiscreteCoupling(space, tau, seed, rows.potentials[members])
        assign[int(label)] = partial(_assign, part, members)
    return Semidiscrete(assign)


def _assign(
    part: SemidiscreteCoupling, members: np.ndarray, sources: np.ndarray, numbers: np.ndarray
) -> np.ndarray:
    """Assign sources (S, ...) to the data rows of one class, by the coupling `part` of this class.

    `members` has the row numbers of the class in the whole data; `numbers` (S,) select random numbers.
    Returns row numbers (S,) in the whole data.
    """
    return members[part.rows(sources, numbers, threads=torch.get_num_threads())]
