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
    groups: Sequence[int] | None = None,
) -> np.ndarray:
    """The split's name for each of `rows` (M,), their places in the raw data, as an array of str objects.

    `validation_rows` is a published split; without it the first `ceil(validation_fraction * M)` of a
    permutation drawn from `split_seed` are the validation set. With `groups` (M,), numbers from 0, all rows
    of a group are on one side: see `held_out_groups`. Of the rest, the first `training_rows` of the same
    permutation are for training (None: all), and any others only a reference.
    """
    order = np.random.default_rng(split_seed).permutation(len(rows))
    # Fraction of the printed decimal: 0.05 * total must not be rounded up by a binary 0.05000...03.
    wanted = math.ceil(Fraction(str(validation_fraction)) * len(rows))
    if groups is not None:
        held_out = np.flatnonzero(held_out_groups(np.asarray(groups), wanted, split_seed)[groups])
    elif validation_rows is None:
        held_out = order[:wanted]
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


def held_out_groups(groups: np.ndarray, wanted: int, split_seed: int) -> np.ndarray:
    """Whether each group is held out (G,): in an order drawn from `split_seed`, each that fits `wanted` yet.

    Raises InputError if rows are wanted and even the smallest group has more.
    """
    sizes = np.bincount(groups)
    held_out = np.zeros(len(sizes), bool)
    left = wanted
    for group in np.random.default_rng(split_seed).permutation(len(sizes)):
        if 0 < sizes[group] <= left:
            held_out[group] = True
            left -= sizes[group]
    if left == wanted > 0:
        raise InputError(
            f"split: the smallest of {np.count_nonzero(sizes)} scaffolds has {sizes[sizes > 0].min()} "
            f"molecules, and {wanted} are to be held out; expected split: random, or a larger "
            "validation_fraction"
        )
    return held_out
