"""Total correlation from a model to the report: the step, its refusals, and the rule through Snakemake."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from click.testing import CliRunner

from pairflow.artifacts import digest, read_table
from pairflow.config import CorrelateSettings, Experiment
from pairflow.errors import InputError
from pairflow.flow.corruption import Uniform
from pairflow.metrics.correlation import data_total_correlation, total_correlation
from pairflow.plan import paths
from pairflow.steps import correlate, train

REPOSITORY = Path(__file__).parent.parent.parent
TRAINING = {"batch_size": 8, "iterations": 4, "learning_rate": 1e-3, "validate_every": 2}
NETWORK = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16}
SETTINGS = ("--sources", "30", "--samples", "5", "--steps", "2", "--quiet")
TOKENS = np.random.default_rng(0).integers(0, 6, (60, 8))


@pytest.fixture
def trained(token_file, tmp_path):
    """Train a method on TOKENS, in train.parquet; returns the model's folder."""

    def run(method: str = "udlm") -> Path:
        data, folder = token_file("train.parquet", TOKENS, 6), tmp_path / method
        names = {"--model": "model.safetensors", "--description": "model.json", "--log": "log.parquet"}
        flags = [item for flag, file in names.items() for item in (flag, folder / file)]
        settings = json.dumps({"method": method, "network": NETWORK, "training": TRAINING})
        flags += ["--settings", settings, "--data", data, "--validation", data, "--quiet"]
        train.main([str(item) for item in flags], standalone_mode=False)
        return folder

    return run


def test_the_rows_say_what_was_measured_and_come_again_byte_for_byte(trained, pairflow_command, tmp_path):
    model, tokens, out = trained(), tmp_path / "train.parquet", tmp_path / "correlation.parquet"
    flags = ["--model", model, "--tokens", tokens, "--out", out, *SETTINGS]
    assert pairflow_command("correlate", *flags).returncode == 0
    before = digest(out)
    assert pairflow_command("correlate", *flags).returncode == 0
    assert digest(out) == before
    table, metadata = read_table(out, "metrics")
    rows = table.to_pandas().set_index("metric")
    assert list(rows.index) == ["total_correlation", "total_correlation_se", "total_correlation_ceiling"]
    shared = {"method": "udlm", "nfe": 2, "seed": 0, "evaluation": "correlation", "samples": 150}
    assert all((rows[key] == value).all() for key, value in shared.items())
    assert rows["trial"].isna().all()
    assert rows["reference"].fillna("").tolist() == ["", "", "train"]
    assert rows["value"]["total_correlation_ceiling"] == data_total_correlation(TOKENS, 5, 30, 0).mean()
    assert 0 < rows["value"]["total_correlation_se"] < 1 < rows["value"]["total_correlation"] < 7 * np.log2(5)
    assert metadata.inputs["tokens"] == digest(tokens)
    assert metadata.parameters == {
        "method": "udlm",
        "sources": 30,
        "samples": 5,
        "steps": 2,
        "sampler": "ancestral",
        "conversion": "exact",
        "seed": 0,
    }


def test_batches_are_of_whole_source_states_and_cover_each_once(trained, tmp_path, monkeypatch):
    """In one process, with small batches: the estimate is that of all the samples that were drawn."""
    model, out, drawn = trained(), tmp_path / "correlation.parquet", []

    def record(*arguments):
        drawn.append(draw(*arguments))
        return drawn[-1]

    draw = correlate._draw
    monkeypatch.setattr(correlate, "_draw", record)
    monkeypatch.setattr(Uniform, "rows_at_once", lambda corruption, length: 39)  # 7 source states and a rest
    flags = ["--model", model, "--tokens", tmp_path / "train.parquet", "--out", out, *SETTINGS]
    correlate.main([str(item) for item in flags], standalone_mode=False)
    assert [batch.shape for batch in drawn] == [(7, 5, 8)] * 4 + [(2, 5, 8)]
    values = pd.read_parquet(out).set_index("metric")["value"]
    assert values["total_correlation"] == total_correlation(np.concatenate(drawn)).mean()
    assert len(np.unique(np.concatenate(drawn).reshape(-1, 8), axis=0)) > 100


def test_samples_of_one_source_state_share_it_and_others_do_not(monkeypatch):
    facts = {"method": "udlm", "length": 8, "vocabulary_size": 6, "mask": None, "prediction": "posterior"}
    settings = CorrelateSettings(sources=4, samples=5)
    monkeypatch.setitem(Uniform.samplers, "ancestral", lambda denoise, x0, **options: x0)
    samples = correlate._draw(None, facts, settings, 0, 4, torch.device("cpu"))
    assert samples.shape == (4, 5, 8)
    assert (samples == samples[:, :1]).all()
    assert len(np.unique(samples[:, 0], axis=0)) == 4


def test_what_does_not_fit_is_refused_by_name(trained, token_file, tmp_path):
    out = tmp_path / "correlation.parquet"

    def mistake(model, tokens, text):
        flags = ["--model", str(model), "--tokens", str(tokens), "--out", str(out)]
        run = CliRunner().invoke(correlate.main, [*flags, *SETTINGS])
        assert run.exit_code == 2
        assert run.output.startswith("pairflow correlate: error: ")
        assert text in run.output
        assert run.output.count("\n") == 1
        assert not out.exists()

    model = trained()
    other = token_file("other.parquet", TOKENS, 6, "w")
    mistake(model, other, f"other.parquet and {model} do not belong together: vocabulary w against v")
    short = token_file("short.parquet", TOKENS[:, :7], 6)
    mistake(model, short, f"short.parquet: expected (N, K) = (8, 6) as in {model}, found (7, 6)")
    mistake(trained("mdlm"), tmp_path / "train.parquet", "mdlm has a single source state, all masks")


def experiment(**changes) -> dict:
    return {
        "description": "a few molecules",
        "scale": "reduced",
        "data": {"source": "small_molecules", "length": 16, "max_heavy_atoms": 4},
        "network": NETWORK,
        "training": TRAINING,
        "methods": ["udlm", "mdlm"],
        "evaluations": {"main": {"nfe": [1], "samples": 4, "trials": 2}},
        "correlation": {"sources": 20, "samples": 4, "steps": 2},
        **changes,
    }


def test_it_is_measured_where_asked_for_and_only_for_uniform_noise():
    asked = Experiment.model_validate(experiment(seeds=[0, 3]))
    assert asked.correlated() == ["udlm"]
    assert paths.report_inputs(Path("r"), asked)["correlations"] == [
        Path("r/seed0/metrics/udlm/correlation.parquet"),
        Path("r/seed3/metrics/udlm/correlation.parquet"),
    ]
    assert asked.correlate_settings(3).model_dump() == {
        "sources": 20,
        "samples": 4,
        "steps": 2,
        "sampler": "ancestral",
        "conversion": "exact",
        "seed": 3,
    }
    silent = Experiment.model_validate(experiment(correlation=None))
    assert silent.correlated() == paths.report_inputs(Path("r"), silent)["correlations"] == []
    with pytest.raises(InputError, match="no settings 'correlation'"):
        silent.correlate_settings(0)


def test_no_evaluation_takes_the_name_of_other_metric_rows():
    with pytest.raises(ValueError, match="evaluations: 'correlation' is the name of other metric rows"):
        Experiment.model_validate(experiment(evaluations={"correlation": {"nfe": [1]}}))


@pytest.mark.workflow
def test_the_workflow_measures_it_and_the_report_shows_it(snakemake, tmp_path):
    (tmp_path / "workflow_config.yaml").write_text(yaml.safe_dump({"experiments": {"mini": experiment()}}))
    run = snakemake(tmp_path, "results/mini/report.html")
    assert run.returncode == 0, run.stderr + run.stdout
    root = tmp_path / "results/mini"
    rows = pd.read_parquet(root / "metrics.parquet").query("evaluation == 'correlation'")
    assert rows["method"].tolist() == ["udlm"] * 3
    timings = pd.read_parquet(root / "timings.parquet").query("step == 'correlate'")
    assert timings["method"].tolist() == ["udlm"]
    value = rows.set_index("metric")["value"].map("{:.2f}".format)
    cell = f"{value['total_correlation']} <small>± {value['total_correlation_se']}</small>"
    page = (root / "report.html").read_text()
    assert f"<td>{cell}</td>" in page
    assert f"<td>{value['total_correlation_ceiling']}</td>" in page
    assert page.count("Evaluation <em>") == 1
    assert 'id="coupling"' not in page
