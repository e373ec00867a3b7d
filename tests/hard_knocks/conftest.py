"""A miniature experiment made step by step; steps that can be killed without waiting for their imports."""

import contextlib
import itertools
import json
import multiprocessing
import time
from pathlib import Path

import pytest

from pairflow.cli import STEPS, main
from pairflow.config import Configuration, check

NASTY = "mini wörk $(touch pwned) 'ß' ; & \"q\""  # a folder's name that no shell may see unquoted
LIBRARY = "../lib $(touch pwned);'é' `touch pwned`.smi"  # likewise a file's
EXPERIMENT = {
    "description": "<script>alert('pwned')</script> $(touch pwned) \"; touch pwned\n../..",
    "scale": "reduced",
    "data": {"source": LIBRARY, "length": 16, "max_too_long_share": 0.5, "validation_fraction": 0.2},
    "network": {"name": "mlp", "width": 16, "blocks": 1, "time_width": 8},
    "pairing": {"steps": 3, "coverage": True},
    "training": {"batch_size": 8, "iterations": 300, "learning_rate": 0.01, "validate_every": 150},
    "distillation": {
        "redi": {"batch_size": 8, "iterations": 3, "learning_rate": 0.01, "pairs": {"count": 8, "steps": 1}}
    },
    "methods": ["pairflow"],
    "evaluations": {"main": {"nfe": [1], "samples": 4, "trials": 150}},
}
ROWS = [
    *(
        a * "C" + x + b * "C" + y
        for a in range(1, 6)
        for b in range(1, 6)
        for x in "ON"
        for y in ("", "F", "N")
    ),
    *["<script>alert('pwned')</script> x", "$(touch pwned)", "`touch pwned`", "'; touch pwned; '", "../../C"],
    *["C <script>alert('pwned')</script>", "CC ../../../etc/passwd", "CCCC $(touch pwned)"],
]
_CODE = """
import os, sys
os.chdir(folder)
os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
import pairflow.steps.pair
pairflow.steps.pair.BLOCK = block
from pairflow.cli import main
sys.argv = ["pairflow", *arguments]
main(arguments)
"""


@pytest.fixture(scope="session")
def experiment():
    return check(Configuration, {"experiments": {"mini": EXPERIMENT}}, "test").experiments["mini"]


def _files(model: str) -> dict[str, str]:
    """The options of a training that name the files of a model's folder."""
    names = {"--model": "model.safetensors", "--description": "model.json", "--log": "log.parquet"}
    return {option: f"{model}/{name}" for option, name in names.items()}


class Place:
    """A working directory with the nasty library beside it, and the commands of the miniature's chain."""

    def __init__(self, folder: Path, experiment):
        self.folder, self.root, self.experiment = folder, folder / "results" / "mini", experiment
        folder.mkdir(parents=True)
        (folder / LIBRARY).write_text("\n".join(ROWS) + "\n")

    def command(self, step: str, *more: str, changes: dict[str, str] | None = None) -> list[str]:
        """Arguments of `pairflow` that make one of the chain's files, as the rules have them."""
        root, given = "results/mini", self.experiment
        data, seed = f"{root}/data", f"{root}/seed0"
        tokens, described = f"{data}/train.parquet", f"{root}/reference/molecules.parquet"
        pairs, taught = (f"{seed}/pairs/{method}.parquet" for method in ("pairflow", "pairflow+redi"))
        model, distilled = (f"{seed}/models/{method}" for method in ("pairflow", "pairflow+redi"))
        samples, metrics = f"{seed}/samples/pairflow/main/nfe1.parquet", f"{seed}/metrics/pairflow"
        names = ("known", "rejected", "smiles", "train", "validation")
        parts = {f"--{name}": f"{data}/{name}.parquet" for name in names}
        vocabulary = {"--vocabulary": f"{data}/vocabulary.json"}
        validation, smiles = ({name: parts[name]} for name in ("--validation", "--smiles"))
        settings, files = {
            "preprocess": (given.data, {**parts, **vocabulary}),
            "pair": (given.pair_settings("pairflow", 0), {"--tokens": tokens, "--out": pairs}),
            "cover": (
                given.cover_settings(0),
                {"--tokens": tokens, "--out": f"{seed}/metrics/forward/coverage.parquet"},
            ),
            "diagnose": (
                None,
                {"--method": "pairflow", "--pairs": pairs, "--out": f"{metrics}/coupling.parquet"},
            ),
            "train": (
                given.train_settings("pairflow", 0),
                {"--data": pairs, "--known": parts["--known"], **validation, **vocabulary, **_files(model)},
            ),
            "teach": (given.teach_settings("pairflow+redi", 0), {"--model": model, "--out": taught}),
            "distill": (
                given.distill_settings("pairflow+redi", 0),
                {"--parent": model, "--data": taught, **validation, **_files(distilled)},
            ),
            "sample": (given.sample_settings("main", 1, 0), {"--model": model, "--out": samples}),
            "describe_molecules": (None, {**smiles, "--out": described}),
            "evaluate": (
                None,
                {
                    **{"--samples": samples, "--molecules": described, **vocabulary, **smiles},
                    "--out": f"{metrics}/main/nfe1.parquet",
                    "--properties": f"{seed}/properties/pairflow/main/nfe1.parquet",
                },
            ),
            "report": (
                given,
                {
                    "--root": root,
                    **{f"--{name}": f"{root}/{name}.parquet" for name in ("metrics", "timings")},
                    **{"--out": f"{root}/report.html", "--figures": f"{root}/figures"},
                },
            ),
        }[step]
        values = {"--settings": json.dumps(settings.model_dump(mode="json"))} if settings else {}
        options = values | files | (changes or {})
        quiet = [] if step in ("report", "diagnose") else ["--quiet"]
        return [step, *(item for pair in options.items() for item in pair), *quiet, *more]

    def run(self, *arguments: str) -> int:
        """Run `pairflow` in this process and in this place; its exit code."""
        with contextlib.chdir(self.folder), pytest.raises(SystemExit) as end:
            main(arguments)
        return end.value.code

    def outputs(self, step: str) -> list[Path]:
        """What a step writes, its record of costs aside."""
        command = self.command(step)
        flags = {"--out", "--properties", "--model", "--description", "--log", "--metrics", "--timings"}
        if step == "preprocess":
            flags = {"--train", "--validation", "--vocabulary", "--smiles", "--known", "--rejected"}
        elif step in ("sample", "teach"):
            flags = {"--out"}
        return [self.folder / value for flag, value in itertools.pairwise(command) if flag in flags]

    def start(self, step: str, *more: str):
        """The step as a process of its own, forked from one that has imported everything."""
        given = {
            "folder": str(self.folder),
            "errors": str(self.folder / "errors.txt"),
            "arguments": self.command(step, *more),
            "block": 1,
        }
        process = _forks().Process(target=exec, args=(_CODE, given))
        process.start()
        return process

    def finish(self, step: str, *more: str) -> float:
        """Run a step to its end; the seconds that it took."""
        started = time.monotonic()
        process = self.start(step, *more)
        process.join()
        assert process.exitcode == 0, self.errors()
        return time.monotonic() - started

    def errors(self) -> str:
        return (self.folder / "errors.txt").read_text()


def _forks():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([f"pairflow.steps.{step}" for step in STEPS] + _HEAVY)
    return context


_HEAVY = [
    "torch",
    "pairflow.pairing.cpu.engine",
    "pairflow.training.loop",
    "pairflow.training.demand",
    "pairflow.report.experiment.page",
    "pairflow.metrics.chemistry",
    "rdkit.Chem",
]
MAKE = ("preprocess", "pair", "cover", "diagnose", "train", "sample", "describe_molecules", "evaluate")


@pytest.fixture(scope="session")
def place(tmp_path_factory, experiment):
    """Make a working directory."""

    def make(name: str, experiment=experiment) -> Place:
        return Place(tmp_path_factory.mktemp(name) / NASTY, experiment)

    return make


@pytest.fixture(scope="session")
def chain():
    """The steps before the report, in their order."""
    return MAKE


@pytest.fixture(scope="session")
def calm(place):
    """The miniature, undisturbed, one step after the other."""
    made = place("calm")
    made.seconds = {step: made.finish(step) for step in (*MAKE, "report")}
    return made
