"""The evaluate step on samples made by hand: real files, all metrics, and every mistake in one line."""

import itertools
import sys
from itertools import count

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pairflow.artifacts import Metadata, read_metadata, read_table, token_column, write_table
from pairflow.kinds.molecules.data.library import Row
from pairflow.kinds.molecules.data.prepare import Vocabulary, prepare
from pairflow.kinds.molecules.measures import training_molecules
from pairflow.kinds.molecules.settings import Molecules

TRAINED = ["CCO", "CC(=O)O", "c1ccccc1", "Cc1ccccc1", "CC1CC1", "CCN", "C#N", "CO"]
TRIALS = [
    ["CCO", "OCC", "CCO", "Oc1ccccc1", "C1CC", "C(C", "", "CC(C)(C)(C)C"],
    ["CCO", "c1cccc", "cccc", "C.C", "C1CCC1", "NCC", "CCN", "C11"],
    ["", "", "C(", "C1", "C(C", "CC1", "", "cc"],  # nothing valid
]
LENGTH = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory, describe):
    """A data set, its training molecules described, and three trials of samples."""
    root = tmp_path_factory.mktemp("evaluate")
    words = Vocabulary().extended("CNOc123()=#.n")
    rows = map(Row, count(1), [*TRAINED, TRAINED[0]])  # the last one is held out
    made = prepare(rows, Molecules(source="x.smi", length=LENGTH), validation_rows=[len(TRAINED)])
    (root / "vocabulary.json").write_text(words.to_json())
    write_table(root / "smiles.parquet", made.smiles, Metadata(kind="smiles", vocabulary=words.hash))
    samples(root / "samples.parquet", TRIALS, words)
    assert describe(root).exit_code == 0
    return root


def samples(path, trials, words):
    """Write samples."""

    def encode(texts):
        rows = np.array([words.encode(text, LENGTH) for text in texts], np.uint8)
        return token_column(rows.reshape(-1, LENGTH), words.size)

    table = {
        "tokens": encode([text for texts in trials for text in texts]),
        "trial": pa.array([trial for trial, texts in enumerate(trials) for _ in texts], pa.int32()),
    }
    facts = {"method": "udlm", "nfe": 2, "seed": 0, "samples": len(trials[0]) if trials else 8}
    sizes = {"length": LENGTH, "vocabulary_size": words.size, "vocabulary": words.hash}
    write_table(path, pa.table(table), Metadata(kind="samples", parameters=facts, **sizes))


@pytest.fixture(scope="module")
def describe(step):
    """Describe the training molecules of a folder by a step, `describe_molecules` or `chemnet`."""

    def run(folder, name="describe_molecules", out="molecules", **options):
        files = {"smiles": folder / "smiles.parquet", "out": folder / f"{out}.parquet"}
        return step(name, quiet=True, **files, **options)

    return run


@pytest.fixture(scope="module")
def evaluate(step, folder):
    """Measure samples; files are given by their names in the folder, without .parquet."""

    def run(*flags, **files):
        names = {name: name for name in ("samples", "smiles", "molecules", "properties")}
        names |= {"out": "metrics", **files}
        paths = {option: folder / f"{name}.parquet" for option, name in names.items()}
        paths["vocabulary"] = folder / "vocabulary.json"
        return step("evaluate", "molecules", *flags, quiet=True, **paths)

    return run


@pytest.fixture(scope="module")
def metrics(folder, evaluate):
    run = evaluate()
    assert (run.exit_code, run.output) == (0, "")
    return pd.read_parquet(folder / "metrics.parquet").pivot(index="metric", columns="trial", values="value")


def test_counts_by_hand(metrics):
    by_hand = {
        "valid": [4, 5, 0],
        "unique": [3, 5, 0],
        "novel": [2, 3, 0],  # as the paper counts: OCC is novel, though ethanol is known
        "unique_strict": [2, 4, 0],
        "novel_strict": [1, 2, 0],
        "invalid_empty": [1, 0, 3],
        "invalid_syntax": [1, 0, 2],
        "invalid_ring": [1, 2, 2],
        "invalid_valence": [1, 0, 0],
        "invalid_kekulize": [0, 1, 1],
        "scaffolds": [1, 1, 0],
        "novel_scaffolds": [0, 1, 0],
        "common_scaffolds": [1, 0, 0],
        "common_frameworks": [1, 0, 0],
    }
    assert {name: metrics.loc[name].tolist() for name in by_hand} == by_hand


@pytest.mark.parametrize(
    ("identity", "unique", "novel"), [("smiles", 6, 4), ("inchikey", 3, 1), ("tautomer", 4, 2)]
)
def test_molecules_are_compared_by_the_rule_identity(tmp_path, step, describe, identity, unique, novel):
    """The data set has 2-hydroxypyridine and DMSO. Samples are these, a tautomer of the first, the second
    with charges, which an InChIKey ignores, and two tautomers of a new amide."""
    data = ["Oc1ccccn1", "CS(C)=O", "CCO", "CCN"]
    texts = [*data[:2], "O=c1cccc[nH]1", "C[S+](C)[O-]", "N=C(O)CC", "CCC(N)=O"]
    words = Vocabulary().extended(["[nH]", "[S+]", "[O-]", *"CNOScn1()="])
    rules = Molecules(source="x.smi", length=LENGTH, identity=identity)
    made = prepare(map(Row, count(1), data), rules, validation_rows=[3])
    (tmp_path / "vocabulary.json").write_text(words.to_json())
    facts = {"vocabulary": words.hash, "parameters": rules.model_dump(mode="json")}
    write_table(tmp_path / "smiles.parquet", made.smiles, Metadata(kind="smiles", **facts))
    samples(tmp_path / "samples.parquet", [texts, texts[:3]], words)
    assert describe(tmp_path).exit_code == describe(tmp_path, "norms", "norms").exit_code == 0
    names = ("samples", "smiles", "molecules", "norms", "properties")
    files = {name: tmp_path / f"{name}.parquet" for name in names}
    files |= {"vocabulary": tmp_path / "vocabulary.json", "out": tmp_path / "metrics.parquet"}
    run = step("evaluate", "molecules", "--plausible", quiet=True, **files)
    assert (run.exit_code, run.output) == (0, "")
    table, metadata = read_table(files["out"], "metrics")
    rows = table.to_pandas().pivot(index="metric", columns="trial", values="value")
    assert rows.loc["unique_strict"].tolist() == [unique, 3 - (identity != "smiles")]
    assert rows.loc["novel_strict"].tolist() == [novel, int(identity == "smiles")]
    assert rows.loc["usual_size"].tolist() == rows.loc["novel_strict"].tolist()
    assert metadata.parameters.get("identity") == (identity if identity != "smiles" else None)
    spellings = rows.loc[["valid", "unique", "novel"], 0].tolist()  # by strings, as the paper counts
    assert spellings == [6, 6, 4]


def test_plausible_molecules_are_counted_on_request(folder, evaluate, describe, done):
    """By the limits that TRAINED gives: no new ring system, and no atom that is not in TRAINED."""
    refused = evaluate("--plausible", out="none", properties="of-none")
    assert refused.stderr.endswith("--norms: needed for plausible molecules (see `pairflow norms`)\n")
    assert describe(folder, "norms", "norms").exit_code == 0
    assert evaluate("--plausible", out="odd", properties="of-odd", norms="norms").exit_code == 0
    counts = pd.read_parquet(folder / "odd.parquet").pivot(index="metric", columns="trial", values="value")
    # Phenol; two methanes, and cyclobutane, whose ring system is new: of so few molecules one may be.
    assert counts.loc[["novel_strict", "usual_rings"]].to_numpy().tolist() == [[1, 2, 0]] * 2
    for fewer, more in itertools.pairwise(["plausible", "few_alerts", "usual_atoms", "usual_rings"]):
        assert (counts.loc[fewer] <= counts.loc[more]).all()
    files = {name: folder / f"{name}.parquet" for name in ("smiles", "norms", "molecules")}
    files |= {"vocabulary": folder / "vocabulary.json", "out": folder / "floor.parquet"}
    done("floor", "molecules", plausible=True, samples=100, trials=1, **files)
    real = pd.read_parquet(files["out"]).pivot(index="metric", columns="method", values="value")
    assert real.loc["novel_strict", "data"] == 0  # the held-out molecule is trained on
    assert real.loc["common_scaffolds"].dropna().tolist() == [0]  # of ethanol
    assert real.loc["held_out", "data"] == 1
    assert real.loc["novel_strict", "one carbon more"] == 100


def test_the_start_of_a_fine_tuning_is_a_control(folder, describe, step, done, refused):
    """By hand: of four samples of a model whose symbols are the first of the data's, three are valid and
    different, phenol is new, and benzene, the core of two of them, is a common scaffold."""
    assert describe(folder, "norms", "norms").exit_code == 0
    words = Vocabulary.load(folder / "vocabulary.json")
    first = Vocabulary(tokens=words.tokens[:-1])
    samples(folder / "start.parquet", [["CCO", "Oc1ccccc1", "c1ccccc1", "C("]], first)
    files = {name: folder / f"{name}.parquet" for name in ("smiles", "norms", "molecules", "start")}
    files |= {"vocabulary": folder / "vocabulary.json", "out": folder / "floor.parquet"}
    values = {"plausible": True, "samples": 100, "trials": 1}
    done("floor", "molecules", **values, **files)
    rows = pd.read_parquet(files["out"])
    assert "start" in read_metadata(files["out"]).inputs
    control = rows[rows.method == "the start, untrained"].set_index("metric").value
    counts = {"valid": 75, "unique_strict": 75, "novel_strict": 25, "common_scaffolds": 50}
    assert control[[*counts]].to_dict() == counts

    samples(files["start"], [["CCO"]], Vocabulary().extended("CO"))
    run = step("floor", "molecules", **values, **files)
    refused(run, "floor", "start.parquet")
    refused(run, "floor", "do not belong together: vocabulary")


def test_what_is_undefined_is_null_and_says_nothing(metrics, folder):
    undefined = ["internal_diversity", "nn_similarity", "qed_wasserstein", "weight_wasserstein"]
    assert metrics.loc[undefined, 2].isna().all()
    assert metrics.loc[undefined, [0, 1]].notna().all(axis=None)
    assert read_table(folder / "metrics.parquet")[0]["value"].null_count == 6


def test_histograms_count_each_trials_distinct_molecules(metrics, folder):
    table, metadata = read_table(folder / "properties.parquet", "property histograms")
    counts = table.to_pandas().groupby("property")[["samples", "training"]].sum()
    assert counts.to_numpy().tolist() == [[6, 8]] * 4
    assert metadata.parameters["method"] == "udlm"


def test_equal_runs_give_equal_bytes(metrics, folder, describe, evaluate):
    names = ("metrics.parquet", "properties.parquet", "molecules.parquet")
    before = [(folder / name).read_bytes() for name in names]
    assert describe(folder, threads=2).exit_code == 0
    assert evaluate().exit_code == 0
    assert [(folder / name).read_bytes() for name in names] == before


def test_of_very_many_molecules_some_are_described_always_the_same(folder, monkeypatch):
    monkeypatch.setattr(training_molecules, "DESCRIBED_ROWS", 5)
    monkeypatch.setattr(training_molecules, "PROPERTY_ROWS", 2)
    known = training_molecules.DatasetMolecules.read(folder / "smiles.parquet")
    table, metadata = training_molecules.describe_training(known, 1, False)
    chosen = known.trained.take(training_molecules.some(8, 5)).to_pylist()
    assert table["smiles"].to_pylist() == chosen == known.described
    assert table["qed"].null_count == 3
    assert metadata.parameters == {"molecules": 8, "properties_of": 2}
    assert (len(known.trained), len(known.described)) == (8, 5)


def test_no_samples_at_all_are_no_rows(folder, evaluate):
    samples(folder / "none.parquet", [], Vocabulary.load(folder / "vocabulary.json"))
    run = evaluate(samples="none", out="n", properties="np")
    assert (run.exit_code, run.output) == (0, "")
    assert len(pd.read_parquet(folder / "n.parquet")) == 0


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"molecules": "absent"}, "absent.parquet: no such file"),
        ({"smiles": "other"}, "molecules.parquet: was made from a file other than "),
        ({"samples": "foreign"}, "do not belong together: vocabulary"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(folder, evaluate, refused, files, text):
    words = Vocabulary.load(folder / "vocabulary.json")
    frame = read_table(folder / "smiles.parquet")[0].to_pandas()
    write_table(folder / "other.parquet", frame[:5], Metadata(kind="smiles", vocabulary=words.hash))
    samples(folder / "foreign.parquet", TRIALS, Vocabulary().extended("CNOc123()=#.F"))
    refused(evaluate(**files, out="x", properties="y"), "evaluate", text)
    assert not list(folder.glob("[xy].parquet"))


def test_fcd_needs_its_package_and_its_statistics(folder, evaluate, describe, refused, monkeypatch):
    refused(evaluate("--fcd"), "evaluate", "--chemnet: needed for fcd")
    monkeypatch.setitem(sys.modules, "fcd", None)
    text = 'fcd: the package is not installed; try: pip install "pairflow[fcd]"'
    refused(describe(folder, "chemnet", out="chemnet"), "chemnet", text)
    assert not (folder / "chemnet.parquet").exists()


def test_fcd_is_small_for_the_training_set_and_larger_for_others(folder, evaluate, describe):
    pytest.importorskip("fcd", reason="the optional package fcd is not installed")
    assert describe(folder, "chemnet", out="chemnet").exit_code == 0
    words = Vocabulary.load(folder / "vocabulary.json")
    samples(folder / "both.parquet", [TRAINED, ["CCO"] * 8, ["C1CC"] * 8], words)
    assert evaluate("--fcd", samples="both", chemnet="chemnet", out="f", properties="fp").exit_code == 0
    rows = pd.read_parquet(folder / "f.parquet")
    found = rows[rows["metric"] == "fcd"].set_index("trial")
    assert found["samples"].tolist() == [8, 8, 0]
    assert found.loc[0, "value"] == pytest.approx(0, abs=1e-3)
    assert found.loc[1, "value"] > 1
    assert np.isnan(found.loc[2, "value"])
