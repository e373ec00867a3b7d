"""Molecules on demand, and their scores, from a model that was trained on a few hundred for a moment."""

import itertools
import json
import os
import re
import shutil
import signal
from dataclasses import replace

import pandas as pd
import pytest
from miniatures import data_files
from rdkit import Chem

from pairflow.artifacts import (
    Metadata,
    as_metrics,
    digest,
    read_metadata,
    read_provenance,
    read_table,
    write_table,
)
from pairflow.config import DemandSettings
from pairflow.generate import demand
from pairflow.kinds.molecules.data.known import KNOWN, KnownMolecules
from pairflow.kinds.molecules.data.prepare import Vocabulary
from pairflow.kinds.molecules.measures.plausible import Norms, measure
from pairflow.kinds.molecules.on_demand import files
from pairflow.kinds.molecules.on_demand.scaffolds import read_scaffolds
from pairflow.kinds.molecules.on_demand.selection import KnownByRules
from pairflow.kinds.molecules.settings import Standardisation
from pairflow.training.model_files import write_description

TRAINING = {"batch_size": 64, "learning_rate": 3e-3, "ema_decay": 0.9}
UDLM = {
    "method": "udlm",
    "network": {"name": "mlp", "width": 96, "blocks": 1, "time_width": 32},
    "training": {**TRAINING, "iterations": 200},
}
DCD = {"method": "udlm+dcd", "distillation": {"name": "dcd", "teacher_every": 1, **TRAINING, "iterations": 2}}


@pytest.fixture(scope="module")
def made(tmp_path_factory, done, model_files):
    """data/ with the molecules of up to five atoms, and the models udlm/, udlm+dcd/ (from it) and bare/."""
    root = tmp_path_factory.mktemp("made")
    data = data_files(root / "data")
    small = {"source": "small_molecules", "length": 16, "max_heavy_atoms": 5}
    rows = {"data": data["train"], "validation": data["validation"], "threads": 1, "quiet": True}
    beside = {"vocabulary": data["vocabulary"], "known": data["known"]}
    short = {**UDLM, "training": {**TRAINING, "iterations": 1}}
    done("preprocess", "molecules", quiet=True, **small, **data)
    done("train", settings=UDLM, **rows, **beside, **model_files(root / "udlm"))
    done("train", settings=short, **rows, **model_files(root / "bare"))
    done("distill", settings=DCD, parent=root / "udlm", **rows, **model_files(root / "udlm+dcd"))
    return root


@pytest.fixture
def model(made, tmp_path):
    """A copy of the model's folder alone, anywhere."""
    return shutil.copytree(made / "udlm", tmp_path / "some where" / "copy")


@pytest.fixture
def sample(step, model, tmp_path):
    def sampled(out, folder=model, **options):
        options = {"count": 20, "nfe": 8, "threads": 1, "device": "cpu", "quiet": True, **options}
        given = {key: value for key, value in options.items() if value is not None}
        return step("sample", model=folder, out=tmp_path / out, **given)

    return sampled


def smiles_of(path):
    return [line.split()[0] for line in path.read_text().splitlines()]


def test_the_last_lines_sum_up_and_warn(sample, tmp_path, made, monkeypatch):
    known = KnownMolecules.load(made / "data/known.parquet")
    first = sample("x.smi").stderr
    count = sum(smiles in known for smiles in smiles_of(tmp_path / "x.smi"))
    assert count > 0
    assert f"20 molecules ({count} of them in the data set) from " in first
    monkeypatch.setattr("pairflow.kinds.molecules.on_demand.delivery.USABLE", 1.01)
    *_, summary, warning = sample("x.smi", novel=True).stderr.splitlines()
    assert summary.startswith("20 molecules from ")
    assert summary.endswith("x.smi, which replaces an earlier file")
    assert not any(smiles in known for smiles in smiles_of(tmp_path / "x.smi"))
    assert re.match(r"The model rarely writes a molecule: only \d+\.\d% of its samples are valid\. ", warning)
    started = sample("x.smi", prefix="C").stderr
    assert "The model rarely completes this start: only " in started


def test_as_many_distinct_molecules_as_asked_for(sample, tmp_path):
    for suffix in ("smi", "parquet"):
        assert sample(f"new folder/x.{suffix}", count=60, unique=True).exit_code == 0
        assert read_provenance(tmp_path / f"new folder/x.{suffix}")["device"] == "cpu"
    found = smiles_of(tmp_path / "new folder/x.smi")
    assert len(set(found)) == len(found) == 60
    assert all(found)
    assert [Chem.CanonSmiles(smiles) for smiles in found] == found
    table, metadata = read_table(tmp_path / "new folder/x.parquet", "molecules")
    assert table["smiles"].to_pylist() == found
    assert (metadata.parameters["method"], metadata.parameters["nfe"]) == ("udlm", 8)
    assert set(metadata.inputs) == {"model"}


def test_plausible_molecules_have_nothing_unusual(sample, made, model, done, tmp_path):
    """With the norms of the training molecules beside the model; without them one line says so."""
    refused = sample("x.csv", plausible=True)
    needs = "--plausible needs the norms of the training molecules: `pairflow norms` makes them\n"
    assert (refused.exit_code, refused.stderr.partition("no such file; ")[2]) == (2, needs)
    done("norms", smiles=made / "data/smiles.parquet", out=model / "norms.parquet")
    assert sample("x.csv", plausible=True, properties=True, count=40).exit_code == 0
    table = pd.read_csv(tmp_path / "x.csv")
    norms = Norms.read(model / "norms.parquet")
    assert set(table["plausible"]) == {"yes"}
    assert all(table[name].max() <= norms.limits[name] for name in ("new_rings", "new_atoms", "severity"))
    rarity = [measure("rarity", Chem.MolFromSmiles(smiles), norms) for smiles in table["smiles"]]
    assert max(rarity) <= norms.limits["rarity"]
    assert "chembl_alerts" in table
    assert sample("y.csv", properties=True, count=200).exit_code == 0
    assert set(pd.read_csv(tmp_path / "y.csv")["plausible"]) == {"yes", "no"}


def test_molecules_are_varied_more_with_more_noise(sample, tmp_path):
    """Each of the file in its turn, none delivered as it is; what the model cannot write is left out."""
    seeds = tmp_path / "seeds.smi"
    seeds.write_text("OCCO diol\nBr odd\nCC(C)C=O aldehyde\n")
    run = sample("x.csv", like=seeds, noise="0.1:0.7", count=140)
    assert run.exit_code == 0
    lost = f"{seeds}: 1 of 3 molecules cannot be varied (line 2 (odd): unknown token Br)"
    assert run.stderr.splitlines()[0] == lost
    table = pd.read_csv(tmp_path / "x.csv")
    assert set(table["seed_name"]) == {"diol", "aldehyde"}
    assert set(table["seed"]) == {"OCCO", "CC(C)C=O"}
    assert (table["smiles"] != table["seed"]).all()
    changed = table.groupby("noise")["seed_edit"].mean()
    assert changed.index.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    assert changed.loc[0.1] < changed.loc[0.7]


def test_an_experiment_chooses_its_best_model(sample, made, tmp_path):
    """Valid samples of 100: udlm 30 at NFE 1 and 60 at NFE 8, udlm+dcd 50 at NFE 1."""
    root = tmp_path / "results/mine"
    for name in ("udlm", "udlm+dcd"):
        shutil.copytree(made / name, root / "seed0/models" / name)
    runs = [("udlm", 1, 30), ("udlm", 8, 60), ("udlm+dcd", 1, 50)]
    rows = pd.DataFrame(runs, columns=["method", "nfe", "value"]).assign(metric="valid")
    table = as_metrics(rows, seed=0, evaluation="main", samples=100)
    write_table(root / "metrics.parquet", table, Metadata(kind="metrics"))
    for nfe, choice in (
        (None, "udlm with --nfe 8; by the metrics 60.0% of its samples are valid at 8 steps"),
        (1, "udlm+dcd with --nfe 1; by the metrics 50.0% of its samples are valid at 1 step"),
    ):
        done = sample("x.parquet", folder=root, nfe=nfe)
        assert done.exit_code == 0
        assert done.stderr.splitlines()[0] == f"{root}: takes {choice}"
        _, metadata = read_table(tmp_path / "x.parquet", "molecules")
        method, _, text = choice.partition(" with --nfe ")
        assert (metadata.parameters["method"], metadata.parameters["nfe"]) == (method, int(text[0]))
    for name in ("metrics.parquet", "seed0/models/udlm/known.parquet"):
        run = sample(root / name, folder=root, nfe=8)
        assert run.exit_code == 2
        assert run.stderr.endswith(f"--out {root / name}: is an input of this command; choose another name\n")


def test_the_file_that_an_experiment_was_made_from_is_never_replaced(sample, made, tmp_path, refused):
    root = tmp_path / "results/mine"
    table, metadata = read_table(made / "data/train.parquet", "tokens")
    parameters = metadata.parameters | {"source": "mine.smi"}
    (root / "data").mkdir(parents=True)
    write_table(root / "data/train.parquet", table, replace(metadata, parameters=parameters))
    folder = shutil.copytree(made / "udlm", root / "seed0/models/udlm")
    (tmp_path / "mine.smi").write_text("CC\n")
    refused(sample("mine.smi", folder=folder), "sample", "mine.smi: is an input of this command")
    assert (tmp_path / "mine.smi").read_text() == "CC\n"
    assert sample("other.smi", folder=folder).exit_code == 0


def test_properties_and_the_nearest_training_molecule_come_with_the_molecules(
    sample, made, model, tmp_path, refused
):
    options = {"count": 5, "properties": True, "nearest": True}
    refused(sample("x.csv", **options), "sample", f"{model}/smiles.parquet: no such file; --nearest needs")
    table, metadata = read_table(made / "data/smiles.parquet", "smiles")
    frame = table.to_pandas().assign(name=[f"mol {row}" for row in range(len(table))])
    write_table(model / "smiles.parquet", frame, metadata)
    assert sample("x.csv", **options).exit_code == 0
    names = frame[frame["split"] == "train"].set_index("smiles")["name"]
    found = pd.read_csv(tmp_path / "x.csv", keep_default_na=False)
    calculated = ["qed", "sa", "logp", "weight", "scaffold", "inchikey"]
    assert list(found) == ["name", "smiles", *calculated, "nearest", "nearest_name", "similarity"]
    assert list(found["nearest_name"]) == [names[smiles] for smiles in found["nearest"]]
    for row in found.itertuples():
        assert row.inchikey == Chem.MolToInchiKey(Chem.MolFromSmiles(row.smiles))
        assert 0 < row.similarity <= 1
        assert row.smiles not in names or row.nearest == row.smiles
    other = replace(metadata, data="0" * 64)
    write_table(model / "smiles.parquet", frame, other)
    refused(sample("x.csv", **options), "sample", "do not belong together: they come from different data")


def test_all_columns_are_written_in_every_format(sample, made, model, done, tmp_path):
    """Those of properties, norms, neighbours (whose names may have line breaks) and seeds; in space, too."""
    done("norms", smiles=made / "data/smiles.parquet", out=model / "norms.parquet")
    table, metadata = read_table(made / "data/smiles.parquet", "smiles")
    write_table(model / "smiles.parquet", table.to_pandas().assign(name="a\n\nname"), metadata)
    (tmp_path / "seeds.smi").write_text("OCCO diol\n")
    options = {"count": 3, "like": tmp_path / "seeds.smi", "noise": "0.3"}
    assert sample("x.smi", **options).exit_code == 0
    options |= {"properties": True, "nearest": True}
    for name in ("x.csv", "x.xlsx", "x.parquet", "x.html", "x.sdf"):
        assert sample(name, **options).exit_code == 0
    expected = pd.read_csv(tmp_path / "x.csv")
    assert {"qed", "plausible", "new_rings", "alerts", "nearest", "similarity", "seed_edit"} < {*expected}
    assert expected["smiles"].tolist() == smiles_of(tmp_path / "x.smi")
    assert expected["name"].tolist() == ["pairflow-1", "pairflow-2", "pairflow-3"]
    tables = pd.read_excel(tmp_path / "x.xlsx"), read_table(tmp_path / "x.parquet")[0].to_pandas()
    assert [[*table] for table in tables] == [[*expected]] * 2
    assert all(f'"name":"{name}"' in (tmp_path / "x.html").read_text() for name in expected)
    run = sample("y.sdf", **options, **{"3d": True})
    assert re.search(r"% valid; of these .*; of these --3d kept \d+\.\d%", run.stderr)
    for name in ("x.sdf", "y.sdf"):
        molecules = [*Chem.SDMolSupplier(str(tmp_path / name), removeHs=False)]
        assert [{*molecule.GetPropNames()} for molecule in molecules] == [{*expected} - {"name"}] * 3
        edits = [int(molecule.GetProp("seed_edit")) for molecule in molecules]
        assert edits == expected["seed_edit"].tolist()
    assert all(molecule.GetConformer().Is3D() for molecule in molecules)
    assert not any(atom.GetNumImplicitHs() for molecule in molecules for atom in molecule.GetAtoms())


@pytest.mark.parametrize("error", [ZeroDivisionError("no luck"), OSError(28, "No space left on device")])
def test_what_was_found_is_saved_whatever_a_writer_raises(sample, tmp_path, monkeypatch, error):
    def fail(path, table, metadata):
        raise error

    monkeypatch.setitem(files._WRITERS, ".sdf", fail)
    done = sample("x.sdf", count=5, properties=True)
    assert done.exit_code == 2
    message = done.stderr.splitlines()[-1]
    assert str(error).removeprefix("[Errno 28] ") in message
    assert message.endswith(f"(the 5 found are saved in {tmp_path}/x.part.csv)")
    assert pd.read_csv(tmp_path / "x.part.csv")["smiles"].notna().tolist() == [True] * 5


def test_molecules_are_standardised_as_the_data_of_the_model(sample, step, model, tmp_path):
    """A salt is varied and scored as its largest fragment, if that is a rule of the data."""
    known, metadata = KnownMolecules.load(model / "known.parquet"), read_metadata(model / "known.parquet")
    shared = {"vocabulary": metadata.vocabulary, "data": metadata.data}
    changed = Metadata(kind=KNOWN, **shared, parameters=metadata.parameters | {"fragments": "largest"})
    write_table(model / "known.parquet", known.table, changed)
    facts = json.loads((model / "model.json").read_text()) | {"known": digest(model / "known.parquet")}
    del facts["checksum"]
    write_description(model / "model.json", facts, model / "model.safetensors")
    (tmp_path / "salt.smi").write_text("CCCN.Cl salt\n")
    said = ", standardised as the model's data (fragments largest)"
    run = sample("x.csv", count=3, like=tmp_path / "salt.smi", noise="0.4", novel=True)
    assert (run.exit_code, said in run.stderr) == (0, True)
    assert set(pd.read_csv(tmp_path / "x.csv")["seed"]) == {"CCCN"}
    out, shared = tmp_path / "s.csv", {"draws": 4, "threads": 1, "device": "cpu", "quiet": True}
    run = step("score", tmp_path / "salt.smi", model=model, out=out, **shared)
    assert (run.exit_code, said in run.stderr) == (0, True)
    assert pd.read_csv(out)["smiles"].tolist() == ["CCCN"]
    rules = Standardisation(fragments="largest", metals="reject")
    data = KnownByRules(KnownMolecules.from_smiles(["CCCN"]), rules)
    assert [text in data for text in ("CCCN", "CCCN.Cl", "CCCO", "CCC[Mg]Br")] == [True, True, False, False]


def test_molecules_are_valid_unless_raw_strings_are_asked_for(sample, tmp_path):
    done = sample("x.csv", count=200, raw=True)
    [share] = re.findall(r"200 strings from 200 samples \((\d+\.\d)% valid\), ", done.stderr)
    strings = pd.read_csv(tmp_path / "x.csv", keep_default_na=False)["smiles"]
    valid = sum(bool(text) and Chem.MolFromSmiles(text) is not None for text in strings)
    assert 0 < valid < 200
    assert float(share) == valid / 2
    assert sample("y.smi", count=200).exit_code == 0
    assert all(Chem.MolFromSmiles(smiles) for smiles in smiles_of(tmp_path / "y.smi"))


def test_equal_settings_give_equal_molecules_and_fewer_are_the_first_of_more(sample, tmp_path, monkeypatch):
    assert sample("a.parquet", unique=True).exit_code == 0
    assert sample("b.parquet", unique=True).exit_code == 0
    assert digest(tmp_path / "a.parquet") == digest(tmp_path / "b.parquet")
    assert sample("c.smi", unique=True, seed=1).exit_code == 0
    few = pd.read_parquet(tmp_path / "a.parquet")["smiles"]
    assert set(smiles_of(tmp_path / "c.smi")) != set(few)
    monkeypatch.setattr("pairflow.flow.corruption.MOST_ROWS", 16)  # several batches
    assert sample("few.smi", unique=True).exit_code == 0
    assert sample("more.smi", unique=True, count=60).exit_code == 0
    assert smiles_of(tmp_path / "few.smi") == smiles_of(tmp_path / "more.smi")[:20]


def test_a_distilled_model_carries_what_its_parent_did(sample, made, tmp_path):
    for name in ("vocabulary.json", "known.parquet"):
        assert digest(made / "udlm+dcd" / name) == digest(made / "udlm" / name)
    assert Vocabulary.load(made / "udlm/vocabulary.json") == Vocabulary.load(made / "data/vocabulary.json")
    known = KnownMolecules.load(made / "udlm/known.parquet")
    smiles = pd.read_parquet(made / "data/smiles.parquet")["smiles"]
    assert len(known.hashes) == smiles.nunique()
    assert all(each in known for each in smiles)
    assert sample("x.smi", folder=made / "udlm+dcd", novel=True).exit_code == 0


@pytest.mark.parametrize(
    ("name", "missing", "altered"),
    [
        ("model.json", "no such file", ""),
        ("model.safetensors", "no such file", "these are not the weights that"),
        ("vocabulary.json", "no such file; copy it from the folder of", "do not belong together"),
        ("known.parquet", "no such file", "these are not the known molecules that"),
    ],
)
def test_a_missing_or_altered_file_is_named(sample, model, tmp_path, refused, name, missing, altered):
    content = bytearray((model / name).read_bytes())
    content[len(content) // 2] ^= 1
    (model / name).write_bytes(content)
    run = sample("x.smi", novel=True)
    refused(run, "sample", f"{model / name}")
    refused(run, "sample", altered)
    (model / name).unlink()
    refused(sample("x.smi", novel=True), "sample", f"{model / name}: {missing}")
    assert not list(tmp_path.glob("x.*"))


def test_models_that_cannot_make_molecules_say_so(sample, made, model, refused):
    refused(sample("x.smi", folder=made / "bare"), "sample", "bare/vocabulary.json: no such file")
    shutil.copy(made / "data/vocabulary.json", made / "bare")
    text = "bare/model.json: the model was saved without known.parquet, so --novel is not available"
    refused(sample("x.smi", folder=made / "bare", novel=True), "sample", text)
    (made / "bare/vocabulary.json").unlink()
    facts = json.loads((made / "udlm/model.json").read_text()) | {"vocabulary_size": 99}
    del facts["checksum"]
    write_description(model / "model.json", facts, model / "model.safetensors")
    refused(sample("x.smi"), "sample", "does not fit the network that its description names")


@pytest.mark.parametrize(
    ("out", "options", "text"),
    [
        ("x.html", {"count": 10_001}, "x.html: a page holds at most 10,000 molecules; expected .csv or"),
        ("x.smi", {"nfe": 0}, "settings: nfe: input should be greater than or equal to 1, found 0"),
        ("x.smi", {"noise": "0.3"}, "settings: noise: needs like, the file of molecules to vary"),
        ("x.smi", {"logp": "3"}, "settings: logp: expected a range such as 1:3, 1: or :3, found '3'"),
        ("x.smi", {"raw": True, "weight": ":9"}, "raw: does not go with weight, which needs valid molecules"),
        ("some where/copy/known.parquet", {}, "known.parquet: is an input of this command"),
        ("x.smi", {"samples": 4}, "--samples does not go with --count: see --help"),
        ("/proc/x/x.smi", {}, "/proc/x/x.smi: cannot be written: No such file or directory"),
        ("x.smi", {"scaffold": "C", "prefix": "C"}, "settings: scaffold: does not go with prefix"),
        ("x.smi", {"prefix": "CBr"}, "prefix: unknown token Br; it is not in the model's vocabulary"),
        ("x.smi", {"prefix": "C Q"}, "prefix: not a SMILES string: 'C Q' holds characters that belong to"),
        ("x.smi", {"template": "**"}, "template: no token is given, only *"),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused(sample, tmp_path, refused, out, options, text):
    refused(sample(out, **options), "sample", text)
    assert not list(tmp_path.glob("x.*"))


@pytest.mark.parametrize(
    ("samples", "shares", "advice"),
    [
        (["C("], "100% invalid", "try a larger --nfe or a model trained longer"),
        (["CCC", "CCC", "C("], "67% known, 33% invalid", "leave out --novel"),
        (["C1CCCCCCC1"], "100% repeated", "ask for fewer, or leave out --unique"),
        (["C1#CC1", "C("], r"50% refused by --3d, 50% invalid", "widen or leave out --3d"),
        (["CCCCCF", "C("], r"50% refused by --not-smarts F, 50% invalid", "leave out --not-smarts F"),
    ],
)
def test_a_hopeless_wish_ends_with_its_reason(made, monkeypatch, samples, shares, advice):
    settings = DemandSettings(count=3, nfe=1, unique=True, novel=True, not_smarts=["F"], three_d=True)
    molecules = demand.SampleStream(made / "udlm", settings)
    monkeypatch.setattr(demand, "PATIENCE", 300)
    monkeypatch.setattr(molecules, "_strings", lambda: itertools.cycle(samples))
    text = rf"^none of the last 300 samples was accepted \({shares}\): .*{advice}"
    with pytest.raises(demand.TooFewAccepted, match=text):
        list(molecules)


def test_a_search_without_any_sample_ends_within_a_minute(made, monkeypatch):
    """A sample takes a tenth of a second here: the first 500 of them are tried, which is more than 45 s."""
    molecules = demand.SampleStream(made / "udlm", DemandSettings(count=1, nfe=1))
    clock = itertools.count(0, 0.1)
    monkeypatch.setattr(demand.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(molecules, "_strings", lambda: itertools.repeat("C("))
    text = r"^none of the first 500 samples, in 50 s, was accepted \(100% invalid\): try a larger --nfe"
    with pytest.raises(demand.TooFewAccepted, match=text):
        list(molecules)
    monkeypatch.setattr(molecules, "_strings", lambda: iter(["CC", *["C("] * 600]))
    assert list(molecules) == ["CC"]
    molecules.settings = molecules.settings.model_copy(update={"count": 2})
    assert list(molecules) == ["CC"]  # one was delivered, so that the others may take their time


def test_what_was_found_before_it_became_hopeless_is_kept(sample, tmp_path, monkeypatch, refused):
    monkeypatch.setattr(demand, "PATIENCE", 40)
    done = sample("x.smi", count=10**6, unique=True)
    found = smiles_of(tmp_path / "x.part.smi")
    text = f"({len(found):,} of 1,000,000 molecules found, saved in {tmp_path}/x.part.smi)"
    refused(done, "sample", text)
    assert len(set(found)) == len(found) > 0
    assert not (tmp_path / "x.smi").exists()


@pytest.fixture
def at_sample(monkeypatch):
    """The model makes C, CC, CCC, ... without end; `call` is called before the sample of that number."""

    def strings(at, call):
        def decoded(molecules):
            for length in itertools.count(1):
                if length == at:
                    call()
                yield length * "C"

        monkeypatch.setattr(demand.SampleStream, "_strings", decoded)

    return strings


@pytest.mark.promise("signal")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_a_signal_leaves_is_complete_and_said(sample, tmp_path, at_sample, number):
    at_sample(4, lambda: os.kill(os.getpid(), number))
    done = sample("x.csv", properties=True)
    assert done.exit_code == 128 + number
    part = tmp_path / "x.part.csv"
    assert done.stderr == f"pairflow sample: stopped: 3 of 20 molecules found, saved in {part}\n"
    found = pd.read_csv(part)
    assert list(found["smiles"]) == ["C", "CC", "CCC"]
    assert not found.drop(columns="scaffold").isna().any(axis=None)  # none of them has a ring
    assert list(tmp_path.glob("*.*")) == [part]


def test_a_warning_keeps_what_is_found_until_all_is_there(sample, tmp_path, at_sample):
    seen = []

    def warn():
        os.kill(os.getpid(), signal.SIGUSR1)
        seen.append(smiles_of(tmp_path / "x.part.smi"))

    at_sample(4, warn)
    assert sample("x.smi").exit_code == 0
    assert seen == [["C", "CC", "CCC"]]
    assert smiles_of(tmp_path / "x.smi") == [length * "C" for length in range(1, 21)]
    assert not (tmp_path / "x.part.smi").exists()


ODD = ["CCO ethanol", "OCC again", "C1CC", "CCBr bromide", "CCCCCCCCCCCCCCCC long", "C", "c1ccccc1 benzene"]


@pytest.fixture
def score(step, model, tmp_path):
    """Score a file of odd rows, by the option --model of another folder if one is given."""
    (tmp_path / "odd.smi").write_text("\n".join(ODD) + "\n")

    def scored(out="scores.csv", rows="odd.smi", folder=model, **options):
        options = {"threads": 1, "device": "cpu", "draws": 16, "quiet": True, **options}
        return step("score", tmp_path / rows, model=folder, out=tmp_path / out, **options)

    return scored


def test_every_row_has_a_score_or_the_reason_why_not(score, tmp_path):
    run = score()
    assert run.exit_code == 0
    table = pd.read_csv(tmp_path / "scores.csv", keep_default_na=False, na_values={"nll_bound": ""})
    assert table.line.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert table.name.tolist() == ["ethanol", "again", "", "bromide", "long", "", "benzene"]
    assert table.smiles.tolist() == ["CCO", "CCO", "C1CC", "CCBr", 16 * "C", "C", "c1ccccc1"]
    reasons = ["", "", "unparsable", "unknown token Br", "too long (16 tokens, limit 14)", ""]
    assert table.reason.tolist()[:6] == reasons
    assert table.nll_bound.isna().tolist() == [bool(reason) for reason in table.reason]
    scored = table[table.reason == ""]
    assert (scored.nll_bound > 0).all()
    two_errors = 1.95 * scored.standard_error.astype(float)
    assert (scored.low.astype(float) < scored.nll_bound - two_errors).all()
    assert (scored.high.astype(float) > scored.nll_bound + two_errors).all()
    assert scored.nll_bound.iloc[0] == scored.nll_bound.iloc[1]  # the noise depends on the molecule
    assert scored.tokens.tolist()[:3] == ["5", "5", "3"]
    shares = scored.nll_bound / scored.tokens.astype(int)
    assert scored.nll_per_token.astype(float).tolist() == pytest.approx(shares.tolist(), abs=1e-4)
    said = f"; {7 - len(scored)} rows have no score (1 unparsable, 1 unknown token Br, 1 too long"
    assert said in run.stderr


def test_the_difference_to_another_model(score, made, tmp_path, refused):
    """It is none to the model itself, and empty where a row has no score."""
    assert score(out="own.csv", against=made / "udlm").exit_code == 0
    own = pd.read_csv(tmp_path / "own.csv")
    assert own.columns[-2:].tolist() == ["nll_difference", "reason"]
    assert own.nll_difference.isna().tolist() == own.nll_bound.isna().tolist()
    assert (own.nll_difference.dropna() == 0).all()
    assert score(out="a.csv").exit_code == score(out="b.csv", folder=made / "udlm+dcd").exit_code == 0
    a, b = (pd.read_csv(tmp_path / name).nll_bound for name in ("a.csv", "b.csv"))
    assert score(out="c.parquet", against=made / "udlm+dcd").exit_code == 0
    table, metadata = read_table(tmp_path / "c.parquet", "scores")
    assert table["nll_difference"].to_pandas().to_numpy() == pytest.approx(a - b, abs=2e-4, nan_ok=True)
    assert metadata.inputs["against"] != metadata.inputs["model"]
    text = "--against: expected a model of molecules as smiles, like --model; found molecules as groups"
    refused(score(against="zinc250k"), "score", text)


def test_no_name_in_a_file_of_scores_is_a_formula(score, tmp_path):
    name = "=cmd|' /C calc'!A0"
    (tmp_path / "names.smi").write_text(f"CCO {name}\n=C {name}\n")
    for out, start in (("scores.csv", "'"), ("scores.parquet", "")):
        assert score(out, rows="names.smi").exit_code == 0
        path = tmp_path / out
        table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
        assert table.name.tolist() == [start + name] * 2
        assert table.smiles.tolist() == ["CCO", f"{start}=C"]


def test_scores_are_a_function_of_model_molecule_and_settings(score, tmp_path):
    for name, options in (("a", {}), ("b", {}), ("c", {"seed": 1}), ("d", {"draws": 512})):
        assert score(f"{name}.parquet", **options).exit_code == 0
    a, c, d = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in "acd")
    assert digest(tmp_path / "a.parquet") == digest(tmp_path / "b.parquet")
    assert (a.nll_bound.dropna() != c.nll_bound.dropna()).all()
    assert d.standard_error.mean() < a.standard_error.mean() / 2
    (tmp_path / "one.csv").write_text("ID,Structure\nx,OCC\n")  # its column is found
    assert score("e.parquet", rows="one.csv").exit_code == 0
    assert pd.read_parquet(tmp_path / "e.parquet").nll_bound.tolist() == [a.nll_bound[0]]
    metadata = read_table(tmp_path / "a.parquet", "scores")[1]
    assert metadata.parameters == {"method": "udlm", "draws": 16, "seed": 0}


@pytest.mark.parametrize(
    ("out", "options", "text"),
    [
        ("x.xlsx", {}, "x.xlsx: unknown suffix '.xlsx'; expected .csv or .parquet"),
        ("x.csv", {"draws": 3}, "settings: draws: input should be a multiple of 2, found 3"),
        ("odd.smi", {}, "odd.smi: is an input of this command; choose another name"),
    ],
)
def test_a_score_that_cannot_be_given_is_refused(score, refused, out, options, text):
    refused(score(out, **options), "score", text)


def test_a_prefix_is_kept_and_the_share_with_its_structure_is_said(sample, tmp_path):
    for name, options in (("a", {"prefix": "CC("}), ("b", {"prefix": "C1C", "sampler": "euler", "nfe": 2})):
        assert sample(f"{name}.csv", raw=True, **options).exit_code == 0
        strings = pd.read_csv(tmp_path / f"{name}.csv", keep_default_na=False).smiles
        assert strings.str.startswith(options["prefix"]).all()
    run = sample("x.smi", prefix="CO")
    methanol = Chem.MolFromSmiles("CO")
    assert all(Chem.MolFromSmiles(text).HasSubstructMatch(methanol) for text in smiles_of(tmp_path / "x.smi"))
    assert re.search(r"20 molecules .*\(100\.0% of them with the substructure CO\) from ", run.stderr)
    assert sample("p.parquet", prefix="CO").exit_code == 0
    assert read_table(tmp_path / "p.parquet", "molecules")[1].parameters["prefix"] == "CO"


def test_a_template_leaves_its_stars_open(sample, tmp_path):
    run = sample("x.csv", raw=True, template="C*C*O", count=40)
    strings = pd.read_csv(tmp_path / "x.csv", keep_default_na=False).smiles
    whole = [text for text in strings if len(text) >= 5]
    assert whole
    assert all(text[0] == "C" for text in strings)
    assert all((text[2], text[4]) == ("C", "O") for text in whole if "<" not in text)
    assert len({text[1] for text in whole}) > 1
    share = sum(len(text) < 5 for text in strings) / 40
    assert f", {share:.1%} of them end within the template, " in run.stderr


@pytest.mark.parametrize("folder", ["udlm", "udlm+dcd"])
def test_samples_grow_from_the_scaffolds_of_a_file_in_turn(sample, tmp_path, made, folder):
    (tmp_path / "cores.smi").write_text("*OC ether\n*C.*O link\nCN\n")
    options = {"scaffold": tmp_path / "cores.smi", "folder": made / folder, "nfe": 4, "count": 30}
    run = sample("x.csv", **options)
    table = pd.read_csv(tmp_path / "x.csv", keep_default_na=False)
    names = dict(zip(table.core, table.core_name, strict=True))
    assert names == {"*OC": "ether", "*C.*O": "link", "CN": ""}
    for text, core in zip(table.smiles, table.core, strict=True):
        [scaffold], _ = read_scaffolds(core)
        assert Chem.MolFromSmiles(text).HasSubstructMatch(scaffold.query), text
    shares = re.search(
        r"from (\d+) samples \((.*)% valid; of these --scaffold kept (.*)%\)", run.stderr
    ).groups()
    drawn, valid, kept = map(float, shares)
    assert drawn * valid / 100 * kept / 100 == pytest.approx(30, abs=1)
    assert sample("y.csv", **options, raw=True).exit_code == 0
    assert list(pd.read_csv(tmp_path / "y.csv").core[:4]) == ["*OC", "*C.*O", "CN", "*OC"]
