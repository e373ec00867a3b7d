"""Counts of molecules against answers worked out by hand."""

import pytest

from pairflow.kinds.molecules.counts import count

REFERENCE = {"CCO", "c1ccccc1", "CC(=O)O"}

SAMPLES = [
    "CCO",  # known
    "CCO",  # again
    "OCC",  # known, in another spelling
    "C1=CC=CC=C1",  # known, as a Kekulé structure
    "CCN",  # new
    "NCC",  # the same in another spelling
    "CCCl",  # new
    "",  # empty: not valid, though RDKit makes a molecule without atoms of it
    "C(C)(C)(C)(C)C",  # five bonds on carbon
    "C1CC",  # ring left open
    "C(C",  # branch left open
    "c1ccc1C<mask>",  # no molecule
]


def test_by_hand():
    assert count(SAMPLES, REFERENCE) == {
        "valid": 7,
        "unique": 6,  # CCO OCC C1=CC=CC=C1 CCN NCC CCCl
        "novel": 5,  # all but CCO
        "unique_strict": 4,  # ethanol, benzene, ethylamine, chloroethane
        "novel_strict": 2,  # ethylamine, chloroethane
    }


def test_stereoisomers_are_different_molecules():
    counts = count(["C[C@H](N)O", "C[C@@H](N)O", "CC(N)O"], {"CC(N)O"})
    assert (counts["unique_strict"], counts["novel_strict"]) == (3, 2)


@pytest.mark.parametrize("samples", [[], ["", "x"]])
def test_nothing_is_valid_and_rdkit_silent(samples, capfd):
    assert set(count(samples, REFERENCE).values()) == {0}
    assert capfd.readouterr() == ("", "")
