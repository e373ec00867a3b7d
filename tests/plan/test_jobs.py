"""The table of jobs against the graph that Snakemake builds from rules/, and what is read from the table."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pairflow.config import Experiment, check
from pairflow.config.file import read
from pairflow.plan import paths
from pairflow.plan.jobs import Job, jobs

HERE = Path(__file__).parent
SHIPPED = HERE.parent.parent / "workflow_config.yaml"
CORES = 6
RUN = {"batch_size": 32, "iterations": 20, "learning_rate": 1.0e-3}
OWN = {
    "description": "a user's own molecules, with all that an experiment can ask for",
    "scale": "reduced",
    "seeds": [0, 1],
    "data": {"source": "my.smi", "length": 16},
    "network": {"name": "mlp"},
    "pairing": {"steps": 5, "coverage": True},
    "training": RUN,
    "distillation": {"dcd": {**RUN, "teacher_every": 3}, "redi": RUN},
    "methods": ["mdlm", "random", "pairflow-sub2", "udlm+dcd", "udlm+redi+redi"],
    "evaluations": {"main": {"nfe": [1, 2, 4]}, "b": {"nfe": [3], "methods": ["mdlm"]}},
    "correlation": {"sources": 10, "steps": 2},
    "chemistry": {"fcd": True},
}
IMAGES = {
    **{key: OWN[key] for key in ("description", "scale", "seeds", "network", "training", "distillation")},
    "data": {"source": "digits"},
    "methods": ["mdlm", "pairflow+dcd", "pairflow+redi"],
    "evaluations": {"main": {"nfe": [1, 2]}},
}


def snakemake_jobs(folder: Path, *experiments: str) -> dict[str, dict]:
    """Snakemake's jobs on a machine with a GPU, by their first output."""
    driver = folder / "bin" / "nvidia-smi"
    driver.parent.mkdir(exist_ok=True)
    driver.touch(mode=0o755)
    (folder / "my.smi").write_text("C\n")
    command = [sys.executable, HERE / "snakemake_jobs.py", str(CORES), *experiments]
    path = os.pathsep.join([str(driver.parent), os.environ["PATH"]])
    run = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return {next(iter(job["outputs"].values()))[0]: job for job in json.loads(run.stdout)}


def described(job: Job, images: bool) -> dict:
    """A job of the table in the words of `snakemake_jobs`."""

    def files(named):
        groups = {name: [value] if isinstance(value, Path) else value for name, value in named.items()}
        return {name: [path.as_posix() for path in group] for name, group in groups.items() if group}

    two_rules = images and job.rule in TWO_RULES
    return {
        "rule": job.rule + "_images" * two_rules,
        "inputs": files(job.inputs),
        "outputs": files(job.outputs),
        "settings": job.settings and json.dumps(job.settings.model_dump(mode="json"), sort_keys=True),
        "threads": CORES if job.threads is None else job.threads,
        "gpu": int(job.gpu),
        "priority": job.priority,
    }


TWO_RULES = ("preprocess", "train", "distill", "evaluate")


def compare(folder: Path, shards: int = 1) -> None:
    experiments = read(folder / "workflow_config.yaml").experiments
    expected = snakemake_jobs(folder, *experiments)
    table = {}
    for name, experiment in experiments.items():
        for job in jobs(Path("results", name), experiment, shards):
            table[job.record.as_posix()] = described(job, experiment.modality == "images")
    assert table.keys() == expected.keys()
    for path, job in table.items():
        assert job == expected[path]


def test_every_shipped_experiment_has_snakemakes_jobs(tmp_path):
    (tmp_path / "workflow_config.yaml").write_text(SHIPPED.read_text())
    compare(tmp_path)


@pytest.mark.parametrize("shards", [1, 3])
def test_everything_that_can_be_asked_for_has_snakemakes_jobs(tmp_path, shards):
    config = {"experiments": {"own": OWN, "images": IMAGES}, "pair_shards": shards}
    (tmp_path / "workflow_config.yaml").write_text(yaml.safe_dump(config))
    compare(tmp_path, shards)


EXPERIMENTS = [check(Experiment, values, "x") for values in (OWN, IMAGES)]


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=["molecules", "images"])
def test_every_job_comes_after_those_that_it_waits_for(experiment):
    table = jobs(Path("results/x"), experiment, shards=2)
    outputs, seen = {path for job in table for path in job.outputs.values()}, set()
    assert len(outputs) == sum(len(job.outputs) for job in table)
    for job in table:
        assert outputs.intersection(job.needed) <= seen
        seen.update(job.outputs.values())


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=["molecules", "images"])
def test_the_report_reads_what_the_last_job_needs(experiment):
    root = Path("results/x")
    kinds = paths.report_inputs(root, experiment)
    assert kinds == jobs(root, experiment)[-1].inputs
    assert len(kinds["metrics"]) == sum(1 for _ in paths.runs(experiment))
