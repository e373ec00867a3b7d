"""Splits a data set into rows for training and rows that are held out."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pairflow.errors import InputError


def split_rows(
    rows: Sequence[int] | np.ndarray,
    validation_fraction: float,
    split_seed: int,
    training_rows: int | None,
    validation_rows: Sequence[int] | None = None,
    groups: Sequence[int] | np.ndarray | None = None,
) -> np.ndarray:
    """Assign each row to `train`, `validation` or `reference`: an array (M,) of str objects.

    `rows` (M,) are row numbers in the raw data, and `validation_rows` has the numbers of the published
    validation set. Without one, the validation set is the first `ceil(validation_fraction * M)` rows of a
    permutation drawn from `split_seed`. With `groups` (M,), the number of each row's group, all rows of a
    group are on the same side: see `held_out_groups`. The training set is the first `training_rows` of the
    remaining rows in the same permutation (None: all of them). The rest is only a reference for novelty.

    Raises InputError if no row is in the published validation set, or if too few rows are left for training.
    """
    order = np.random.default_rng(split_seed).permutation(len(rows))
    # Fraction of the printed decimal: 0.05 * total must not be rounded up by a binary 0.05000...03.
    number = math.ceil(Fraction(str(validation_fraction)) * len(rows))
    if groups is not None:
        held_out = np.flatnonzero(held_out_groups(np.asarray(groups), number, split_seed)[groups])
    elif validation_rows is None:
        held_out = order[:number]
    else:
        held_out = np.flatnonzero(np.isin(rows, validation_rows))
        if not len(held_out):
            raise InputError(f"no row of {len(rows)} is held out for validation; expected at least 1")
    split = np.full(len(rows), "train", object)
    split[held_out] = "validation"
    training = order[split[order] == "train"]
    number = len(training) if training_rows is None else training_rows
    if not 0 < number <= len(training):
        raise InputError(f"training_rows: expected 1 to {len(training)} (the training split), found {number}")
    split[training[number:]] = "reference"
    return split


def held_out_groups(groups: np.ndarray, number: int, split_seed: int) -> np.ndarray:
    """Choose groups with at most `number` rows in all to hold out: an array (G,) of bool.

    `groups` (M,) is the group of each row. In an order drawn from `split_seed`, each group that still fits is
    held out. Raises InputError if `number` is positive and even the smallest group has more rows.
    """
    sizes = np.bincount(groups)
    held_out = np.zeros(len(sizes), bool)
    left = number
    for group in np.random.default_rng(split_seed).permutation(len(sizes)):
        if 0 < sizes[group] <= left:
            held_out[group] = True
            left -= sizes[group]
    if left == number > 0:
        raise InputError(
            f"split: the smallest of {np.count_nonzero(sizes)} scaffolds has {sizes[sizes > 0].min()} "
            f"molecules, and {number} are to be held out; set split to random, or choose a "
            "larger validation_fraction"
        )
    return held_out
