"""Which samples are kept: known answers for each filter, alone and together."""

import pytest

from pairflow.metrics.selection import Selection

SAMPLES = ["CCO", "OCC", "C(", "", "C#N", "CCO", "<mask>", "CN"]


@pytest.mark.parametrize(
    ("options", "kept", "counts"),
    [
        ({}, SAMPLES, {"kept": 8}),
        ({"parsed": True}, ["CCO", "CCO", "C#N", "CCO", "CN"], {"kept": 5, "invalid": 3}),
        ({"parsed": True, "unique": True}, ["CCO", "C#N", "CN"], {"kept": 3, "invalid": 3, "repeated": 2}),
        ({"parsed": True, "known": {"CCO"}}, ["C#N", "CN"], {"kept": 2, "invalid": 3, "known": 3}),
        (
            {"parsed": True, "unique": True, "known": {"CN"}},
            ["CCO", "C#N"],
            {"kept": 2, "invalid": 3, "repeated": 2, "known": 1},
        ),
    ],
)
def test_each_sample_is_kept_or_counted_by_the_first_reason(options, kept, counts):
    selection = Selection(**options)
    actual = [selection.keep(text) for text in SAMPLES]
    assert [text for text in actual if text is not None] == kept
    assert selection.counts == counts


def test_what_came_since_the_last_that_was_kept_is_counted_apart():
    selection = Selection(parsed=True, unique=True)
    for text in ["C(", "CCO", "OCC", "C(", "C("]:
        selection.keep(text)
    assert selection.since == {"repeated": 1, "invalid": 2}
    selection.keep("CN")
    assert selection.since.total() == 0
