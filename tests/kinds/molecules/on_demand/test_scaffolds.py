"""Scaffolds that samples keep: how they are written, their gaps, and the molecules that samples become."""

import re
from itertools import chain

import numpy as np
import pytest
from rdkit import Chem
from selfies import get_semantic_robust_alphabet

from pairflow.errors import InputError
from pairflow.flow.samplers import FREE
from pairflow.kinds.molecules.data.groups import spell_groups, tokenize_groups
from pairflow.kinds.molecules.data.prepare import EOS, Vocabulary
from pairflow.kinds.molecules.data.representations import graft_selfies, tokenize
from pairflow.kinds.molecules.on_demand.scaffolds import Growth, read_scaffolds

SULFONAMIDE, INDOLE = "c1ccc(S(N)(=O)=O)cc1", "c1ccc2[nH]ccc2c1"
STARTS = {
    "*C": ["C*"],
    "*c1ccc(S(N)(=O)=O)cc1": ["c1cc(S(N)(=O)=O)ccc1*"],
    "[*:1]N1CCN([2*])CC1": ["C1CN(*)CCN1*"],
    SULFONAMIDE: [
        "c1c(S(N)(=O)=O)cccc1*",
        "NS(=O)(=O)c1ccccc1*",
        "O=S(=O)(c1ccccc1)N*",
        "c1cc(S(N)(=O)=O)ccc1*",
    ],
    "c1cc[nH]c1": ["[nH]1cccc1*", "c1cccn1*", "c1[nH]ccc1*"],
    "*[C@H](N)C(=O)O": ["N[C@H](C(=O)O)*"],
    "O=C(*)c1ccccc1": ["O=C(c1ccccc1)*"],
    "*c1ccccc1.*C1CC1": ["c1ccccc1*C1CC1", "C1CC1*c1ccccc1"],
    "*c1ccc2c(c1)C(=O)NC2=O": ["N1C(=O)c2ccc(cc2C1=O)*"],  # found at random
}
GROWN = [*STARTS, INDOLE, "*c1ccc(*)c(Cl)c1", "*C1CCN(*)C1=O", "*C(=O)N1CCC(*)CC1", "CC(C)(*)N*"]


def groups(text):
    """The groups of a scaffold in all its spellings, each gap a carbon atom."""
    starts = chain.from_iterable(map(spell_groups, read_scaffolds(text)[0][0].starts))
    return {token for start in starts for token in tokenize_groups(start.replace("*", "C"))}


WORDS = {
    "smiles": Vocabulary().extended({token for text in GROWN for token in tokenize(Chem.CanonSmiles(text))}),
    "selfies": Vocabulary(kind="selfies").extended({"[C@H1]", "[C@@H1]"} | get_semantic_robust_alphabet()),
    "groups": Vocabulary(kind="groups").extended({"*C*"}.union(*map(groups, GROWN))),
}
CARBON = {
    kind: WORDS[kind].tokens.index(token)
    for kind, token in {"smiles": "C", "selfies": "[C]", "groups": "*C*"}.items()
}


def growth(text, kind="selfies", totals=(30, 40, 60), length=72):
    words = WORDS[kind].extended({"[C@H]", "[C@@H]"}) if kind == "smiles" else WORDS[kind]
    return Growth(read_scaffolds(text)[0], words, length, lambda: totals, np.random.default_rng(0))


@pytest.mark.parametrize(("text", "starts"), STARTS.items(), ids=STARTS)
def test_scaffolds_are_written_so_that_they_end_where_they_grow(text, starts):
    [scaffold], files = read_scaffolds(text)
    assert (scaffold.starts, scaffold.text, files) == (starts, text, ())
    for start in starts:
        plain = Chem.MolFromSmiles(start.replace("*", "C"))
        assert plain.GetNumAtoms() >= scaffold.atoms
        assert plain.HasSubstructMatch(scaffold.query)


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("text", GROWN)
def test_with_carbon_in_its_gaps_every_row_is_a_molecule_with_the_scaffold(text, kind):
    """The molecule is the one that all symbols of the row write: the given ones are in it as they are."""
    grown = growth(text, kind)
    for given in grown.given[:40].tolist():
        tokens = [CARBON[kind] if token == FREE else token for token in given]
        if given[-1] == FREE:
            tokens[-1:] = [EOS]
        smiles = Chem.CanonSmiles(grown.assemble(tokens))
        if kind != "groups":  # whose gaps are put together by themselves, see test_groups.py
            assert smiles == Chem.CanonSmiles(grown.vocabulary.decode(tokens))
        assert grown.is_kept(Chem.MolFromSmiles(smiles))


@pytest.mark.parametrize("text", ["*c1ccc(*)c(Cl)c1", "*C1CCN(*)C1=O", "*c1ccccc1.*C1CC1"])
def test_whatever_selfies_fill_the_gaps_no_ring_of_the_scaffold_opens(text):
    grown, generator, kept = growth(text), np.random.default_rng(1), 0
    scaffold = Chem.MolFromSmiles(text.replace("(*)", "").replace("*", ""))
    for given in grown.given[:100].tolist():
        symbols = generator.integers(10, grown.vocabulary.size, len(given)).tolist()
        tokens = [own if token == FREE else token for token, own in zip(given, symbols, strict=True)]
        molecule = Chem.MolFromSmiles(grown.assemble(tokens))
        assert molecule.HasSubstructMatch(scaffold)
        kept += grown.is_kept(molecule)
    assert kept > 10


def test_the_first_gap_has_any_length_that_leaves_a_token_for_the_end():
    """Of 15 symbols the ring `C1CN()CCN1` has ten."""
    rows = growth("*N1CCN(*)CC1", "smiles", totals=(15,)).given.numpy()
    close = WORDS["smiles"].tokens.index(")")
    lengths, counts = np.unique((rows == close).argmax(1) - 6, return_counts=True)
    assert lengths.tolist() == [1, 2, 3, 4]
    assert abs(counts / len(rows) - 0.25).max() < 4 * np.sqrt(0.25 * 0.75 / len(rows))
    long = growth("*N1CCN(*)CC1", "smiles", totals=(70,), length=14).given
    assert ((long == close).int().argmax(1) == 7).all()  # what does not fit becomes one token


@pytest.mark.parametrize(
    ("symbols", "link", "smiles"),
    [
        ("[=C][O]", False, "CO"),
        ("[C][=C][C][=C][C][=C][Ring1][=Branch1]", False, "C%51=CC=CC=C%51"),
        ("[C][Branch1][P][O]", False, "CO"),  # a branch that would be longer than the gap
        ("[Ring1]", False, "[H]"),
        ("", True, ""),
        ("[C][=O]", True, "C=O."),
        ("[O][C]", True, "OC"),
        ("[C]<mask>", False, "[C]<mask>"),
    ],
)
def test_a_group_is_read_by_itself(symbols, link, smiles):
    assert graft_selfies(re.findall(r"[<\[][^<\[]+", symbols), link) == smiles


def test_scaffolds_of_a_file_take_turns(tmp_path):
    (path := tmp_path / "cores.smi").write_text(f"*C1CC1 ring\n{SULFONAMIDE} drug\n")
    grown = growth(str(path))
    names = []
    for given in (*grown.given[:8], *grown.given[:2]):  # the eight rows, and two of the next turn
        grown.assemble([EOS if token == FREE else token for token in given.tolist()])
        names.append(grown.scaffold.name)
    assert (names, len(grown.given)) == (["ring", "drug"] * 5, 8)
    assert len({tuple(row) for row in grown.given.tolist()}) == 5  # one start and four
    (path := tmp_path / "bad.smi").write_text("*C1CC1\nFC(F)(F)F\n")
    with pytest.raises(InputError, match=r"^scaffold: .*bad\.smi, line 2: 'FC.*': no atom has a free"):
        read_scaffolds(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c1cc(", "'c1cc(': unparsable"),
        ("FC(F)(F)F", "'FC(F)(F)F': no atom has a free valence"),
        ("C*C", "'C*C': an attachment point * needs one single bond"),
        ("C.C", "'C.C': expected one fragment, or two with one attachment point * each"),
        ("*I(=O)=O", "SELFIES cannot write it"),
    ],
)
def test_what_is_no_scaffold_is_refused_in_one_line(text, message):
    with pytest.raises(InputError) as error:
        growth(text)
    assert str(error.value) == f"scaffold: {message}"


@pytest.mark.parametrize(
    ("text", "molecule", "kept"),
    [
        ("*c1ccccc1", "Cc1ccccc1", True),
        ("*c1ccccc1", "Cc1ccc(C)cc1", False),  # grown where it may not
        ("*c1ccccc1", "c1ccccc1", False),  # not grown
        ("c1ccccc1", "c1ccc2ccccc2c1", True),
        ("c1ccccc1", "c1ccccc1", False),
        ("*c1ccccc1.*C1CC1", "c1ccccc1C1CC1", True),
        ("*c1ccccc1.*C1CC1", "c1ccccc1CCC1CC1", True),
        ("*c1ccccc1.*C1CC1", "Fc1ccccc1.C1CC1", False),
    ],
)
def test_a_scaffold_is_kept_if_it_has_grown_and_only_where_it_may(text, molecule, kept):
    assert growth(text).is_kept(Chem.MolFromSmiles(molecule)) == kept
