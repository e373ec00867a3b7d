"""Which rows are for training and which are held out."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pairflow.errors import InputError


def split_rows(
    rows: Sequence[int],
    validation_fraction: float,
    validation_rows: Sequence[int] | None,
    split_seed: int,
    training_rows: int | None,
) -> np.ndarray:
    """The split's name for each of `rows` (M,), their places in the raw data, as an array of str objects.

    `validation_rows` is a published split; without it the first `ceil(validation_fraction * M)` of a
    permutation drawn from `split_seed` are the validation set. Of the rest, the first `training_rows` of the
    same permutation are for training (None: all), and any others only a reference.
    """
    order = np.random.default_rng(split_seed).permutation(len(rows))
    if validation_rows is None:
        # Fraction of the printed decimal: 0.05 * total must not be rounded up by a binary 0.05000...03.
        held_out = order[: math.ceil(Fraction(str(validation_fraction)) * len(rows))]
    else:
        held_out = np.flatnonzero(np.isin(rows, validation_rows))
    split = np.full(len(rows), "train", object)
    split[held_out] = "validation"
    training = order[split[order] == "train"]
    wanted = len(training) if training_rows is None else training_rows
    if not 0 < wanted <= len(training):
        raise InputError(f"training_rows: expected 1 to {len(training)} (the training split), found {wanted}")
    split[training[wanted:]] = "reference"
    return split
