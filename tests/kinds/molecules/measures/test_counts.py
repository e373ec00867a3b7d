"""Counts of molecules by hand, and why strings are none, against RDKit's own messages."""

import logging
import random

import pytest
from rdkit import Chem, rdBase

from pairflow.kinds.molecules.data.representations import tokenize
from pairflow.kinds.molecules.measures.counts import REASONS, canonical, count, count_reasons, reason

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
    by_hand = {
        "valid": 7,
        "unique": 6,  # CCO OCC C1=CC=CC=C1 CCN NCC CCCl
        "novel": 5,  # all but CCO
        "unique_strict": 4,  # ethanol, benzene, ethylamine, chloroethane
        "novel_strict": 2,  # ethylamine, chloroethane
    }
    counted = count(SAMPLES, REFERENCE)
    assert {name: counted[name] for name in by_hand} == by_hand
    # stereoisomers are different molecules
    counts = count(["C[C@H](N)O", "C[C@@H](N)O", "CC(N)O"], {"CC(N)O"})
    assert (counts["unique_strict"], counts["novel_strict"]) == (3, 2)


@pytest.mark.parametrize("samples", [[], ["", "x"]])
def test_nothing_is_valid_and_rdkit_silent(samples, capfd):
    assert set(count(samples, REFERENCE).values()) == {0}
    assert capfd.readouterr() == ("", "")


WRONG = {
    "empty": [""],
    "syntax": [
        *("C(C", "CC)C", "C()C", "(C)C", "C==C", "=C", "CC-", "C.", "[C", "1CC1", "C%1", "C<mask>", "C1C(C")
    ],
    "ring": ["C1CC", "C11", "C1C1", "C12CC12", "C1CC2", "C%10CC", "[13CH3]C1", "C=1CC"],
    "valence": ["C(C)(C)(C)(C)C", "[CH5]", "CF(C)C", "C1CC[n-](C)CC1"],
    "kekulize": ["cccc", "n1cccc1", "c1ccccc1c", "c1ccc1c"],
}


def test_constructed():
    texts = {text: name for name in REASONS for text in WRONG[name]}
    assert [text for text in texts if canonical(text) is not None] == []
    assert {text: reason(text) for text in texts} == texts
    # digits in brackets and rings that share a number are no ring faults
    assert canonical("[13CH3][C@@H]1CC1C1CC1") is not None
    assert reason("[13CH3]C1CC1C1CC1(C)(C)(C)") == "valence"
    assert count_reasons(texts) == {f"invalid_{name}": len(WRONG[name]) for name in REASONS}
    assert set(count_reasons([]).values()) == {0}


def test_every_reason_is_the_one_that_rdkit_prints(caplog):
    """On molecules with a few tokens exchanged, dropped or put in."""
    draw = random.Random(0)
    molecules = [
        *("CC(=O)Oc1ccccc1C(=O)O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "c1ccc2[nH]ccc2c1", "C[C@H](N)C(=O)O"),
        *("O=C1CCC(N2C(=O)c3ccccc3C2=O)C(=O)N1", "CC(C)Cc1ccc(C(C)C(=O)O)cc1"),
        *("C1CC2CC1C2", "C[n+]1cc[nH]c1"),
    ]
    words = sorted({token for text in molecules for token in tokenize(text)})
    actual = dict.fromkeys(REASONS, 0)
    rdBase.LogToPythonLogger()
    try:
        for _ in range(1500):
            tokens = tokenize(draw.choice(molecules))
            for _ in range(draw.randint(1, 3)):
                place = draw.randrange(len(tokens))
                tokens[place : place + draw.randint(0, 1)] = draw.choice([[], [draw.choice(words)]])
            text = "".join(tokens)
            caplog.clear()
            with caplog.at_level(logging.INFO, logger="rdkit"):
                molecule = Chem.MolFromSmiles(text)
            if molecule is None:
                assert reason(text) == _printed(caplog.text), text
                actual[reason(text)] += 1
    finally:
        rdBase.LogToCppStreams()
    assert all(actual[name] > 20 for name in REASONS[1:])


def _printed(message: str) -> str:
    message = message.lower()
    if "unclosed ring" in message or "ring closure" in message:
        return "ring"
    if "parse error" in message:
        return "syntax"
    return "valence" if "valence" in message else "kekulize"
