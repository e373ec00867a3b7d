"""Token rows in the working directory, a model trained on them for a moment, its pairs, a distillation."""

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pairflow.cli import module_of
from pairflow.config import Experiment
from pairflow.plan.jobs import jobs

NETWORK = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16}
RUN = {"batch_size": 8, "iterations": 4, "learning_rate": 1e-2, "validate_every": 2}
SHARED = {"threads": 1, "quiet": True}


@pytest.fixture
def token_rows(token_file, tmp_path, monkeypatch):
    """The working directory: train.parquet and validation.parquet, of 8 tokens of 6 symbols."""
    rng = np.random.default_rng(0)
    token_file("train.parquet", rng.integers(0, 6, (60, 8)), 6)
    token_file("validation.parquet", rng.integers(0, 6, (20, 8)), 6)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def train(step, model_files):
    """Train a method in the working directory, into the folder of its name."""

    def run(method, data="train.parquet", network=NETWORK, validation="validation.parquet", **training):
        settings = {"method": method, "network": network, "training": RUN | training}
        files = {"data": data, "validation": validation, **model_files(method)}
        return step("train", settings=settings, **files, **SHARED)

    return run


@pytest.fixture
def udlm(token_rows, train):
    """The working directory with a trained model in the folder udlm."""
    assert train("udlm").exit_code == 0
    return token_rows


@pytest.fixture
def teach(step):
    """Draw the pairs of a ReDi method."""

    def run(method="udlm+redi", out="pairs.parquet", model=None, **settings):
        settings = {"method": method, "count": 30, "steps": 3, **settings}
        return step("teach", settings=settings, model=model or method.rpartition("+")[0], out=out, quiet=True)

    return run


@pytest.fixture
def distill(step, model_files):
    """Distil by a method, into the folder `name` or that of the method's name."""

    def run(method, how, data, parent=None, name=None):
        settings = {"method": method, "distillation": RUN | how}
        files = {"parent": parent or method.rpartition("+")[0], "data": data, **model_files(name or method)}
        files |= {"validation": "validation.parquet", "cache": "cache"}
        return step("distill", settings=settings, **files, **SHARED)

    return run


@pytest.fixture
def interrupt():
    """Start a step as a process, and press Ctrl-C a second after it wrote a text: exit code and stderr."""

    def run(text, step, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", module_of(step), *map(str, arguments)],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.SIG_DFL
            ),  # a background job would ignore it
        )
        seen = ""
        while text not in seen:
            seen += process.stderr.read(1)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=10)[1]
        return process.returncode, error

    return run


TOLD = {"evaluate": ["evaluation"], "diagnose": ["method"]}  # what a rule tells its step from its wildcards
BY_KIND = ("preprocess", "evaluate", "floor")  # steps that take a kind of data


@pytest.fixture(scope="session")
def call_of():
    """The name, files and options of the step that does a job of the plan of an experiment in `root`."""

    def call(root: Path, job, modality: str) -> tuple[str, list[object], dict[str, object]]:
        inputs = {name: path for name, path in job.inputs.items() if isinstance(path, Path)}
        outputs = {name: path for name, path in job.outputs.items() if name not in ("vocabulary", "known")}
        options = {
            name: getattr(job, name) for name in ("evaluation", "method") if name in TOLD.get(job.rule, ())
        }
        if job.settings:
            options["settings"] = job.settings.model_dump(mode="json")
        match job.rule:
            case "preprocess":
                inputs = {name: inputs[name] for name in ("parent_vocabulary",) if name in inputs}
                outputs = job.outputs
            case "train" if "parent" in inputs:
                inputs["from"] = inputs.pop("parent").parent
                del inputs["parent_description"]
            case "floor":
                options["evaluation"] = job.outputs["metrics"].stem.partition("-")[2]
            case "sample" | "teach":
                inputs = {"model": inputs["model"].parent}
            case "correlate":
                inputs = {"model": inputs["model"].parent, "tokens": inputs["tokens"]}
            case "distill":
                inputs = {"parent": inputs["parent"].parent, "cache": Path("cache")} | {
                    name: inputs[name] for name in ("data", "validation")
                }
            case "report":
                inputs = {"root": root}
            case "gather":
                return "gather", job.inputs["shards"], {"out": job.outputs["pairs"]}
        names = ("reference", "pairs", "samples", "page", "weights", "molecules")
        named = dict.fromkeys((*names, *(["metrics"] if "timings" not in outputs else [])), "out")
        outputs = {named.get(name, name): path for name, path in outputs.items()}
        return job.rule, [modality] if job.rule in BY_KIND else [], inputs | outputs | options

    return call


@pytest.fixture(scope="session")
def start_job(step, call_of):
    """Run a job of the plan of an experiment in `root` as its rule does; the finished step."""

    def run(root: Path, job, modality: str):
        name, files, options = call_of(root, job, modality)
        return step(name, *files, **options)

    return run


@pytest.fixture(scope="session")
def require_own_words():
    """The page of an experiment on plain rows has no word that belongs to molecules or images."""

    def require(page: str) -> None:
        text = re.sub(r"<script.*?</script>", "", page.partition("<body>")[2], flags=re.DOTALL)
        for word in ("olecule", "SMILES", "RDKit", "pixel", "image"):
            assert word not in text

    return require


@pytest.fixture(scope="session")
def finish(made_once, run_job):
    """A folder with the results of all jobs of an experiment in `root`, in the order of the plan. `prepare`
    writes the user's own files into it first."""

    def run(name: str, root: Path, experiment: Experiment, prepare: Callable[[], None] | None = None) -> Path:
        def make(folder: Path) -> None:
            folder.mkdir()
            with contextlib.chdir(folder):
                if prepare:
                    prepare()
                for job in jobs(root, experiment):
                    run_job(root, job, experiment.data.kind)

        return made_once(name, make)

    return run


@pytest.fixture(scope="session")
def run_job(start_job):
    """Run a job of the plan of an experiment in `root`, to its end."""

    def run(root: Path, job, modality: str) -> None:
        done = start_job(root, job, modality)
        assert done.exit_code == 0, done.output

    return run
