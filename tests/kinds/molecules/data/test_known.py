"""Hashes of known molecules: all that were stored are recognised, and nothing else."""

import pytest

from pairflow.artifacts import Metadata, write_table
from pairflow.errors import InputError
from pairflow.kinds.molecules.data.known import KNOWN, KnownMolecules

SMILES = [f"C{'C' * length}O" for length in range(300)]


def test_only_stored_molecules_are_known():
    known = KnownMolecules.from_smiles(SMILES[::2])
    assert len(known.hashes) == 150
    assert all(smiles in known for smiles in SMILES[::2])
    assert not any(smiles in known for smiles in SMILES[1::2])
    assert "C" not in KnownMolecules.from_smiles([])
    # By coreutils: printf CCO | b2sum -l 64
    assert KnownMolecules.from_smiles(["CCO"]).hashes.tobytes().hex() == "6d200b6f6c9553c3"


def test_order_and_repetition_leave_no_trace_in_the_file(tmp_path):
    for name, smiles in {"a": SMILES, "b": [*SMILES[::-1], *SMILES]}.items():
        table = KnownMolecules.from_smiles(smiles).table
        write_table(tmp_path / f"{name}.parquet", table, Metadata(kind=KNOWN, vocabulary="v"))
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert SMILES[7] in KnownMolecules.load(tmp_path / "a.parquet")


def test_another_file_is_refused_by_name(tmp_path):
    (tmp_path / "x.parquet").write_text("CCO\n")
    with pytest.raises(InputError, match=r"x\.parquet: damaged, or not a Parquet file that pairflow wrote"):
        KnownMolecules.load(tmp_path / "x.parquet")
