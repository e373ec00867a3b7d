"""Splits a data set into rows for training and rows that are held out."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from pairflow.errors import InputError

_TRAIN = {"train", "training", "trainset", "trn", "tr"}
_HELD_OUT = {
    *("valid", "validation", "val", "vld", "dev", "development", "test", "testing", "testset", "tst"),
    *("eval", "evaluation", "held", "heldout", "hold", "holdout"),
}


def is_held_out(label: str) -> bool | None:
    """Return whether a label such as `Valid` or `test_scaffolds` names held-out rows (True) or training rows
    (False); None if it names neither or both."""
    words = {*re.split("[^a-z]+", label.lower())}
    train, held_out = bool(words & _TRAIN), bool(words & _HELD_OUT)
    return None if train == held_out else held_out


def held_out_rows(labels: Iterable[str], where: str) -> list[int]:
    """Return the indices of the rows that their labels, such as `train` or `test`, hold out. `where` says in
    messages where the labels are.

    Raises InputError for a label that names neither training nor held-out rows, and unless there are rows of
    both parts.
    """
    rows = [*labels]
    counts = Counter(rows)
    sides = {label: is_held_out(label) for label in counts}
    for label, side in sides.items():
        if side is None:
            found = f"{label[:60]!r} in {counts[label]:,} of {len(rows):,} rows"
            raise InputError(f"{where}: expected train, valid or test, found {found}")
    if len({*sides.values()}) < 2:
        found = ", ".join(map(repr, counts)) or "no rows"
        raise InputError(f"{where}: expected rows for training and rows that are held out, found {found}")
    return [row for row, label in enumerate(rows) if sides[label]]


def describe_split(train: np.ndarray, held_out: np.ndarray) -> str:
    """Say how many rows, (M, N) and (V, N), the two parts of a split have, and how many held-out rows equal a
    training row."""
    counts = Counter(map(bytes, held_out))
    shared = sum(counts[row] for row in {row for row in map(bytes, train) if row in counts})
    return (
        f"your split has {len(train):,} rows for training and {len(held_out):,} that are held out; "
        f"{shared:,} of these are equal to a training row"
    )


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
    """Choose groups with at most `number` rows in all to hold out: an array (G,) of bool, by the number of
    the group.

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
