"""Total correlation from a model to the report: the step, its refusals, and the rule through Snakemake."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pairflow.artifacts import digest, read_table, token_array
from pairflow.config import Experiment
from pairflow.errors import InputError
from pairflow.flow.corruption import Uniform
from pairflow.metrics.correlation import data_total_correlation, total_correlation
from pairflow.plan.jobs import report_inputs
from pairflow.training.model import DiscreteModel

SETTINGS = {"sources": 30, "samples": 5, "steps": 2, "quiet": True}


@pytest.fixture
def correlate(step):
    """Measure the total correlation of a model in the working directory."""

    def run(model="udlm", tokens="train.parquet", out="correlation.parquet"):
        return step("correlate", model=model, tokens=tokens, out=out, **SETTINGS)

    return run


def test_the_rows_say_what_was_measured_and_come_again_byte_for_byte(udlm, correlate):
    out, tokens = udlm / "correlation.parquet", token_array(read_table("train.parquet")[0]["tokens"])
    assert correlate().exit_code == 0
    before = digest(out)
    assert correlate().exit_code == 0
    assert digest(out) == before
    table, metadata = read_table(out, "metrics")
    rows = table.to_pandas().set_index("metric")
    names = ["total_correlation", "total_correlation_se", "total_correlation_ceiling"]
    assert list(rows.index) == names
    shared = {"method": "udlm", "nfe": 2, "seed": 0, "evaluation": "correlation", "samples": 150}
    assert all((rows[key] == value).all() for key, value in shared.items())
    assert rows["trial"].isna().all()
    assert rows["reference"].fillna("").tolist() == ["", "", "train"]
    assert rows["value"]["total_correlation_ceiling"] == data_total_correlation(tokens, 5, 30, 0).mean()
    assert 0 < rows["value"]["total_correlation_se"] < 1 < rows["value"]["total_correlation"] < 7 * np.log2(5)
    assert metadata.inputs["tokens"] == digest(udlm / "train.parquet")
    settings = {"sources": 30, "samples": 5, "steps": 2, "sampler": "ancestral", "conversion": "exact"}
    assert metadata.parameters == {"method": "udlm", "seed": 0, **settings}


def test_batches_are_of_whole_source_states_and_cover_each_once(udlm, correlate, monkeypatch):
    """With small batches the estimate is that of all the samples, which share their source states."""
    sources, samples = [], []

    def record(model, *arguments, **options):
        rows = draw(model, *arguments, **options)
        for batches, tokens in zip((sources, samples), rows, strict=True):
            batches.append(tokens.view(-1, 5, 8).numpy())
        return rows

    draw = DiscreteModel.draw
    monkeypatch.setattr(DiscreteModel, "draw", record)
    monkeypatch.setattr(Uniform, "rows_at_once", lambda corruption, length: 39)  # 7 source states and a rest
    assert correlate().exit_code == 0
    assert [batch.shape for batch in samples] == [(7, 5, 8)] * 4 + [(2, 5, 8)]
    values = pd.read_parquet("correlation.parquet").set_index("metric")["value"]
    assert values["total_correlation"] == total_correlation(np.concatenate(samples)).mean()
    assert len(np.unique(np.concatenate(samples).reshape(-1, 8), axis=0)) > 100
    states = np.concatenate(sources)
    assert (states == states[:, :1]).all()
    assert len(np.unique(states[:, 0], axis=0)) == 30


@pytest.mark.parametrize(
    ("method", "tokens", "text"),
    [
        ("udlm", "other.parquet", "other.parquet and udlm do not belong together: vocabulary"),
        ("udlm", "short.parquet", "short.parquet: expected row length and vocabulary size (N, K) = (8, 6)"),
        ("mdlm", "train.parquet", "mdlm always starts from the same source state"),
    ],
)
def test_what_does_not_fit_is_refused(
    token_rows, token_file, train, correlate, refused, method, tokens, text
):
    token_file("other.parquet", np.zeros((4, 8), int), 6, "w")
    token_file("short.parquet", np.zeros((4, 7), int), 6)
    assert train(method).exit_code == 0
    refused(correlate(method, tokens), "correlate", text)
    assert not Path("correlation.parquet").exists()


ASKED = {"methods": ["udlm", "mdlm"], "correlation": {"sources": 20, "samples": 4, "steps": 2}}


def test_it_is_measured_where_asked_for_and_only_for_uniform_noise(miniature):
    asked = Experiment.model_validate(miniature(**ASKED, seeds=[0, 3]))
    assert asked.correlated() == ["udlm"]
    assert report_inputs(Path("r"), asked)["correlations"] == [
        Path("r/seed0/metrics/udlm/correlation.parquet"),
        Path("r/seed3/metrics/udlm/correlation.parquet"),
    ]
    settings = {"sources": 20, "samples": 4, "steps": 2, "sampler": "ancestral", "conversion": "exact"}
    assert asked.correlate_settings(3).model_dump() == {**settings, "seed": 3}
    named = asked.model_dump() | {"methods": ["udlm", "random"]}
    named["correlation"]["methods"] = ["random"]
    assert Experiment.model_validate(named).correlated() == ["random"]
    silent = Experiment.model_validate(miniature())
    assert silent.correlated() == report_inputs(Path("r"), silent)["correlations"] == []
    with pytest.raises(InputError, match="no settings 'correlation'"):
        silent.correlate_settings(0)
    with pytest.raises(ValueError, match=r"correlation\.methods: 'mdlm' always starts from the same state"):
        Experiment.model_validate(miniature(methods=["mdlm"], correlation={"methods": ["mdlm"]}))
