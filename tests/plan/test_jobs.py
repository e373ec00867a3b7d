"""The table of jobs against the graph that Snakemake builds from rules/, and what is read from the table."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pairflow.config import Experiment, check
from pairflow.config.file import read
from pairflow.estimate.costs import memory_requests
from pairflow.plan.job import Job
from pairflow.plan.jobs import divide_cores, jobs
from pairflow.plan.sizes import about
from pairflow.runtime.memory import usable_memory

HERE = Path(__file__).parent
SHIPPED = yaml.safe_load((HERE.parent.parent / "workflow_config.yaml").read_text())["experiments"]
EXPERIMENTS = SHIPPED | {
    "own": SHIPPED["qm9"]
    | {
        "data": {"source": "my.smi", "held_out": "test.smi", "length": 16},
        "seeds": [0, 1],
        "methods": ["mdlm", "random", "sdot", "pairflow-sub2", "udlm+dcd", "udlm+redi+redi"],
        "chemistry": {"fcd": True},
    },
    "conditional": SHIPPED["qm9"]
    | {
        "data": {"source": "my.smi", "length": 16, "condition": [{"property": "qed"}, {"column": "pIC50"}]},
        "methods": ["udlm", "pairflow"],
        "evaluations": {"high": {"nfe": [4], "condition": "qed=high", "guidances": [0, 2.5]}},
    },
    "tuned": SHIPPED["demo"] | {"data": {"source": "my.smi", "length": 16}, "from": "models/zinc"},
    "tuned_norms": SHIPPED["demo"]
    | {
        "data": {"source": "my.smi", "length": 16},
        "from": "models/zinc",
        "chemistry": {"plausible": True},
        "evaluations": {
            "main": {"nfe": [1, 4], "samples": 8},
            "cold": {"nfe": [2], "temperature": 0.7},
        },
    },
    "tuned_images": SHIPPED["digits"] | {"from": "results/digits/seed0/models/udlm"},
    "tuned_text": SHIPPED["digits"]
    | {"data": {"source": "my.txt", "tokeniser": "characters", "length": 8}, "from": "models/zinc"},
    "text": SHIPPED["digits"] | {"data": {"source": "my.txt", "tokeniser": "characters", "length": 8}},
    "folder": SHIPPED["digits"] | {"data": {"source": "my/texts", "tokeniser": "characters", "length": 8}},
    "tokens": SHIPPED["digits"]
    | {
        "data": {"source": "tokens", "file": "rows.npy", "vocabulary_size": 4},
        "pairs": {"mine": "mine.parquet"},
        "methods": ["udlm", "pairflow", "pairs-mine", "pairs-mine+dcd"],
        "distillation": {"dcd": SHIPPED["demo"]["distillation"]["dcd"]},
        "correlation": {"sources": 2, "samples": 2, "steps": 1},
        "evaluations": {"main": {"nfe": [1, 4], "samples": 8}, "check": {"nfe": [2], "methods": ["udlm"]}},
    },
}
CORES = 6
BY_KIND = ("preprocess", "evaluate", "floor")  # rules of which each kind of data has its own


def snakemake_jobs(folder: Path, *experiments: str, gpu: bool = True) -> dict[str, dict]:
    """Snakemake's jobs on a machine with a GPU or without, by their first output."""
    driver = folder / "bin" / "nvidia-smi"
    driver.parent.mkdir(exist_ok=True)
    if gpu:
        driver.touch(mode=0o755)
    (folder / "models" / "zinc").mkdir(parents=True, exist_ok=True)
    parent = [f"models/zinc/{name}" for name in ("model.safetensors", "model.json", "vocabulary.json")]
    for own in ("my.smi", "test.smi", "my.txt", "rows.npy", "mine.parquet", *parent):
        (folder / own).touch()
    command = [sys.executable, HERE / "snakemake_jobs.py", str(CORES), *experiments]
    folders = os.environ["PATH"].split(os.pathsep)
    if not gpu:  # also on a machine that has one
        folders = [name for name in folders if not Path(name, "nvidia-smi").exists()]
    path = os.pathsep.join([str(driver.parent), *folders])
    environment = {**os.environ, "PATH": path}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return {next(iter(job["outputs"].values()))[0]: job for job in json.loads(run.stdout)}


def described(job: Job, modality: str, shares: dict[str, int]) -> dict:
    """A job of the table in the words of `snakemake_jobs`."""
    own = CORES if job.threads is None else job.threads

    def files(named):
        groups = {name: [value] if isinstance(value, Path) else value for name, value in named.items()}
        return {name: [path.as_posix() for path in group] for name, group in groups.items() if group}

    return {
        "rule": job.rule + (f"_{modality}" if job.rule in BY_KIND else ""),
        "inputs": files(job.inputs),
        "outputs": files(job.outputs),
        "settings": job.settings and json.dumps(job.settings.model_dump(mode="json"), sort_keys=True),
        "threads": own if job.gpu else shares.get(job.rule, own),
        "gpu": int(job.gpu),
        "priority": job.priority,
    }


@pytest.mark.parametrize(("shards", "names"), [(1, EXPERIMENTS), (3, ["two_moons_d2", "own", "tokens"])])
def test_the_jobs_are_snakemakes(tmp_path, shards, names):
    """Every shipped experiment, and those above; pairing in shards of some of them."""
    own = {"tokens": EXPERIMENTS["tokens"]}  # in a file of its own
    config = {"experiments": {key: EXPERIMENTS[key] for key in names if key not in own}}
    config["pair_shards"] = shards
    (tmp_path / "experiments").mkdir()
    for file, values in (("workflow_config", config), ("experiments/mine", {"experiments": own})):
        (tmp_path / f"{file}.yaml").write_text(yaml.safe_dump(values))
    expected = snakemake_jobs(tmp_path, *names)
    table = {}
    for name, experiment in read(tmp_path / "workflow_config.yaml").experiments.items():
        planned = jobs(Path("results", name), experiment, shards)
        shares = divide_cores(experiment, planned, CORES)
        for job in planned:
            table[job.record.as_posix()] = described(job, experiment.data.kind, shares)
    assert table.keys() == expected.keys()
    for path, job in table.items():
        assert job.items() <= expected[path].items()


def test_trainings_share_cores_and_memory_as_snakemakes_do(tmp_path):
    """No job asks for more than the machine has, so that the largest ones run after one another."""
    config = {"experiments": {name: EXPERIMENTS[name] for name in ("demo", "tuned_norms", "cifar10")}}
    (tmp_path / "workflow_config.yaml").write_text(yaml.safe_dump(config))
    expected = snakemake_jobs(tmp_path, *config["experiments"], gpu=False)
    for name, experiment in read(tmp_path / "workflow_config.yaml").experiments.items():
        table = jobs(Path("results", name), experiment)
        shares = divide_cores(experiment, table, CORES)
        for job in table:
            own = CORES if job.threads is None else job.threads
            assert expected[job.record.as_posix()]["threads"] == shares.get(job.rule, own)
        asked = memory_requests(Path("results", name), experiment, about(tmp_path / name, experiment))
        for job in table:
            if job.rule in ("train", "distill", "sample", "diagnose"):
                memory = min(asked[job.rule], usable_memory() // 2**20)
                assert expected[job.record.as_posix()]["mem_mb"] == memory


@pytest.mark.workflow
def test_a_file_that_the_report_does_not_need_can_be_made(tmp_path, snakemake):
    """Such as pairs for a distillation that is described, but no method of the experiment."""
    assert not any("redi" in method for method in SHIPPED["demo"]["methods"])
    (tmp_path / "workflow_config.yaml").write_text(yaml.safe_dump({"experiments": {"demo": SHIPPED["demo"]}}))
    run = snakemake(tmp_path, "--dry-run", "--", "results/demo/seed0/pairs/udlm+redi.parquet")
    assert run.returncode == 0, run.stderr
    assert re.search(r"^teach +1$", run.stdout + run.stderr, re.MULTILINE)


TRANSFORMER = {"name": "transformer", "width": 16, "blocks": 1, "heads": 2}


@pytest.mark.parametrize(
    ("network", "cores", "shares"),
    [
        ({"name": "mlp"}, 4, (1, 1, 1)),
        ({"name": "mlp"}, 5, (2, 1, 1)),
        ({"name": "mlp"}, 64, (2, 2, 2)),
        (TRANSFORMER, 4, (2, 2, 1)),
        (TRANSFORMER, 64, (2, 2, 2)),
    ],
)
def test_jobs_of_a_rule_share_the_cores(network, cores, shares):
    experiment = {
        **EXPERIMENTS["demo"],
        "network": network,
        "methods": ["udlm", "pairflow", "udlm+dcd", "pairflow+dcd"],
        "evaluations": {"main": {"nfe": [1, 2], "samples": 8}},
    }
    checked = check(Experiment, experiment, "x")
    shared = divide_cores(checked, jobs(Path("results/x"), checked), cores)
    assert [shared[rule] for rule in ("train", "distill", "sample")] == [*shares]
    assert "pair" not in shared


@pytest.mark.parametrize("name", ["own", "cifar10", "tokens"])
def test_every_job_comes_after_those_that_it_waits_for(name):
    table = jobs(Path("results", name), check(Experiment, EXPERIMENTS[name], name), shards=2)
    outputs, seen = {path for job in table for path in job.outputs.values()}, set()
    assert len(outputs) == sum(len(job.outputs) for job in table)
    for job in table:
        assert outputs.intersection(job.needed) <= seen
        seen.update(job.outputs.values())
