"""SDF files as vendors write them: names and numbers in data items, queries, lines that end in blanks."""

import pytest
from rdkit import Chem
from rdkit.Chem import AllChem

from pairflow.errors import InputError
from pairflow.kinds.molecules.data.draft import _read_head
from pairflow.kinds.molecules.data.fields import QUERY, Row
from pairflow.kinds.molecules.data.library import data_items, read_fields, read_rows
from pairflow.kinds.molecules.data.prepare import prepare
from pairflow.kinds.molecules.settings import Molecules, NewLibrary

ATOM = "    0.0000    0.0000    0.0000 {:<3} 0  0  0  0  0  0  0  0  0  0  0  0\n"


def record(symbol="N", bond=1, more="", items="", title=""):
    """A record of a carbon atom with a bond to another one."""
    counts = "  2  1  0  0  0  0  0  0  0  0999 V2000\n"
    block = f"{ATOM.format('C')}{ATOM.format(symbol)}  1  2  {bond}  0\n{more}"
    return f"{title}\n  own\n\n{counts}{block}M  END\n{items}$$$$\n"


def group(kind, label, *atoms):
    """The lines of an S-group."""
    listed = "".join(f"{atom:4}" for atom in atoms)
    return f"M  STY  1   1 {kind}\nM  SAL   1{len(atoms):3}{listed}\nM  SMT   1 {label}\n"


@pytest.fixture
def read(tmp_path):
    def read(*records, column="smiles"):
        (tmp_path / "a.sdf").write_text("".join(records))
        return [(row.text, row.name, row.reason) for row in read_rows(tmp_path / "a.sdf", column)]

    return read


def test_queries_are_rejected_and_blanks_at_the_end_break_no_record(read):
    listed = "M  ALS   2  2 F F   Br  \n"
    unsaturated = "M  UNS  1   1   1\n"
    hydrogens = record().replace(
        "C   0  0  0  0", "C   0  0  0  1"
    )  # one column of the atom: without hydrogen
    assert read(hydrogens) == [("", "", QUERY)]
    queries = (("L", 1, listed), ("A", 1), ("Q", 1), ("N", 8), ("N", 5), ("N", 1, unsaturated))
    assert read(*(record(*query) for query in queries)) == [("", "", QUERY)] * len(queries)
    groups = read(record("R#", 1, "M  RGP  1   2   1\n"), record("*"), record().replace("END", "END  "))
    assert groups == [("[1*]C", "", ""), ("*C", "", ""), ("CN", "", "")]


def test_names_and_numbers_are_read_from_data_items(read, tmp_path):
    items = "> 25 <IDNUMBER> (7)\nZ1\n\n>  <pIC50>\n5.0\n\n> <note>\ntwo\nlines\n\n"
    records = record(items=items), record("O", title="own name", items="> <pIC50>\n6\n\n> <CAS>\n64-17-5\n")
    assert read(*records) == [("CN", "Z1", ""), ("CO", "own name", "")]
    assert [*read_fields(tmp_path / "a.sdf", "pIC50")] == [(1, "5.0", ""), (2, "6", "")]
    assert data_items(tmp_path / "a.sdf", 9)["note"] == ["two\nlines", ""]
    assert [name for _, name, _ in read(*records, column="CAS")] == ["", "64-17-5"]
    with pytest.raises(InputError, match="no data item 'x'"):
        read(*records, column="x")


def test_structures_are_those_of_the_records_whatever_column_is_chosen(read, tmp_path):
    assert read(record(items="> <SMILES>\nCCO\n\n"), column="SMILES") == [("CN", "CCO", "")]
    *_, title = _read_head(tmp_path / "a.sdf", NewLibrary(column="SMILES"))
    assert title == "SDF, the structures of its records, names in 'SMILES'"


def test_records_that_run_into_each_other_are_one_rejected_row(read):
    joined = record(title="first").removesuffix("$$$$\n") + record(title="second")
    reason = "several lines M  END in a record: is a line $$$$ missing?"
    assert read(joined, record("O")) == [("first", "", reason), ("CO", "", "")]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("A    1\nBoc\n", "an abbreviation (Boc) drawn as an atom"),
        ("V    1 R1\n", "an abbreviation (R1) drawn as an atom"),
        ("G    1  2\nPh\n", "an abbreviation (Ph) drawn as an atom"),
        (group("SUP", "CF3", 1), "an abbreviation (CF3) drawn as an atom"),
        (group("SRU", "n", 1), "a polymer or repeating unit"),
        ("M  APO  1   1   1\n", "an attachment point"),
        *((more, "") for more in ("A    1\nH3C\n", "V    1 0.5\n", group("SUP", "MeNH2", 1, 2))),
        *((group(kind, "x", 1), "") for kind in ("DAT", "GEN", "MUL")),
    ],
)
def test_a_drawing_of_more_than_a_molecule_is_rejected(read, more, reason):
    assert read(record(more=more)) == [("", "", reason) if reason else ("CN", "", "")]


def version_3000(*lines):
    atoms = [f"{number} {line}" for number, line in enumerate(lines[:4], 1)]
    content = ["COUNTS 4 3 0 0 0", "BEGIN ATOM", *atoms, "END ATOM"]
    content += ["BEGIN BOND", *lines[4:7], "END BOND", *lines[7:]]
    ctab = "".join(f"M  V30 {line}\n" for line in ["BEGIN CTAB", *content, "END CTAB"])
    return f"\n  own\n\n  0  0  0     0  0            999 V3000\n{ctab}M  END\n$$$$\n"


CENTRE = ("C 0 0 0 0", "C 1.2 0.6 0 0", "O 2.4 0 0 0", "N 1.2 1.8 0 0", "1 1 1 2", "2 1 2 3", "3 1 2 4 CFG=1")


def test_racemic_centres_are_marked_and_kept_as_drawn(read, capsys):
    collection = "BEGIN COLLECTION", "MDLV30/STERAC1 ATOMS=(1 2)", "END COLLECTION"
    (drawn, *_), (racemic, *_) = read(version_3000(*CENTRE), version_3000(*CENTRE, *collection))
    assert racemic.endswith(" |&1:1|")
    assert Chem.CanonSmiles(racemic.split()[0]) == Chem.CanonSmiles(drawn) == "C[C@@H](N)O"
    found = prepare([Row(1, racemic)] * 9, Molecules(source="x.smi", length=20))
    assert set(found.smiles["smiles"]) == {drawn}
    assert "note: 9 molecules have racemic or relative stereocentres" in capsys.readouterr().err


def test_axes_that_are_drawn_are_counted(tmp_path, capsys):
    """An allene and a biaryl, each drawn in both forms, with a stereocentre and a wavy bond, which lose
    nothing. RDKit writes both forms of an axis alike."""
    allene = Chem.MolFromSmiles("CC(F)=C=C(C)Cl")
    biaryl = Chem.MolFromSmiles("Cc1cccc(Br)c1-c1c(C)cccc1Br")
    centre = Chem.MolFromSmiles("C[C@H](N)O")
    blocks = []
    for molecule in (allene, biaryl, centre, Chem.MolFromSmiles("CC(N)O")):
        AllChem.Compute2DCoords(molecule)
        blocks.append(Chem.MolToMolBlock(molecule))
    first = [blocks[0].replace("  1  2  1  0", f"  2  1  1  {way}") for way in (1, 6)]
    bond = next(line for line in blocks[1].splitlines() if line[:9] == "  7  1  1" or line[:6] == "  6  8")
    second = [blocks[1].replace(bond, f"{bond[:9]}  {way}") for way in (1, 6)]
    wavy = blocks[3].replace("  1  2  1  0", "  2  1  1  4")
    (tmp_path / "a.sdf").write_text("".join(f"{block}$$$$\n" for block in (*first, *second, blocks[2], wavy)))
    rows = [*read_rows(tmp_path / "a.sdf", "smiles")]
    assert [row.lost for row in rows] == [True] * 4 + [False] * 2
    prepare(rows, Molecules(source="x.smi", length=30, validation_fraction=0.3))
    assert "note: 4 molecules have stereo marks that RDKit drops" in capsys.readouterr().err


def test_a_substituent_without_a_place_is_rejected(read):
    atoms = "C 0 0 0 0", "C 1 0 0 0", "* 1 1 0 0", "Cl 3 1 0 0"
    bonds = "1 1 1 2", "2 1 1 2", "3 1 3 4 ENDPTS=(2 1 2) ATTACH=ANY"
    text = version_3000(*atoms, *bonds).replace("M  V30 2 1 1 2\n", "").replace("4 3 0", "4 2 0")
    assert read(text) == [("", "", "a substituent without a certain place")]
    attached = version_3000("C 0 0 0 0 ATTCHPT=1", *CENTRE[1:])
    assert read(attached) == [("", "", "an attachment point")]


def test_radicals_and_faults_of_atom_lines_are_read(read):
    radical = record().replace("C   0  0  0  0  0", "C   0  4  0  0  0", 1)
    reason = "broken record (a valence is too high): atom 2, O"
    assert read(radical, record("O", 3)) == [("[CH2]N", "", ""), ("", "", reason)]


def test_poses_of_a_protonated_amine_are_one_molecule(read):
    """Its nitrogen inverts freely, unlike the carbon that is a stereocentre."""
    poses = []
    for tag in ("@", "@@"):
        pose = Chem.AddHs(Chem.MolFromSmiles(f"CC[N{tag}H+](CCO)C[C@H](F)C"))
        assert AllChem.EmbedMolecule(pose, randomSeed=1) == 0
        poses.append(Chem.MolToMolBlock(pose) + "$$$$\n")
    (first, *_), (second, *_) = read(*poses)
    assert first == second == "CC[NH+](CCO)C[C@@H](C)F"
