"""Which samples are kept: known answers for each filter, alone and together."""

import pytest

from pairflow.kinds.molecules.selection import Selection


def small(molecule):
    return molecule.GetNumAtoms() < 9


def has_nitrogen(molecule):
    return any(atom.GetSymbol() == "N" for atom in molecule.GetAtoms())


SAMPLES = ["CCO", "OCC", "C(", "", "C#N", "CCO", "<mask>", "CN"]


@pytest.mark.parametrize(
    ("options", "kept", "counts", "shares"),
    [
        (
            {"raw": True},
            SAMPLES,
            {"kept": 5, "invalid": 3},
            {"valid": 5 / 8},
        ),
        (
            {},
            ["CCO", "CCO", "C#N", "CCO", "CN"],
            {"kept": 5, "invalid": 3},
            {"valid": 5 / 8},
        ),
        (
            {"unique": True},
            ["CCO", "C#N", "CN"],
            {"kept": 3, "invalid": 3, "repeated": 2},
            {"valid": 5 / 8, "--unique": 3 / 5},
        ),
        (
            {"known": {"CCO"}},
            ["C#N", "CN"],
            {"kept": 2, "invalid": 3, "known": 3},
            {"valid": 5 / 8, "--novel": 2 / 5},
        ),
        (
            {"unique": True, "known": {"CN"}},
            ["CCO", "C#N"],
            {"kept": 2, "invalid": 3, "repeated": 2, "known": 1},
            {"valid": 5 / 8, "--novel": 4 / 5, "--unique": 2 / 4},
        ),
        (
            {"unique": True, "filters": {"--a": small, "--b": has_nitrogen}},
            ["C#N", "CN"],
            {"kept": 2, "invalid": 3, "refused by --b": 3},
            {"valid": 5 / 8, "--unique": 1, "--a": 1, "--b": 2 / 5},
        ),
    ],
)
def test_each_sample_is_kept_or_counted_by_the_first_reason(options, kept, counts, shares):
    selection = Selection(**options)
    actual = [selection.keep(text) for text in SAMPLES]
    assert [text for text in actual if text is not None] == kept
    assert selection.counts == counts
    assert selection.shares() == shares


def test_a_molecule_whose_canonical_smiles_rdkit_cannot_read_back_is_invalid(monkeypatch):
    written = {"a": "b", "b": None, "C": "C"}
    monkeypatch.setattr("pairflow.kinds.molecules.selection.canonical", written.get)
    selection = Selection()
    assert [selection.keep(text) for text in ("a", "C")] == [None, "C"]
    assert selection.counts == {"invalid": 1, "kept": 1}


def test_what_came_since_the_last_that_was_kept_is_counted_apart():
    selection = Selection(unique=True)
    for text in ["C(", "CCO", "OCC", "C(", "C("]:
        selection.keep(text)
    assert selection.since == {"repeated": 1, "invalid": 2}
    selection.keep("CN")
    assert selection.since.total() == 0
