"""The evaluate step on samples made by hand: real files, all metrics, and every mistake in one line."""

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

from pairflow.artifacts import Metadata, atomic, read_table, token_column, write_table
from pairflow.data.molecules import MASK, Vocabulary, prepare
from pairflow.metrics import training_molecules
from pairflow.metrics.validity import reason
from pairflow.steps import chemnet, describe_molecules, evaluate

TRAINED = ["CCO", "CC(=O)O", "c1ccccc1", "Cc1ccccc1", "CC1CC1", "CCN", "C#N", "CO"]
TRIALS = [
    ["CCO", "OCC", "CCO", "Oc1ccccc1", "C1CC", "C(C", "", "CC(C)(C)(C)C"],
    ["CCO", "c1cccc", "cccc", "C.C", "C1CCC1", "NCC", "CCN", "C11"],
    ["", "", "C(", "C1", "C(C", "CC1", "", "cc"],  # nothing valid
]
LENGTH = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data set, its training molecules described, and three trials of samples."""
    root = tmp_path_factory.mktemp("evaluate")
    words = Vocabulary.from_tokens("".join(["CNOc123()=#.", "n"]))
    made = prepare(TRAINED, length=LENGTH, validation_fraction=0.0)
    words.save(root / "vocabulary.json")
    save(root / "smiles.parquet", made.smiles, Metadata(kind="smiles", vocabulary=words.hash))
    samples(root / "samples.parquet", TRIALS, words)
    assert describe(root).exit_code == 0
    return root


def save(path, table, metadata):
    with atomic(path) as [temporary]:
        write_table(temporary, table, metadata)


def samples(path, trials, words):
    rows = [words.encode(text, LENGTH) for texts in trials for text in texts]
    table = {
        "tokens": token_column(np.array(rows, np.uint8).reshape(-1, LENGTH), words.size),
        "trial": pa.array([trial for trial, texts in enumerate(trials) for _ in texts], pa.int32()),
    }
    facts = {"method": "udlm", "nfe": 2, "seed": 0, "samples": len(trials[0]) if trials else 8}
    save(path, pa.table(table), Metadata(kind="samples", vocabulary=words.hash, parameters=facts))


def call(folder, step, files, *arguments):
    """A step in this process, the options that name files given as their names in `folder`."""
    flags = [item for option, name in files.items() for item in (f"--{option}", str(folder / name))]
    return CliRunner().invoke(step, [*flags, "--quiet", *arguments])


def describe(folder, *arguments):
    return call(
        folder, describe_molecules.main, {"smiles": "smiles.parquet", "out": "molecules.parquet"}, *arguments
    )


def evaluated(folder, *arguments, **files):
    files = {name: f"{name}.parquet" for name in ("samples", "smiles", "molecules", "properties")} | files
    files = {"vocabulary": "vocabulary.json", "out": "metrics.parquet"} | files
    return call(folder, evaluate.main, files, *arguments)


@pytest.fixture(scope="module")
def metrics(folder):
    run = evaluated(folder)
    assert (run.exit_code, run.output) == (0, "")
    return pd.read_parquet(folder / "metrics.parquet").pivot(index="metric", columns="trial", values="value")


@pytest.mark.parametrize(
    ("metric", "by_hand"),
    [
        ("valid", [4, 5, 0]),
        ("unique", [3, 5, 0]),
        ("novel", [2, 3, 0]),  # as the paper counts: OCC is novel, though ethanol is known
        ("unique_strict", [2, 4, 0]),
        ("novel_strict", [1, 2, 0]),
        ("invalid_empty", [1, 0, 3]),
        ("invalid_syntax", [1, 0, 2]),
        ("invalid_ring", [1, 2, 2]),
        ("invalid_valence", [1, 0, 0]),
        ("invalid_kekulize", [0, 1, 1]),
        ("connected", [4, 4, 0]),
        ("scaffolds", [1, 1, 0]),
        ("novel_scaffolds", [0, 1, 0]),
    ],
)
def test_counts_by_hand(metrics, metric, by_hand):
    assert metrics.loc[metric].tolist() == by_hand


def test_valid_and_reasons_add_up_to_the_samples(metrics):
    assert metrics.filter(regex="^(valid|invalid_.*)$", axis=0).sum().tolist() == [8, 8, 8]


def test_what_is_undefined_is_null_and_says_nothing(metrics, folder):
    undefined = ["internal_diversity", "nn_similarity", "qed_wasserstein", "weight_wasserstein"]
    assert metrics.loc[undefined, 2].isna().all()
    assert metrics.loc[undefined, [0, 1]].notna().all(axis=None)
    assert read_table(folder / "metrics.parquet")[0]["value"].null_count == 6


def test_rows_name_what_they_compare_with(metrics, folder):
    rows = pd.read_parquet(folder / "metrics.parquet")
    against = set(rows.loc[rows["reference"] == "train", "metric"])
    assert against >= {"nn_similarity", "novel_scaffolds", "sa_wasserstein"}
    assert not against & {"valid", "novel", "internal_diversity", "scaffolds"}
    assert (rows["samples"] == 8).all()


def test_histograms_count_each_trials_distinct_molecules(metrics, folder):
    table, metadata = read_table(folder / "properties.parquet", "property histograms")
    counts = table.to_pandas().groupby("property")[["samples", "training"]].sum()
    assert counts.to_numpy().tolist() == [[6, 8]] * 4
    assert metadata.parameters["method"] == "udlm"


def test_equal_runs_give_equal_bytes(metrics, folder):
    names = ("metrics.parquet", "properties.parquet", "molecules.parquet")
    before = [(folder / name).read_bytes() for name in names]
    assert describe(folder, "--threads", "2").exit_code == 0
    assert evaluated(folder).exit_code == 0
    assert [(folder / name).read_bytes() for name in names] == before


def test_training_molecules_are_described_once_each(folder):
    table, metadata = read_table(folder / "molecules.parquet", "training molecules")
    assert table.column_names == ["smiles", "scaffold", "fingerprint", "qed", "sa", "logp", "weight"]
    assert sorted(table["smiles"].to_pylist()) == sorted(TRAINED)
    assert metadata.parameters == {"molecules": 8, "properties_of": 8}


def test_of_many_molecules_some_have_properties_always_the_same(folder, monkeypatch):
    monkeypatch.setattr(training_molecules, "PROPERTY_ROWS", 3)
    known = training_molecules.DatasetMolecules.read(folder / "smiles.parquet")
    rows = training_molecules.some(8, 3)
    assert len(set(rows)) == 3
    fingerprints, properties = np.zeros((8, 32), np.uint64), np.arange(12.0).reshape(3, 4)
    with atomic(folder / "some.parquet") as [temporary]:
        training_molecules.write_training(temporary, known, fingerprints, [""] * 8, properties)
    table, metadata = read_table(folder / "some.parquet")
    assert metadata.parameters["properties_of"] == 3
    assert np.flatnonzero(table["qed"].to_pandas().notna()).tolist() == rows.tolist()
    described = training_molecules.read_training(folder / "some.parquet", known)
    assert described.properties.tolist() == properties.tolist()


def test_no_samples_at_all_are_no_rows(folder):
    samples(folder / "none.parquet", [], Vocabulary.load(folder / "vocabulary.json"))
    run = evaluated(folder, samples="none.parquet", out="n.parquet", properties="np.parquet")
    assert (run.exit_code, run.output) == (0, "")
    assert len(pd.read_parquet(folder / "n.parquet")) == 0


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"samples": "absent.parquet"}, "absent.parquet: no such file"),
        ({"molecules": "absent.parquet"}, "absent.parquet: no such file"),
        ({"molecules": "smiles.parquet"}, "smiles.parquet: holds smiles, expected training molecules"),
        ({"smiles": "other.parquet"}, "molecules.parquet: was made from a file other than "),
        ({"samples": "foreign.parquet"}, "do not belong together: vocabulary"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(folder, files, text):
    words = Vocabulary.load(folder / "vocabulary.json")
    frame = read_table(folder / "smiles.parquet")[0].to_pandas()
    save(folder / "other.parquet", frame[:5], Metadata(kind="smiles", vocabulary=words.hash))
    samples(folder / "foreign.parquet", TRIALS, Vocabulary.from_tokens("CNOc123()=#.F"))
    run = evaluated(folder, **files, out="x.parquet", properties="y.parquet")
    assert run.exit_code == 2
    assert run.stderr.startswith("pairflow evaluate: error: ")
    assert text in run.stderr
    assert run.stderr.count("\n") == 1
    assert not list(folder.glob("[xy].parquet"))


def test_masks_that_were_left_over_are_a_syntax_error(folder):
    words = Vocabulary.load(folder / "vocabulary.json")
    row = words.encode("CCO", LENGTH)
    row[2] = MASK
    assert words.decode(row) == "C<mask>O"
    assert reason(words.decode(row)) == "syntax"


def statistics(folder):
    return call(folder, chemnet.main, {"smiles": "smiles.parquet", "out": "chemnet.parquet"})


def test_fcd_without_its_package_or_its_statistics_is_one_line(folder, monkeypatch):
    run = evaluated(folder, "--fcd")
    assert (run.exit_code, run.stderr.count("\n")) == (2, 1)
    assert "--chemnet: needed for fcd" in run.stderr
    monkeypatch.setitem(sys.modules, "fcd", None)
    run = statistics(folder)
    assert (run.exit_code, run.stderr.count("\n")) == (2, 1)
    assert 'fcd: the package is not installed; try: pip install "pairflow[fcd]"' in run.stderr
    assert not (folder / "chemnet.parquet").exists()


def test_fcd_is_small_for_the_training_set_and_larger_for_others(folder):
    pytest.importorskip("fcd", reason="the optional package fcd is not installed")
    assert statistics(folder).exit_code == 0
    words = Vocabulary.load(folder / "vocabulary.json")
    samples(folder / "both.parquet", [TRAINED, ["CCO"] * 8, ["C1CC"] * 8], words)
    files = {"samples": "both.parquet", "chemnet": "chemnet.parquet"}
    run = evaluated(folder, "--fcd", **files, out="f.parquet", properties="fp.parquet")
    assert run.exit_code == 0, run.output
    rows = pd.read_parquet(folder / "f.parquet")
    found = rows[rows["metric"] == "fcd"].set_index("trial")
    assert found["samples"].tolist() == [8, 8, 0]
    assert found.loc[0, "value"] == pytest.approx(0, abs=1e-3)
    assert found.loc[1, "value"] > 1
    assert np.isnan(found.loc[2, "value"])
