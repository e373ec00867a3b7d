"""`pairflow.train` and `pairflow.distill`: models from rows in memory, by the workflow's jobs."""

import os
import shutil
import signal
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from miniatures import DISCRETE, EXPERIMENTS, RUN, SHARED, SOURCES, K, N, root_of, token_rows
from torch import nn

import pairflow
from pairflow.config import NETWORKS
from pairflow.errors import InputError
from pairflow.estimate import forecast
from pairflow.estimate.rates import Rate
from pairflow.networks import DENOISERS

SMALL = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 8}
PLAIN = {"warmup_iterations": 0, "decay": "constant", "final_learning_rate": 0.0, "ema_decay": 0.9999}
QUICK = {"network": SMALL, "iterations": 20, "progress": False, "threads": 1}


@pytest.fixture(autouse=True)
def own_networks_are_forgotten():
    with patch.dict(NETWORKS), patch.dict(DENOISERS):
        yield


class Recurrent(nn.Module):
    """A network of the user's own, which may press Ctrl-C."""

    calls, stops = 0, 0

    def __init__(self, *, length: int, vocabulary_size: int, width: int = 8):
        super().__init__()
        self.symbols = nn.Embedding(vocabulary_size, width)
        self.time = nn.Linear(1, width)
        self.layer = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary_size)

    def forward(self, x_t, sigma):
        if self.training:
            type(self).calls += 1
            if Recurrent.calls == Recurrent.stops:
                os.kill(os.getpid(), signal.SIGINT)
        h = self.symbols(x_t) + self.time(sigma[:, None])[:, None]
        return self.head(self.layer(h)[0])


def train(data=None, **changes):
    rows = {"vocabulary_size": K} if data is None else {}
    return pairflow.train(token_rows() if data is None else data, **QUICK | rows | changes)


def weights(folder, method="pairflow") -> bytes:
    return (folder / "seed0/models" / method / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "mine"
    return folder, train(folder=folder)


def test_the_weights_are_those_of_the_workflow(finish, tmp_path):
    root = finish("tokens") / root_of("tokens")
    settings = {"training": DISCRETE | PLAIN, "pairing": SHARED["pairing"]}
    settings["distillation"] = EXPERIMENTS["tokens"]["distillation"]
    settings["distillation"]["dcd"] |= PLAIN | {"ema_decay": 0.999, "noise_max": -1.0}
    how = {"settings": settings, "validation_fraction": 0.2, "iterations": RUN["iterations"]}
    train(method="pairflow+dcd", folder=tmp_path, **how)
    assert weights(tmp_path) == weights(root)
    assert weights(tmp_path, "pairflow+dcd") == weights(root, "pairflow+dcd")


def test_rows_may_be_of_any_library_or_a_file(trained, tmp_path):
    folder, model = trained
    samples = model.sample(5, nfe=2)
    assert samples.shape == (5, N)
    assert not list(folder.rglob("*resume*/*"))
    rows, file = token_rows(), tmp_path / "rows.npy"
    np.save(file, rows)
    for data in (torch.tensor(rows), rows.tolist(), pa.array(rows.tolist()), pd.DataFrame(rows), str(file)):
        other = train(data, vocabulary_size=K)
        np.testing.assert_array_equal(other.sample(5, nfe=2), samples)


@pytest.mark.parametrize("form", ["file", "list", "column", "Arrow"])
def test_molecules_need_no_preparation(form, tmp_path):
    file = tmp_path / "my.smi"
    molecules = [a * "C" + x + b * "C" for a in range(1, 9) for b in range(1, 9) for x in "ONS"]
    file.write_text("\n".join(molecules))
    table = pd.DataFrame({"name": range(len(molecules)), "structure": molecules})
    data = {"file": file, "list": molecules, "column": table, "Arrow": pa.array(molecules)}[form]
    model = train(data, min_heavy_atoms=2)
    assert all(isinstance(smiles, str) for smiles in model.decode(model.sample(3, nfe=2)))
    assert len(model.score(model.sample(2, nfe=2), draws=2)) == 2


def test_texts_need_no_preparation():
    texts = [f"the {word} number {number}" for word in ("sun", "moon", "star") for number in range(60)]
    model = train(texts)
    assert model.model.training.iterations == QUICK["iterations"]
    assert set("".join(model.decode(model.sample(3, nfe=2)))) <= set("".join(texts))
    folder = model.model.folder  # a temporary one
    assert folder.is_dir()
    del model
    assert not folder.exists()


def test_noise_by_frequency_is_trained_on_and_kept_by_a_distillation(tmp_path):
    model = train(method="udlm", settings={"noise": "frequencies"}, folder=tmp_path)
    pi = model.model.frequencies
    assert pi is not None
    settings = {"pairs": {"count": 40, "steps": 2}}
    new = pairflow.distill(model, "redi", iterations=4, settings=settings, progress=False)
    assert torch.equal(new.model.frequencies, pi)
    with pytest.raises(InputError, match="dcd"):
        pairflow.distill(model, "dcd", iterations=4, progress=False)


def test_given_sources_are_trained_on(tmp_path):
    model = train(sources=SOURCES, folder=tmp_path)
    x0, x1 = pairflow.read_pairs(tmp_path / "seed0/pairs/pairs-own.parquet")
    assert model.model.method == "pairs-own"
    given = {(*source, *row) for source, row in zip(SOURCES.tolist(), token_rows().tolist(), strict=True)}
    assert {(*source, *row) for source, row in zip(x0.tolist(), x1.tolist(), strict=True)} <= given


def test_a_model_learns_the_classes_of_rows():
    rows = np.repeat([[0], [1]], 100, axis=0) * np.ones((1, N), int) + np.arange(N) % 2
    labels = np.repeat(["low", "high"], 100)
    how = {"network": {"name": "mlp", "width": 64, "blocks": 1}}
    model = train(rows, vocabulary_size=3, labels=labels, **how, method="udlm", iterations=200)
    for name, symbol in (("low", 0), ("high", 1)):
        drawn = model.sample(100, nfe=8, condition=f"label={name}")
        assert (drawn[:, 0] == symbol).mean() > 0.8


def test_a_model_is_distilled(trained):
    folder, model = trained
    for name in ("dcd", "redi"):
        settings = {"pairs": {"count": 40, "steps": 2}} if name == "redi" else {}
        new = pairflow.distill(model, name, iterations=4, settings=settings, progress=False)
        assert new.model.method == f"pairflow+{name}"
        assert new.sample(3, nfe=1).shape == (3, N)
    again = pairflow.distill(folder / "seed0/models/pairflow", iterations=4, folder=folder, progress=False)
    again.save(folder / "away.zip")
    loaded = pairflow.load(folder / "away.zip")
    twice = pairflow.distill(loaded, data=folder / "data", iterations=4, progress=False)
    assert twice.model.method == "pairflow+dcd+dcd"


def test_ctrl_c_gives_the_model_so_far_and_the_same_call_resumes(tmp_path, capfd):
    how = {"network": Recurrent, "method": "udlm"}
    whole, folder = tmp_path / "whole", tmp_path / "stopped"
    train(folder=whole, **how)
    Recurrent.stops = Recurrent.calls + 7
    model = train(folder=folder, **how)
    assert "stopped after 7 of 20 iterations; this is the model so far; the same" in (capfd.readouterr().err)
    assert model.model.folder.name == "unfinished"
    assert model.sample(2, nfe=1).shape == (2, N)
    assert not (folder / "seed0/models/udlm/model.safetensors").exists()
    resumed = train(folder=folder, **how)
    assert weights(folder, "udlm") == weights(whole, "udlm")
    assert Recurrent.calls == Recurrent.stops + 13
    assert train(folder=folder, **how).model.weights == resumed.model.weights  # nothing is made again
    assert Recurrent.calls == Recurrent.stops + 13


def test_a_training_is_fitted_to_hours(monkeypatch):
    monkeypatch.setattr(forecast, "measure", lambda *_: Rate(0.25, 1.0, "measured"))
    model = train(method="udlm", hours=0.01, iterations=None)
    assert model.model.training.iterations == pytest.approx(36 / 0.25, rel=0.25)
    monkeypatch.setattr(forecast, "measure", lambda *_: None)
    with pytest.raises(InputError, match="hours: the time of a recurrent is unknown; give `iterations`"):
        train(network=Recurrent, method="udlm", hours=0.01, iterations=None)


def test_a_network_of_ones_own_travels_with_its_class(tmp_path, monkeypatch):
    model = train(network={"name": Recurrent, "width": 4})
    model.save(tmp_path / "mine.zip")
    rows = pairflow.load(tmp_path / "mine.zip", network=Recurrent).sample(4, nfe=2)
    np.testing.assert_array_equal(rows, model.sample(4, nfe=2))
    monkeypatch.delitem(NETWORKS, "recurrent")
    with pytest.raises(InputError, match=r"unknown name 'recurrent'.*network=<the class>\)$"):
        pairflow.load(tmp_path / "mine.zip")


class Odd(torch.nn.Module):
    """A network that takes no noise level."""

    def __init__(self, *, vocabulary_size):
        super().__init__()
        self.head = torch.nn.Embedding(vocabulary_size, vocabulary_size)

    def forward(self, x_t):
        return self.head(x_t)


MISTAKES = {
    "vocabulary_size: expected the number of symbols K": {"vocabulary_size": None},
    "data: row 0, position 0: expected a token in 0..1": {"data": [[3, 1]] * 20, "vocabulary_size": 2},
    "data: row 1: expected a string, found 3": {"data": ["CC", 3]},
    "network: expected a class, found an object of Linear": {"network": nn.Linear(2, 2)},
    "network: pairflow has a network encoder; rename the class Encoder": {
        "network": type("Encoder", (nn.Module,), {})
    },
    "labels: expected one for each of 200 rows, found 1": {"labels": ["a"]},
    "sources, data: expected one shape (rows, positions), found": {"sources": SOURCES[:5]},
    "sources: only for token rows": {"data": ["CC", "CO"], "sources": SOURCES},
    "train: unknown key 'training.batchsize'": {"settings": {"training": {"batchsize": 3}}},
    "folder /": {"folder": __file__},
    "network odd: TypeError: Odd.forward() takes 2 positional arguments": {"network": Odd},
}


@pytest.mark.parametrize("said", MISTAKES)
def test_a_mistake_is_one_line(said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as mistake:
        train(**({} if "data" in MISTAKES[said] else {"vocabulary_size": K}) | MISTAKES[said])
    assert str(mistake.value).startswith(said)
    assert "\n" not in str(mistake.value)


def test_a_folder_is_of_one_training(trained, tmp_path):
    folder, _ = trained
    with pytest.raises(InputError, match=r"training\.iterations is 20 there and 30 in the configuration;"):
        train(folder=folder, iterations=30)
    with pytest.raises(InputError, match="has a training on other data; choose another folder"):
        train(token_rows()[:-1], vocabulary_size=K, folder=folder)
    with pytest.raises(InputError, match="data: expected the folder with the rows that the model was"):
        pairflow.distill("digits", progress=False)
    for number, only in enumerate(("pairflow", "udlm")):
        shutil.copytree(folder / "seed0/models/pairflow", tmp_path / "seed0/models" / only)
        if number == 0:
            assert pairflow.load(tmp_path).model.method == "pairflow"
    with pytest.raises(InputError, match=rf"{tmp_path} has seed0/models/pairflow, seed0/models/udlm$"):
        pairflow.load(tmp_path)
