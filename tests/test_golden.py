"""The data and pairs of a small experiment on each kind are, byte for byte, as earlier commits made them."""

import json

import golden
import miniatures
import pytest


@pytest.mark.parametrize("kind", miniatures.EXPERIMENTS)
def test_data_and_pairs_are_those_of_earlier_commits(finish, kind):
    """`python tests/golden.py` writes all digests; only what depends on no processor is compared here."""
    expected = json.loads(golden.STORED.read_text())[kind]
    assert golden.portable_digests(finish(kind) / miniatures.root_of(kind)) == expected
