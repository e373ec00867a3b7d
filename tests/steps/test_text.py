"""A text of a user's own through every step, to the page, without Snakemake."""

import contextlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pairflow.artifacts import read_table, token_array
from pairflow.config import Experiment, check
from pairflow.metrics.text.kneser_ney import KneserNey
from pairflow.metrics.text.ngrams import token_entropy
from pairflow.plan.jobs import jobs

SETTINGS = {
    "description": "a text of a user's own",
    "scale": "reduced",
    "data": {
        "source": "./my.txt",
        "tokeniser": "characters",
        "length": 8,
        "validation_fraction": 0.2,
        "judge_fraction": 0.2,
    },
    "network": {"name": "mlp", "width": 16, "blocks": 1, "time_width": 8},
    "pairing": {"steps": 3},
    "training": {"batch_size": 16, "iterations": 20, "learning_rate": 1e-2, "validate_every": 10},
    "methods": ["udlm", "pairflow"],
    "evaluations": {"main": {"nfe": [1, 2], "samples": 20, "trials": 2, "temperatures": [0.5]}},
    "judge": {"order": 3},
}
ROOT = Path("results/own")
CONTROLS = ("data", "shuffled", "chain", "snippet")
METRICS = {
    *("judge_ppl", "entropy", "known_words", "rep_4", "distinct_4"),
    *("js_unigram", "js_bigram", "js_trigram", "copied_span", "copied_span_max"),
}


@pytest.fixture(scope="module")
def experiment():
    return check(Experiment, SETTINGS, "test")


@pytest.fixture(scope="module")
def finished(made_once, experiment, run_job):
    """A folder with the text and the results of all jobs, in the order of the plan."""

    def make(folder: Path) -> None:
        folder.mkdir()
        with contextlib.chdir(folder):
            words = np.random.default_rng(0).choice(["to", "be", "or", "not", "that"], 600)
            Path("my.txt").write_text(" ".join(words))
            for job in jobs(ROOT, experiment):
                run_job(job, experiment)

    return made_once("own text", make)


@pytest.fixture(scope="module")
def rows(finished):
    return pd.read_parquet(finished / ROOT / "metrics.parquet")


def tokens(folder: Path, name: str) -> np.ndarray:
    return token_array(read_table(folder / ROOT / name)[0]["tokens"]).astype(int)


def test_every_metric_is_there_of_samples_of_real_text_and_of_controls(rows, experiment):
    for name in ("main", "main_t0_5"):
        own = rows[rows.evaluation == name]
        for method in (*experiment.methods, *CONTROLS):
            assert set(own[own.method == method].metric) == METRICS
        assert (own.samples == 20).all()
        assert own[own.method.isin(experiment.methods)].nfe.notna().all()
        assert own[own.method.isin(CONTROLS)].nfe.isna().all()
    references = dict(zip(rows.metric, rows.reference.fillna(""), strict=True))
    assert (references["js_bigram"], references["copied_span"], references["entropy"]) == (
        "test",
        "train",
        "",
    )


def test_the_values_are_those_of_the_samples_under_a_judge_of_its_own_text(finished, rows):
    size = read_table(finished / ROOT / "data/train.parquet")[1].vocabulary_size
    judge = KneserNey.fit(tokens(finished, "data/judge.parquet").reshape(1, -1), size, 3)
    samples = tokens(finished, "seed0/samples/pairflow/main/nfe2.parquet")[:20]
    own = rows[
        (rows.method == "pairflow") & (rows.evaluation == "main") & (rows.nfe == 2) & (rows.trial == 0)
    ]
    values = own.set_index("metric").value
    assert values["judge_ppl"] == pytest.approx(judge.perplexity(samples))
    assert values["entropy"] == pytest.approx(token_entropy(samples).mean())
    assert re.fullmatch(r"kneser-ney-3-[0-9a-f]{8}", own.set_index("metric").extractor["judge_ppl"])


def test_the_bounds_are_one_number_in_three_units(rows, experiment):
    """A character is a token here, so that bits per character are nats per token / ln 2."""
    bounds = rows[rows.evaluation == "likelihood"].pivot_table("value", "method", "metric")
    assert list(bounds.index) == sorted(experiment.methods)
    assert bounds.ppl_bound.to_numpy() == pytest.approx(np.exp(bounds.nll_bound.to_numpy()))
    assert bounds.bpc_bound.to_numpy() == pytest.approx(bounds.nll_bound.to_numpy() / np.log(2))


def test_a_lower_temperature_gives_samples_that_vary_less(rows):
    means = rows[(rows.metric == "distinct_4") & rows.nfe.notna()].groupby("evaluation").value.mean()
    assert means["main_t0_5"] < means["main"]


def test_the_page_shows_the_controls_the_frontier_and_the_bound(finished):
    page = (finished / ROOT / "report.html").read_text()
    for text in (
        "Beside real text, and beside rows that anyone can draw",
        "one training row, repeated.",
        "held-out text",
        "Perplexity and entropy by temperature, NFE 2",
        "temperature 0.5",
        "judge perplexity",
        "≤ ",
    ):
        assert text in page
    assert "Evaluation main_t0_5" not in page
    said = re.sub(r"<script.*?</script>", "", page.partition("<body>")[2], flags=re.DOTALL)
    for word in ("olecule", "SMILES", "RDKit", "pixel", "image"):
        assert word not in said
