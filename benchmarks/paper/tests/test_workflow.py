"""The page on the paper through Snakemake, first without results and then with one; it runs no experiment."""

import pytest
import yaml

pytestmark = pytest.mark.workflow

QM9 = {
    "description": "never run",
    "scale": "paper",
    "data": {"source": "qm9", "length": 32},
    "network": {"name": "mlp"},
    "training": {"batch_size": 256, "iterations": 100, "learning_rate": 1.0e-3},
    "methods": ["udlm", "pairflow"],
    "evaluations": {"main": {"nfe": [1]}},
}


def test_the_page_needs_no_results_and_runs_none(snakemake, tmp_path):
    (tmp_path / "workflow_config.yaml").write_text(yaml.safe_dump({"experiments": {"qm9": QM9}}))
    run = snakemake(tmp_path, "results/paper/report.html")
    assert run.returncode == 0, run.stderr
    assert "1 of 1 steps" in run.stderr + run.stdout
    page = (tmp_path / "results/paper/report.html").read_text(encoding="utf-8")
    assert "no finished experiment" in page
    assert "pairflow run qm9 --cores 8 --gpus 1" in page
    again = snakemake(tmp_path, "--dry-run", "results/paper/report.html")
    assert "Nothing to be done" in again.stderr + again.stdout

    # A result appears. Only the page is out of date: Snakemake does not rerun what the result came from.
    (tmp_path / "results/qm9").mkdir()
    (tmp_path / "results/qm9/metrics.parquet").write_bytes(b"what another machine made")
    changed = snakemake(tmp_path, "--dry-run", "results/paper/report.html")
    jobs = [line.split()[1] for line in changed.stdout.splitlines() if line.startswith("rule ")]
    assert {job.rstrip(":") for job in jobs} == {"paper"}
