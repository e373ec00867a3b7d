"""Conditional models from the command line: labels, training, guided samples, measurement, refusals."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from miniatures import data_files

from pairflow.artifacts import read_metadata, read_table, token_array
from pairflow.data.classes import Classes
from pairflow.kinds.molecules.data.prepare import Vocabulary
from pairflow.kinds.molecules.measures.counts import canonical
from pairflow.kinds.molecules.structures.descriptors import compute

NETWORK = {"name": "mlp", "width": 64, "blocks": 1, "time_width": 16}
RUN = {"batch_size": 64, "learning_rate": 3e-3, "ema_decay": 0.9, "iterations": 150, "validate_every": 75}
LONG = {**RUN, "iterations": 1500, "ema_decay": 0.99}
DCD = {**RUN, "name": "dcd", "teacher_every": 60, "iterations": 300, "learning_rate": 1e-3}
REDI = {**RUN, "name": "redi", "pairs": {"count": 1500, "steps": 16}, "iterations": 400}
CONDITION = {"property": "weight", "classes": 3}
QUIET = {"threads": 1, "quiet": True}


@pytest.fixture(scope="module")
def made(made_once, done, model_files):
    """data/ with labels and plain/ without, pairs.parquet, and the conditional models udlm/ and pairflow/."""

    def make(root):
        shared = {"source": "small_molecules", "length": 16, "max_heavy_atoms": 5}
        for folder, settings in (("plain", shared), ("data", shared | {"condition": CONDITION})):
            files = data_files(root / folder)
            done("preprocess", "molecules", settings=settings, quiet=True, **files)
        data = root / "data"
        done("describe_molecules", smiles=data / "smiles.parquet", out=root / "molecules.parquet", quiet=True)
        done("pair", tokens=data / "train.parquet", out=root / "pairs.parquet", steps=3, quiet=True)
        for method, rows in (("udlm", data / "train.parquet"), ("pairflow", root / "pairs.parquet")):
            settings = {"method": method, "network": NETWORK, "training": RUN}
            files = {"data": rows, "validation": data / "validation.parquet"}
            files |= {"labels": data / "train.parquet"}
            files |= {"vocabulary": data / "vocabulary.json", "known": data / "known.parquet"}
            done("train", settings=settings, **files, **model_files(root / method), **QUIET)

    return made_once("conditional models", make)


@pytest.fixture
def sample(step, made, tmp_path):
    def run(model="udlm", out="samples.parquet", **options):
        options = {"nfe": 4, "samples": 64, "trials": 1, "threads": 1, "device": "cpu", **options}
        options = {key: value for key, value in options.items() if value is not None}
        return step("sample", model=made / model, out=tmp_path / out, quiet=True, **options)

    return run


def test_labels_are_a_column_beside_rows_that_do_not_change(made):
    rows, metadata = read_table(made / "data/train.parquet", "tokens")
    plain, unlabelled = read_table(made / "plain/train.parquet", "tokens")
    assert rows["tokens"].equals(plain["tokens"])
    assert (plain.column_names, unlabelled.condition) == (["tokens"], None)
    smiles = pd.read_parquet(made / "data/smiles.parquet")
    weights = compute("weight", smiles[smiles.split == "train"].smiles.tolist())
    low, high = metadata.condition["thresholds"]
    expected = (weights > low).astype(int) + (weights > high)
    assert rows["label"].to_pylist() == expected.tolist()


@pytest.fixture
def share_in_class(made, done, sample, tmp_path):
    """The share of a model's valid samples that are of the class weight=low, at a weight of guidance."""

    def measured(model, weight, nfe=8):
        files = {"smiles": made / "data/smiles.parquet", "vocabulary": made / "data/vocabulary.json"}
        options = {"condition": "weight=low", "guidance": weight, "samples": 512, "nfe": nfe}
        assert sample(model, "drawn.parquet", **options).exit_code == 0
        out = {"out": tmp_path / "metrics.parquet", "properties": tmp_path / "properties.parquet"}
        files |= {"samples": tmp_path / "drawn.parquet", "molecules": made / "molecules.parquet"}
        done("evaluate", "molecules", **files, **out, **QUIET)
        values = pd.read_parquet(out["out"]).set_index("metric").value
        return values["in_class"] / values["valid"]

    return measured


@pytest.mark.parametrize("model", ["udlm", "pairflow"])
def test_guided_samples_are_of_the_class_more_often(share_in_class, model):
    """The weight of molecules of up to five atoms says nearly how many atoms they have: easily learnt."""
    ignored, conditional, guided = (share_in_class(model, weight) for weight in (0, 1, 3))
    assert ignored < conditional < guided


def test_what_does_not_fit_the_classes_is_refused_in_one_line(
    made, sample, step, done, model_files, tmp_path, refused
):
    refused(sample(condition="qed=high"), "sample", "condition: the model was trained for weight, not for")
    refused(sample(guidance=2), "sample", "settings: guidance: needs a condition, such as qed=high")
    assert not (tmp_path / "samples.parquet").exists()
    pairs, rows, plain = (made / f"{name}.parquet" for name in ("pairs", "data/train", "plain/train"))
    held_out = made / "data/validation.parquet"

    def train(run, method, data, validation=held_out, folder=tmp_path / "x", **labels):
        settings = {"method": method, "network": NETWORK, "training": {**RUN, "iterations": 2}}
        files = {"data": data, "validation": validation, **labels, **model_files(folder)}
        return run("train", settings=settings, **files, **QUIET)

    text = f"{pairs}: pairs of data with labels; name the token rows with --labels"
    refused(train(step, "pairflow", pairs), "train", text)
    refused(train(step, "pairflow", pairs, labels=plain), "train", text)
    refused(train(step, "udlm", rows, labels=held_out), "train", f"{rows} and {held_out} do not match: their")
    train(done, "udlm", rows, folder=tmp_path / "own")
    train(done, "udlm", rows, folder=tmp_path / "named", labels=rows)
    own, named = (tmp_path / name / "model.safetensors" for name in ("own", "named"))
    assert own.read_bytes() == named.read_bytes()
    train(done, "udlm", plain, made / "plain/validation.parquet", tmp_path / "bare")
    text = f"the model in {tmp_path / 'bare'} was trained without data.condition"
    refused(sample(tmp_path / "bare", condition="weight=high"), "sample", text)
    distillation = {"settings": {"method": "udlm+dcd", "distillation": DCD}, "parent": made / "udlm"}
    files = {"data": plain, "validation": made / "plain/validation.parquet", **model_files(tmp_path)}
    text = f"{plain}: its labels are missing, or differ from the classes of the model in {made / 'udlm'}"
    refused(step("distill", **distillation, **files, **QUIET), "distill", text)


@pytest.fixture(scope="module")
def distilled(made, made_once, done, model_files):
    """A model that has learnt its classes, udlm/, and the models that are distilled from it."""

    def make(root):
        data, rows = made / "data", QUIET | {"validation": made / "data/validation.parquet"}
        settings = {"method": "udlm", "network": NETWORK, "training": LONG}
        files = {"vocabulary": data / "vocabulary.json", "known": data / "known.parquet"}
        files |= {"data": data / "train.parquet", "labels": data / "train.parquet"}
        done("train", settings=settings, **rows, **files, **model_files(root / "udlm"))
        pairs, teaching = root / "redi.parquet", {"method": "udlm+redi", **REDI["pairs"]}
        done("teach", model=root / "udlm", out=pairs, **teaching, **QUIET)
        for how, of in ((DCD, data / "train.parquet"), (REDI, pairs)):
            method = f"udlm+{how['name']}"
            settings = {"method": method, "distillation": how}
            files = {"parent": root / "udlm", "data": of, **model_files(root / method)}
            done("distill", settings=settings, **rows, **files)

    return made_once("distilled conditional models", make)


@pytest.mark.parametrize("model", ["udlm", "udlm+dcd", "udlm+redi"])
def test_the_log_ends_with_the_share_of_held_out_rows_likelier_under_their_class(distilled, model):
    """The weight of molecules of up to five atoms shows in their rows."""
    log = pd.read_parquet(distilled / model / "log.parquet")
    assert log.likelier_in_class.notna().tolist() == [False] * (len(log) - 1) + [True]
    last = log.iloc[-1]
    assert (last.likelier_by_chance, last.likelier_rows) == (1 / 3, 18)
    assert last.likelier_in_class > 0.6


@pytest.mark.parametrize("model", ["udlm+dcd", "udlm+redi"])
def test_a_distilled_model_follows_its_class_in_one_step(distilled, share_in_class, model):
    ignored, conditional, guided = (share_in_class(distilled / model, weight, nfe=1) for weight in (0, 1, 3))
    assert ignored < 0.5 < 0.6 < conditional < 0.9 < guided


def test_the_pairs_of_a_conditional_teacher_are_of_each_class_in_turn(made, distilled):
    pairs, metadata = read_table(distilled / "redi.parquet", "pairs")
    labels = pairs["label"].to_numpy()
    assert labels.tolist() == [row % 3 for row in range(1500)]
    assert metadata.condition == read_metadata(made / "data/train.parquet").condition
    words = Vocabulary.load(made / "data/vocabulary.json")
    drawn = pd.Series(map(words.decode, token_array(pairs["x1"])))
    valid = drawn.map(canonical).notna()
    classes = Classes(**metadata.condition).numbers(compute("weight", drawn[valid].tolist()))
    assert np.mean(classes == labels[valid]) > 0.7


def test_classes_of_several_properties_are_met_and_measured(tmp_path, step, done, model_files, refused):
    """Two properties, one of a column: of this the nearest training molecules say whether samples follow."""
    source, files = tmp_path / "chains.csv", data_files(tmp_path)
    chains = ["".join(atoms) for length in range(2, 8) for atoms in product("CO", repeat=length)]
    source.write_text("smiles,oxygens\n" + "".join(f"{chain},{chain.count('O')}\n" for chain in chains))
    condition = [{"property": "weight"}, {"column": "oxygens"}]
    data = {"source": str(source), "length": 16, "drop_duplicates": True, "condition": condition}
    done("preprocess", "molecules", settings=data, quiet=True, **files)
    settings = {"method": "udlm", "network": NETWORK, "training": {**RUN, "iterations": 300}}
    rows = {"data": files["train"], "validation": files["validation"], "labels": files["train"]}
    rows |= {"vocabulary": files["vocabulary"], **model_files(tmp_path / "udlm")}
    done("train", settings=settings, **rows, **QUIET)
    shared = {"model": tmp_path / "udlm", "nfe": 8, "samples": 300, "threads": 1, "quiet": True}
    out = {"out": tmp_path / "metrics.parquet", "properties": tmp_path / "properties.parquet"}
    molecules = {"molecules": tmp_path / "described.parquet", "smiles": files["smiles"]}
    done("describe_molecules", smiles=files["smiles"], out=molecules["molecules"], quiet=True)
    values = {}
    for weight in (0, 2):
        asked = {"condition": "weight=spread,oxygens=spread", "guidance": weight, "trials": 1}
        done("sample", out=tmp_path / "drawn.parquet", **shared, **asked)
        drawn = {"samples": tmp_path / "drawn.parquet", "vocabulary": files["vocabulary"]}
        measure = partial(step, "evaluate", "molecules", **drawn, **molecules, **out, threads=1, quiet=True)
        run = measure(labels=files["train"])
        assert run.exit_code == 0, run.output
        values[weight] = pd.read_parquet(out["out"]).set_index("metric").value
    ignored, guided = values[0], values[2]
    assert guided["in_class"] / guided["valid"] > 1.3 * ignored["in_class"] / ignored["valid"]
    assert guided["nearest_by_chance"] == pytest.approx(guided["valid"] / 3, rel=0.2)
    assert guided["nearest_in_class"] > 1.3 * guided["nearest_by_chance"]
    assert guided["nearest_in_class"] / guided["valid"] > ignored["nearest_in_class"] / ignored["valid"]
    refused(measure(labels=files["validation"]), "evaluate", "do not match: expected the labels of the")
    assert measure().exit_code == 0
    others = pd.read_parquet(out["out"]).set_index("metric").value
    pd.testing.assert_series_equal(others, guided[~guided.index.str.startswith("nearest_")])
    del shared["samples"]
    options = {**shared, "count": 5, "out": tmp_path / "new.smi"}
    conditions = ["--condition", "weight=high", "--condition"]
    done("sample", *conditions, "oxygens=low", **options)
