"""Groups: how molecules are cut and put together, what cannot be written, and scaffolds of groups."""

import re
import time

import numpy as np
import pytest
import torch
from rdkit import Chem, rdBase

import pairflow
from pairflow import published
from pairflow.config import DemandSettings
from pairflow.errors import InputError
from pairflow.flow.samplers import FREE
from pairflow.generate.demand import SampleStream
from pairflow.kinds.molecules.data import library
from pairflow.kinds.molecules.data.groups import (
    LONGEST_GROUP,
    MIXTURE,
    fill_groups,
    join_groups,
    tokenize_groups,
)
from pairflow.kinds.molecules.data.prepare import BOS, EOS, PAD, SPECIALS, Vocabulary, prepare
from pairflow.kinds.molecules.on_demand.scaffolds import Growth, read_scaffolds
from pairflow.kinds.molecules.settings import Molecules
from pairflow.kinds.molecules.structures.descriptors import ring_systems

DRUGS = [
    "CC(=O)Nc1ccc(O)cc1",
    "Cc1ccc(-c2cc(C(F)(F)F)nn2-c2ccc(S(N)(=O)=O)cc2)cc1",
    "C[C@H](N)C(=O)O",
    "C[C@@H](N)C(=O)O",
    "N[C@@H]1CC[C@H](O)CC1",
    "C[C@]1(O)CC[NH+](C)C1",
    "O=[N+]([O-])c1ccccc1",
    r"C/C(=C\c1ccccc1)C(N)=O",
    "C/C=C/C=C/C(=O)O",
    "C/C=C/C=C\\C(=O)O",
    "CN1C(=O)[C@]2(SCCN2C(=O)c2cccc(Cl)c2)c2ccccc21",
    "O=C1NC(=O)C2(CCCC2)N1Cc1ccncc1",
    "[13CH4]",
    "N",
]
TOKENS = {
    "CCO": ["C*", "*C*", "*O"],
    "CC(=O)Nc1ccc(O)cc1": ["C*", "*C(=O)*", "*N*", "*c1ccc(*)cc1", "*O"],
    "c1ccccc1": ["c1ccccc1"],
    "CC(C)C#N": ["C*", "*C(*)*", "*C", "*C#N"],
    "C[N+](=O)[O-]": ["C*", "*[N+](=O)[O-]"],  # no cut between charges
    "C[C@@H](O)F": ["C*", "*[C@@H](*)*", "*O", "*F"],
    "C=CC=C": ["C=C*", "*C=C"],
}


@pytest.mark.parametrize(("smiles", "tokens"), TOKENS.items(), ids=TOKENS)
def test_known_answers(smiles, tokens):
    assert tokenize_groups(smiles) == tokens
    assert join_groups(tokens) == smiles


@pytest.mark.parametrize(
    ("tokens", "smiles"),
    [
        (["C*"], "C"),  # a hydrogen atom where no token hangs
        (["*C*", "*C"], "CC"),
        (["*C(=O)*"], "C=O"),
        (["C*", "*O", "*N"], "CO"),  # no place is left for the nitrogen
        (["C*", "*O", "*C(=O)*"], "CC(=O)O"),  # the oxygen waits for a token with a further place
        (["C*", "*O", "*C(=O)*", "*N"], "CC(=O)O"),
        (["C*", "c1ccccc1*", "*O"], "CO"),  # a first token cannot hang on another
        (["c1ccccc1*", "*c1ccc(*)cc1", "*c1ccccc1"], "c1ccc(-c2ccc(-c3ccccc3)cc2)cc1"),  # rings in rings
        (["F/C=C/*", "*/C=C/*", "*F"], "F/C=C/C=C/F"),
        (["F/C=C/*", "*\\C=C\\*", "*F"], "F/C=C/C=C/F"),  # the same group
        ([], ""),
        (["C*", "<mask>", "*O"], "C*<mask>*O"),
    ],
)
def test_any_row_of_groups_has_a_meaning(tokens, smiles):
    assert join_groups(tokens) == smiles


def test_drugs_come_back_whatever_their_spelling():
    for text in DRUGS:
        for other in (Chem.CanonSmiles(text), Chem.MolToSmiles(Chem.MolFromSmiles(text), canonical=False)):
            assert join_groups(tokenize_groups(other)) == Chem.CanonSmiles(text)


def test_a_molecule_may_be_a_very_long_chain():
    """Longer than Python calls functions within functions."""
    tokens = ["C*", *["*C*"] * 1998, "*C"]
    assert join_groups(tokens) == "C" * 2000


def rings(text):
    """The ring systems of a molecule, without the hydrogen atoms of nitrogen."""
    return {re.sub(r"\[([nN])H\d?\+?\]", r"\1", system) for system in ring_systems(Chem.MolFromSmiles(text))}


def test_rows_of_random_groups_are_molecules_without_new_ring_systems():
    """The ring systems of a molecule are whole in its groups, so that rows of these have no other."""
    known = set().union(*map(rings, DRUGS))
    symbols = sorted({token for text in DRUGS for token in tokenize_groups(Chem.CanonSmiles(text))})
    for row in np.random.default_rng(0).choice(symbols, (300, 12)):
        text = join_groups([*row])
        assert Chem.MolFromSmiles(text), row
        assert rings(text) <= known, row


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        *((text, "groups cannot write it") for text in ("*CC", "c1cccc1")),
        ("C.N", MIXTURE),
        # Double bonds that share a bond: of ZINC-250k 14 of 249,455 molecules are rejected for them.
        (r"CCOC(=O)/C=C(C)\N=N\C(N)=O", "its groups stand for another molecule"),
        (f"C1{'C' * 198}1", "has a group that RDKit cannot read, or of over 200 characters"),
    ],
)
def test_what_groups_cannot_write(smiles, reason):
    with pytest.raises(InputError, match=f"^{reason}$"):
        tokenize_groups(smiles)
    assert len(f"C1{'C' * 198}1") > LONGEST_GROUP >= len(longest := f"C1{'C' * 196}1")
    assert tokenize_groups(longest)


def test_molecules_with_rare_groups_are_left_out():
    """Groups are counted once in a molecule, before any is left out; a too long molecule does not count."""
    texts = ["CCO", "CCC", "CCN", "CC", "CCCl", "OCCO", "CC(C)C", "CCCCCCCCN"]
    options = {"length": 8, "representation": "groups", "validation_fraction": 0.3, "max_too_long_share": 0.5}
    rows = [library.Row(k, text) for k, text in enumerate(texts, 10)]
    prepared = prepare(rows, Molecules(source="x.smi", min_count=2, **options))
    assert prepared.smiles[["row", "smiles"]].values.tolist() == [[0, "CCO"], [1, "CCC"], [3, "CC"]]
    assert prepared.vocabulary.tokens[len(SPECIALS) :] == ("*C", "*C*", "*O", "C*")
    table = zip(prepared.smiles["split"], prepared.smiles["smiles"], strict=True)
    trained = [text for split, text in table if split == "train"]
    assert [*map(prepared.vocabulary.decode, prepared.train)] == trained
    assert prepared.rejected[["row", "text", "reason", "line"]].values.tolist() == [
        [2, "CCN", "rare token *N (fewer than 2 molecules)", 12],
        [4, "CCCl", "rare token *Cl (fewer than 2 molecules)", 14],
        [5, "OCCO", "rare token O* (fewer than 2 molecules)", 15],
        [6, "CC(C)C", "rare token *C(*)* (fewer than 2 molecules)", 16],
        [7, "CCCCCCCCN", "too long (9 tokens, limit 6)", 17],
    ]


@pytest.mark.parametrize(
    ("start", "parts", "smiles"),
    [
        ("*N1CCN(*)CC1", [["C*"], "*N1CCN(*)CC1", ["*C*", "*O"]], "CN1CCN(CO)CC1"),
        ("c1ccccc1*", ["c1ccccc1*", ["*C(*)*", "*F"]], "FCc1ccccc1"),
        ("*c1ccccc1", [["C*", "*C(=O)*"], "*c1ccccc1"], "CC(=O)c1ccccc1"),
        ("*c1ccccc1", [["C=O"], "*c1ccccc1"], "C=O"),  # no place for the ring, which is lost
        ("C1CC1*C1CC1", ["C1CC1*", ["*C(*)*", "*O"], "*C1CC1"], "OC(C1CC1)C1CC1"),
        ("C1CC1*C1CC1", ["C1CC1*", ["*O"], "*C1CC1"], "OC1CC1"),
    ],
)
def test_each_gap_of_a_scaffold_is_put_together_by_itself(start, parts, smiles):
    assert Chem.CanonSmiles(fill_groups(start, parts)) == smiles


def test_a_special_symbol_in_a_gap_is_no_molecule():
    with rdBase.BlockLogs():
        for gap in (["*C*", "<mask>"], ["*C", "<unk>"], ["<pad>"]):
            assert Chem.MolFromSmiles(fill_groups("c1ccccc1*", ["c1ccccc1*", gap])) is None


def test_rows_of_a_scaffold_that_only_hangs_on_other_groups():
    """No molecule begins with the ring here, so what grows comes first. It takes all tokens that are left."""
    words = Vocabulary(kind="groups").extended(tokenize_groups("CCN1CCN(C)CC1"))
    grown = Growth(read_scaffolds("CN1CCN(*)CC1")[0], words, 12, lambda: [6, 7], np.random.default_rng(0))
    texts = {
        tuple("?" if token == FREE else words.tokens[token] for token in row if token not in (BOS, EOS, PAD))
        for row in grown.given.tolist()
    }
    assert texts == {("?",) * free + ("*N1CCN(*)CC1", "*C") for free in (4, 5)}


@pytest.mark.parametrize(
    "token", ["*" + "C" * 200, "C" * 201, "*c1cc", "*C(", "*Xx", "*.C", "C(C)(C)(C)(C)C", "hello", "<x>", ""]
)
def test_a_vocabulary_holds_only_groups_that_rdkit_reads(token):
    """Otherwise a few tokens could be a molecule of thousands of atoms."""
    with pytest.raises(ValueError, match="a vocabulary holds tokens of groups; found '"):
        Vocabulary(kind="groups", tokens=(*SPECIALS, "*C", token))


def test_a_shipped_vocabulary_of_groups_loads_at_once():
    started = time.process_time()
    vocabulary = Vocabulary.load(published.locate("zinc250k") / "vocabulary.json")
    assert vocabulary.size == 1926
    assert time.process_time() - started < 2


def heavy_atoms(smiles):
    return Chem.MolFromSmiles(smiles.replace("*", "[2H]")).GetNumHeavyAtoms()


def test_the_grammar_accepts_whole_molecules_and_no_other_rows():
    symbols = {token for text in DRUGS for token in tokenize_groups(Chem.CanonSmiles(text))}
    vocabulary, length = Vocabulary(kind="groups").extended(symbols), 16
    whole = torch.tensor([vocabulary.encode(Chem.CanonSmiles(text), length) for text in DRUGS])
    noise = torch.full((len(DRUGS), length, vocabulary.size), 1e-6, dtype=torch.float64)
    grammar = vocabulary.grammar(length)
    assert torch.equal(grammar.mode(noise.scatter(-1, whole[..., None], 1.0)), whole)
    drawn = grammar.draw(torch.ones((300, length, vocabulary.size), dtype=torch.float64))
    for row in drawn.tolist():
        text, tokens = vocabulary.decode(row), vocabulary.symbols(row)
        assert heavy_atoms(text) == sum(map(heavy_atoms, tokens)), tokens
    assert Vocabulary(kind="smiles").grammar(length) is None


def test_a_model_of_groups_makes_rows_that_fit_together():
    model, grammar = pairflow.load("zinc250k"), {"nfe": 1, "greedy_tail": False, "grammar": True}
    rows = model.sample(64, **grammar)
    vocabulary = Vocabulary.load(published.locate("zinc250k") / "vocabulary.json")
    for row in rows:
        assert heavy_atoms(vocabulary.decode(row)) == sum(map(heavy_atoms, vocabulary.symbols(row)))
    assert SampleStream("zinc250k", DemandSettings(count=1)).model.grammar
    with pytest.raises(InputError, match=r"^grammar: only for molecules in groups; .*qm9 has others$"):
        pairflow.load("qm9").sample(1, **grammar)
