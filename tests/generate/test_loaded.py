"""A trained model in Python: `pairflow.load`."""

import re

import numpy as np
import pytest
import torch
from miniatures import root_of
from rdkit import Chem

import pairflow
from pairflow.config import DemandSettings, ScoreSettings
from pairflow.data.delivery import Candidate
from pairflow.generate.demand import SampleStream
from pairflow.generate.score import Scorer
from pairflow.kinds.molecules.data.prepare import PAD

TOP = np.array([0] * 8 + [-1] * 56)


def test_it_says_in_a_line_what_it_is(digits):
    assert repr(digits) == "<LoadedModel digits: pairflow, N = 64, K = 2, 905,985 parameters, cpu>"
    assert (digits.nfe, digits.temperature, digits.sampler) == (4, 1.0, "euler")


def test_samples_are_those_of_the_function_and_of_the_command(digits, done, tmp_path):
    rows = digits.sample(5)
    assert (rows.shape, rows.dtype) == ((5, 64), np.int64)  # differences of small unsigned numbers would wrap
    np.testing.assert_array_equal(rows, pairflow.load("digits", device="cpu").sample(5, nfe=4))
    assert not np.array_equal(rows, digits.sample(5, seed=1))
    options = {"nfe": 2, "samples": 5, "trials": 1, "temperature": 0.5, "sampler": "euler", "device": "cpu"}
    done("sample", model="digits", out=tmp_path / "x.parquet", quiet=True, **options)
    written = pairflow.artifacts.read_table(tmp_path / "x.parquet", "samples")[0]["tokens"].to_pylist()
    np.testing.assert_array_equal(digits.sample(5, nfe=2, temperature=0.5), written)


@pytest.mark.parametrize(
    ("name", "field", "measured", "other"),
    [("shakespeare", "temperature", 0.8, 1), ("digits", "sampler", "euler", "ancestral")],
)
def test_a_model_is_sampled_as_it_was_measured(name, field, measured, other):
    model = pairflow.load(name, device="cpu")
    rows = model.sample(3, nfe=4)
    assert getattr(model, field) == measured
    np.testing.assert_array_equal(rows, model.sample(3, nfe=4, **{field: measured}))
    assert not np.array_equal(rows, model.sample(3, nfe=4, **{field: other}))
    for asked, value, nfe in (({"nfe": 2}, measured, 2), ({field: other}, other, model.nfe)):
        settings = SampleStream(name, DemandSettings(count=1, **asked)).settings
        assert (getattr(settings, field), settings.nfe) == (value, nfe)


def test_given_symbols_stay_and_sources_decide(digits):
    rows = digits.sample(20, given=TOP)
    assert not rows[:, :8].any()
    assert rows[:, 8:].any()
    each = np.where(np.arange(20)[:, None] % 2, 1, TOP)  # every second row is given as a whole
    assert (digits.sample(20, given=each)[1::2] == 1).all()
    zeros = digits.sample(x0=np.zeros((3, 64), int), nfe=1)
    assert len(zeros) == 3
    assert not np.array_equal(zeros, digits.sample(x0=np.ones((3, 64), int), nfe=1))
    assert not digits.sample(x0=[[0] * 64], given=torch.zeros(64, dtype=torch.long)).any()


def test_the_denoiser_gives_probabilities_of_every_symbol(digits):
    log_p = digits.denoiser(torch.zeros((2, 64), dtype=torch.long), torch.tensor([0.2, 0.8]))
    assert log_p.shape == (2, 64, 2)
    torch.testing.assert_close(log_p.exp().sum(-1), torch.ones(2, 64))
    assert not digits.network.training


def test_rows_are_decoded_to_what_they_stand_for(digits, finish):
    images = digits.decode(np.eye(64, dtype=int)[:2])
    assert (images.shape, images.dtype, images[1, 0, 1, 0]) == ((2, 8, 8, 1), np.uint8, 255)
    assert images.sum() == 2 * 255
    model = pairflow.load("zinc250k", device="cpu")
    smiles = model.decode(model.sample(5, nfe=2))
    assert len(smiles) == 5
    assert all(map(Chem.MolFromSmiles, smiles))
    with pytest.raises(pairflow.InputError, match=r"^rows: row 0, position 3: expected a token in 0..1"):
        digits.decode([[0] * 3 + [2] + [0] * 60])
    tokens = pairflow.load(finish("tokens") / root_of("tokens") / "seed0/models/udlm", device="cpu")
    with pytest.raises(pairflow.InputError, match=r"^decode: token rows stand for nothing else$"):
        tokens.decode(tokens.sample(1, nfe=1))


def test_scores_are_those_of_the_command_and_real_digits_are_likelier(digits):
    model, scorer = pairflow.load("zinc250k", device="cpu"), Scorer("zinc250k", ScoreSettings(draws=4))
    rows = model.sample(2, nfe=4)
    scores = model.score(rows, draws=4)
    rest = scorer.score([Candidate(1, "", "", row) for row in rows])
    for column in ("nll_bound", "nll_per_token"):
        np.testing.assert_array_equal(scores[column], rest[column])
    assert [*scores] == ["nll_bound", "standard_error", "low", "high", "nll_per_token"]
    noise = np.random.default_rng(0).integers(0, 2, (5, 64))
    made, random = (digits.score(rows).nll_bound for rows in (digits.sample(5), noise))
    assert made.max() < random.min()


def test_a_continuous_flow_takes_less(finish):
    model = pairflow.load(finish("vectors") / root_of("vectors") / "seed0/models/condot", device="cpu")
    assert model.sample(3, nfe=2).shape == (3, model.model.length)
    only = "^sample: a model of a continuous flow takes only count, nfe and seed$"
    for options in ({"temperature": 0.5}, {"sampler": "euler"}, {"guidance": 2.0, "condition": "a=b"}):
        with pytest.raises(pairflow.InputError, match=only):
            model.sample(3, nfe=2, **options)
    for name in ("x0", "given"):
        with pytest.raises(pairflow.InputError, match=f"^{name}: only a model of tokens has one"):
            model.sample(3, nfe=2, **{name: [[0]]})
    with pytest.raises(pairflow.InputError, match=r"^denoiser: only a model of tokens"):
        _ = model.denoiser


def test_a_row_of_padding_has_no_score():
    model = pairflow.load("zinc250k", device="cpu")
    rows = model.sample(2, nfe=1)
    rows[1] = PAD
    text = r"^rows: row 1: expected at least one token, found only padding$"
    with pytest.raises(pairflow.InputError, match=text):
        model.score(rows, draws=2)


STATE = torch.zeros((2, 64), dtype=torch.long)


@pytest.mark.parametrize(
    ("call", "options", "text"),
    [
        ("sample", {}, "count: expected an integer in 1.."),
        ("sample", {"count": 2, "x0": [[0] * 64]}, "x0: expected 2 rows, found 1"),
        ("sample", {"x0": [[2] * 64]}, "x0: row 0, position 0: expected a token in 0..1, found 2"),
        ("sample", {"count": 1, "given": [-2] * 64}, "given: row 0, position 0: expected a token in 0..1"),
        ("sample", {"count": 1, "condition": "qed=high"}, "condition: the model in "),
        ("sample", {"count": 1, "guidance": 2.0}, "sample: guidance: needs a condition, such as qed=high"),
        ("sample", {"count": 1, "given": [True] * 64}, "given: expected an integer dtype, found bool"),
        ("score", {"rows": [[0] * 64], "draws": "2"}, "draws: expected an integer in 2..1000000, found '2'"),
        ("score", {"rows": [[0] * 64], "draws": 3}, "score: draws: input should be a multiple of 2, found 3"),
        ("score", {"rows": [[True] * 64]}, "rows: expected an integer dtype, found bool"),
        ("decode", {"rows": [[True] * 64]}, "rows: expected an integer dtype, found bool"),
        (
            "denoiser",
            {"x_t": STATE, "kappa": torch.tensor([0.5, 2])},
            "kappa: expected numbers above 0 and at",
        ),
        ("denoiser", {"x_t": STATE, "kappa": "1"}, "kappa: expected a number or a tensor (B,), found str"),
        ("denoiser", {"x_t": STATE + 2, "kappa": 0.5}, "x_t: expected tokens in 0..1, found 2"),
        ("denoiser", {"x_t": STATE[:, :63], "kappa": 0.5}, "x_t: expected shape (2, 64), found (2, 63)"),
        ("denoiser", {"x_t": STATE.numpy(), "kappa": 0.5}, "x_t: expected a torch tensor of integers, found"),
    ],
)
def test_a_mistake_is_one_line_before_the_network_is_called(digits, call, options, text, monkeypatch):
    monkeypatch.setattr(digits.network, "forward", None)
    with pytest.raises(pairflow.InputError, match=f"^{re.escape(text)}") as error:
        getattr(digits, call)(**options)
    assert "\n" not in str(error.value)
