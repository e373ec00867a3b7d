"""Semidiscrete transport in the workflow: the step `potentials`, and trainings on new sources."""

import signal
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
import torch
from miniatures import root_of

from pairflow.artifacts import Metadata, read_table, token_array, token_column, write_table
from pairflow.artifacts.provenance import Provenance
from pairflow.config import PotentialsSettings
from pairflow.errors import Interrupted
from pairflow.flow.couple import Semidiscrete
from pairflow.pairing import potentials, transport
from pairflow.pairing.spaces import TokenSpace
from pairflow.runtime.resume import ResumeOptions

K, N, ROWS = 5, 6, 200


@pytest.fixture
def folder(here):
    """Token rows for training and validation, unlabelled, in the working directory."""
    generator = np.random.default_rng(0)
    centres = generator.integers(K, size=(8, N))
    tokens = centres[generator.integers(8, size=ROWS)]
    redrawn = generator.random(tokens.shape) < 0.4
    tokens[redrawn] = generator.integers(K, size=redrawn.sum())
    for split in ("train", "validation"):
        metadata = Metadata(kind="tokens", length=N, vocabulary_size=K, split=split, data="d", vocabulary="v")
        table = pa.table({"tokens": token_column(tokens.astype(np.uint8), K)})
        write_table(Path(f"{split}.parquet"), table, metadata)
    return here


def make(done, name="pairs.parquet", **options):
    done("potentials", tokens="train.parquet", out=name, tau=0.3, quiet=True, **options)
    return read_table(name, "pairs")


def test_the_file_has_a_source_and_a_potential_for_each_row(folder, step):
    table, metadata = make(step)
    x0, x1 = (token_array(table[name]) for name in ("x0", "x1"))
    assert (x1 == token_array(read_table("train.parquet", "tokens")[0]["tokens"])).all()
    found = metadata.parameters
    assert (found["coupling"], found["tau"], found["seed"]) == ("sdot", 0.3, 0)
    assert found["spread"] == pytest.approx(1, abs=transport.TOLERANCE)
    assert (x0 != x1).mean() == pytest.approx(found["distance"] / N, abs=0.05)
    assert 0 < found["information"] < np.log(ROWS)
    assert table["potential"].to_numpy().max() == 0


@pytest.mark.parametrize(
    ("name", "at"), [("advance", "7 steps"), ("result", "20 steps")], ids=["in a step", "while it measures"]
)
def test_threads_and_interruptions_change_no_byte(name, at, folder, step, monkeypatch):
    expected = make(step, "whole.parquet", threads=1)[0]
    settings, resume = PotentialsSettings(tau=0.3), ResumeOptions(folder / "resume", 0.0)
    run = {"device": torch.device("cpu"), "threads": 2, "progress": False}

    def stop(search):
        if name == "result" or search.step == 6:
            monkeypatch.setattr(transport, "_MEASURED", 10**12)  # for hours, unless it stops
            signal.raise_signal(signal.SIGTERM)
        return before(search)

    before, measured = getattr(transport.Search, name), transport._MEASURED
    monkeypatch.setattr(transport.Search, name, stop)
    arguments = settings, folder / "train.parquet", folder / "parts.parquet", resume
    with pytest.raises(Interrupted, match=f"stopped after {at}, which are saved"):
        potentials.write_potentials(*arguments, Provenance(), **run)
    assert not (folder / "parts.parquet").exists()
    monkeypatch.setattr(transport.Search, name, before)
    monkeypatch.setattr(transport, "_MEASURED", measured)
    potentials.write_potentials(*arguments, Provenance(), **run)
    assert read_table(folder / "parts.parquet", "pairs")[0].equals(expected)
    assert not (folder / "resume").exists()


def test_sources_that_failed_to_be_drawn_cost_no_step(folder, step, monkeypatch):
    """The last steps are saved before the rows get their sources."""
    expected = make(step, "whole.parquet")[0]
    arguments = PotentialsSettings(tau=0.3), folder / "train.parquet", folder / "parts.parquet"
    run = {"device": torch.device("cpu"), "threads": 1, "progress": False}
    resume = ResumeOptions(folder / "resume", 3600)
    with monkeypatch.context() as patch:
        patch.setattr(transport.SemidiscreteCoupling, "sources", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            potentials.write_potentials(*arguments, resume, Provenance(), **run)
    monkeypatch.setattr(transport.Search, "advance", Mock(side_effect=AssertionError("a step was repeated")))
    potentials.write_potentials(*arguments, resume, Provenance(), **run)
    assert read_table(folder / "parts.parquet", "pairs")[0].equals(expected)


def test_a_training_takes_new_sources_and_needs_potentials(folder, step, train, done, refused):
    make(step)
    assert train("sdot", "pairs.parquet").exit_code == 0
    done("diagnose", pairs="pairs.parquet", method="sdot", out="coupling.parquet")
    names = read_table("coupling.parquet", "metrics")[0]["metric"].to_pylist()
    assert {"spread", "distance", "information", "hamming_mean"} <= {*names}
    step("pair", tokens="train.parquet", coupling="random", out="random.parquet", quiet=True)
    text = "pairs of the coupling random, but the method is sdot"
    refused(train("sdot", "random.parquet"), "train", text)


def test_sources_go_to_rows_of_their_class():
    """Each class has a coupling of its own, which is asked with the numbers of its sources."""
    labels, asked = torch.tensor([0, 1, 0, 1, 1]), []

    def assign(rows):
        def choose(sources, numbers):
            asked.append(numbers.tolist())
            return np.array(rows)[sources[:, 0] % len(rows)]

        return choose

    coupling = Semidiscrete({0: assign([0, 2]), 1: assign([1, 3, 4])})
    batches = lambda iteration: torch.tensor([3, 0, 4])  # noqa: E731
    sources = lambda iteration: torch.tensor([[5], [1], [0]])  # noqa: E731
    rows = coupling(batches, torch.zeros(5, 1), sources, labels)(2)
    assert rows.tolist() == [4, 2, 1]
    assert asked == [[7], [6, 8]]


def test_each_class_is_balanced_on_its_own(folder, step):
    """The classes share no symbol at the first position, and a row is drawn within its class, even if it is
    the only one."""
    table, metadata = read_table("train.parquet", "tokens")
    assert [*potentials.classes(None, ROWS)] == [None]
    tokens = token_array(table["tokens"]).copy()
    labels = np.arange(ROWS) % 2
    labels[0] = 2
    tokens[:, 0] = labels
    labelled = pa.table({"tokens": token_column(tokens, K), "label": pa.array(labels)})
    write_table(folder / "train.parquet", labelled, replace(metadata, condition={"property": "x"}))
    parts = potentials.classes(labels, ROWS)
    numbers = {label: rows.tolist() for label, rows in parts.items()}
    assert numbers == {0: [*range(2, ROWS, 2)], 1: [*range(1, ROWS, 2)], 2: [0]}
    found, written = make(step)
    second = transport.Search(TokenSpace(tokens[1::2], K), tau=0.3, seed=0, threads=1)
    second = transport.complete(second, progress=False)
    np.testing.assert_array_equal(found["potential"].to_numpy()[1::2], second.potentials)
    assert found["potential"][0].as_py() == 0
    assert written.parameters["spread"] == pytest.approx(1, abs=transport.TOLERANCE)


def test_points_have_potentials_too(finish):
    root = finish("vectors") / root_of("vectors")
    table, metadata = read_table(root / "seed0/pairs/sdot.parquet", "vector pairs")
    x0, x1 = (token_array(table[name]) for name in ("x0", "x1"))
    np.testing.assert_array_equal(x1, token_array(read_table(root / "data/train.parquet")[0]["values"]))
    assert ((x0 - x1) ** 2).sum(axis=1).mean() == pytest.approx(metadata.parameters["distance"], rel=0.1)
    assert metadata.parameters["spread"] == pytest.approx(1, abs=transport.TOLERANCE)
