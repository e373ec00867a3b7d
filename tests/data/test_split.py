"""Which rows are held out by the user's own labels."""

import numpy as np
import pytest

from pairflow.data.split import describe_split, held_out_rows, is_held_out
from pairflow.errors import InputError

TRAIN = ("train", "Training", " TRAIN ", "training_set", "trn", "train1")
HELD_OUT = ("valid", "val", "Validation", "dev", "TEST", "test_scaffolds", "scaffold test", "held-out")


@pytest.mark.parametrize(
    ("labels", "side"),
    [
        (TRAIN, False),
        ((*HELD_OUT, "holdout", "hold out", "eval", "test2"), True),
        (("", "0", "other", "trained", "contest", "train_test"), None),
    ],
)
def test_usual_spellings_are_known(labels, side):
    assert {label: is_held_out(label) for label in labels} == dict.fromkeys(labels, side)


def test_every_row_that_is_not_for_training_is_held_out():
    assert held_out_rows(["train", "test", "Train", "valid", "dev"], "a.csv") == [1, 3, 4]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["train", "test", "a", "a"], "a.csv: expected train, valid or test, found 'a' in 2 of 4 rows"),
        (["train", "Train"], "expected rows for training and rows that are held out, found 'train', 'Train'"),
        ([], "found no rows"),
    ],
)
def test_labels_that_are_no_split_are_refused(labels, message):
    with pytest.raises(InputError) as error:
        held_out_rows(labels, "a.csv")
    assert str(error.value).endswith(message)


def test_rows_of_both_parts_are_counted():
    train, held_out = np.array([[1, 2], [3, 4], [1, 2]]), np.array([[3, 4], [5, 6], [3, 4], [1, 2]])
    counts = "3 rows for training and 4 that are held out; 3 of these are equal to a training row"
    assert describe_split(train, held_out).endswith(counts)
