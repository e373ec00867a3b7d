"""A user's SMILES reach RDKit whole, or are rejected with a reason; seeds and every notation alike."""

import pytest
from rdkit import rdBase

from pairflow.errors import InputError
from pairflow.kinds.molecules.data.fields import FOREIGN, LOST, LOWER, MAPPED, QUERY, read_smiles
from pairflow.kinds.molecules.structures.standardise import write_smiles


def smiles_of(text):
    with rdBase.BlockLogs():
        try:
            return write_smiles(read_smiles(text))
        except InputError as reason:
            return str(reason)


@pytest.mark.parametrize(
    ("text", "character"),
    [
        ("CCCCCC CCCC(=O)N", "a space (U+0020)"),
        ("CCOC(=O)c1ccccc1\nC(=O)OCC", "a line break (U+000A)"),
        ("CC\tO", "a tab (U+0009)"),
        ("CC\u200bO", "ZERO WIDTH SPACE (U+200B)"),
        ("CC\u00a0O", "NO-BREAK SPACE (U+00A0)"),
        ("CC\x0cO", "a control character (U+000C)"),
        ("\u0421CO", "CYRILLIC CAPITAL LETTER ES (U+0421)"),
    ],
)
def test_a_character_inside_smiles_is_named(text, character):
    assert smiles_of(text) == f"{character} inside the SMILES"


def test_a_cx_extension_is_read_and_one_that_is_cut_off_is_named():
    assert smiles_of("CCO |r|") == smiles_of("CCO\t|r|") == "CCO"
    assert "CX extension" in smiles_of("C[C@@H](O)N |&1:1,r")
    assert smiles_of("CC=CO |c:1|") == "C/C=C\\O"


def test_atom_maps_are_dropped():
    mapped = read_smiles("[CH3:1][O:2][c:3]1[cH:4][cH:5][cH:6][cH:7][cH:8]1")
    assert (write_smiles(mapped), mapped.HasProp(MAPPED)) == ("COc1ccccc1", 1)
    assert not read_smiles("c1cc:ccc1").HasProp(MAPPED)
    assert smiles_of("[13CH3:1][N+:20]([CH3:2])([CH3:3])[CH3:4]") == "C[N+](C)(C)[13CH3]"
    assert smiles_of("[CH3:1][C@:2]([CH3:3])([H:4])[OH:5]") == "CC(C)O"  # no centre without maps
    assert smiles_of("[*:1]CC[*:2]") == "*CC*"


QUERIES = ["C~c1ccccc1", "CC[#6]", "[C,N]C", "C@C", "*CO |$Q_e;;$|", "[CH3;D1]C"]
SELFIES = ["[C][C][O]", "[C][=O]", "[C][C][Branch1][C][O][N]", "[Na+1].[C][C][=Branch1][C][=O][O-1]"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("OCCCl |Sg:n:1,2::ht|", "a polymer or repeating unit"),
        ("OCCCl |LN:1:1.3|", "a polymer or repeating unit"),
        ("Cl*.Cc1ccccc1 |m:1:3.4.5|", "a substituent without a certain place"),
        ("CCO |$Boc;;$|", "an abbreviation (Boc) drawn as an atom"),
        ("CCO |$CH3;2;OH$|", "CCO"),
        *((text, QUERY) for text in QUERIES),
        *((text, "unparsable") for text in ("C1CC", "nonsense", "hello")),
        ("NC(C)(C)(C)C", "unparsable (a valence is too high): atom 2, C"),
        ("CC[c]", "unparsable (no Kekulé structure)"),
        ("NaN", "no SMILES"),
        *((text, LOWER) for text in ("ccccc", "c[c@@h]1cc(nc2cncc2)c1")),
        ("InChI=1S/CH4/h1H4", FOREIGN["InChI"]),
        ("LFQSCWFLJHTTHZ-UHFFFAOYSA-N", FOREIGN["InChIKey"]),
        ("CCO>[Na+]>CC=O", FOREIGN["reaction"]),
        ("N->[Fe]", "[NH3]->[Fe]"),
        *((text, FOREIGN["SELFIES"]) for text in SELFIES),
    ],
)
def test_what_is_no_molecule_is_named(text, reason):
    assert smiles_of(text) == reason


def test_small_molecules_in_brackets_are_smiles():
    for text in ("[Na+].[Cl-]", "[H][H]", "[CH3][CH3]", "[C]", "[O][O]", "[C-]#[O+]"):
        assert smiles_of(text) not in (*FOREIGN.values(), "unparsable")


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("C[C@H](N)O", False),
        ("C/C=C/C", False),
        ("CC(F)=[C@]=C(C)Cl", True),
        ("O[C@H]1CC[C@@]2(CC1)OCCO2", True),
        ("C/C=C1/CC[C@@H](O)CC1", True),
        ("C/C(C)=C/C", True),
    ],
)
def test_stereo_marks_that_rdkit_drops_are_known(text, lost):
    assert read_smiles(text).HasProp(LOST) == lost
