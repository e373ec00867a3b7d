"""A miniature experiment made step by step; steps that can be killed without waiting for their imports."""

import contextlib
import json
import time
from pathlib import Path

import pytest

from pairflow.cli import main
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


@pytest.fixture(scope="session")
def experiment():
    return check(Configuration, {"experiments": {"mini": EXPERIMENT}}, "test").experiments["mini"]


def _chain(experiment, model_files) -> dict[str, tuple[list[str], dict[str, str]]]:
    """The steps of the chain as the rules have them: the arguments, and the options of what is written."""
    root = "results/mini"
    data, seed = f"{root}/data", f"{root}/seed0"
    described, method = f"{root}/reference/molecules.parquet", "pairflow+redi"
    pairs, taught = (f"{seed}/pairs/{name}.parquet" for name in ("pairflow", method))
    model, distilled = (f"{seed}/models/{name}" for name in ("pairflow", method))
    samples, metrics = f"{seed}/samples/pairflow/main/nfe1.parquet", f"{seed}/metrics/pairflow"
    names = ("known", "rejected", "smiles", "train", "validation")
    parts = {name: f"{data}/{name}.parquet" for name in names}
    known, smiles, tokens, validation = (parts[name] for name in ("known", "smiles", "train", "validation"))
    vocabulary = f"{data}/vocabulary.json"

    def given(settings=None, **files: str) -> list[str]:
        values = {"settings": json.dumps(settings.model_dump(mode="json"))} if settings else {}
        return [f"--{name}={value}" for name, value in (values | files).items()]

    train = given(experiment.train_settings("pairflow", 0), data=pairs, known=known, validation=validation)
    distil = given(experiment.distill_settings(method, 0), parent=model, data=taught, validation=validation)
    evaluate = given(samples=samples, molecules=described, vocabulary=vocabulary, smiles=smiles)
    properties = f"{seed}/properties/pairflow/main/nfe1.parquet"
    tables = {name: f"{root}/{name}.parquet" for name in ("metrics", "timings")}
    return {
        "preprocess": (["molecules", *given(experiment.data)], {**parts, "vocabulary": vocabulary}),
        "pair": (given(experiment.pair_settings("pairflow", 0), tokens=tokens), {"out": pairs}),
        "cover": (
            given(experiment.cover_settings(0), tokens=tokens),
            {"out": f"{seed}/metrics/forward/coverage.parquet"},
        ),
        "diagnose": (given(method="pairflow", pairs=pairs), {"out": f"{metrics}/coupling.parquet"}),
        "train": ([*train, f"--vocabulary={vocabulary}"], model_files(model)),
        "teach": (given(experiment.teach_settings(method, 0), model=model), {"out": taught}),
        "distill": (distil, model_files(distilled)),
        "sample": (given(experiment.sample_settings("main", 1, 0), model=model), {"out": samples}),
        "describe_molecules": (given(smiles=smiles), {"out": described}),
        "evaluate": (
            ["molecules", *evaluate],
            {"out": f"{metrics}/main/nfe1.parquet", "properties": properties},
        ),
        "report": (
            given(experiment, root=root, figures=f"{root}/figures"),
            {**tables, "out": f"{root}/report.html"},
        ),
    }


class Place:
    """A working directory with the nasty library beside it, and the commands of the miniature's chain."""

    def __init__(self, folder: Path, experiment, model_files, fork):
        self.folder, self.root, self.experiment = folder, folder / "results" / "mini", experiment
        self.steps, self.fork = _chain(experiment, model_files), fork
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LIBRARY).write_text("\n".join(ROWS) + "\n")

    def command(self, name: str, *more: str, **changes: object) -> list[str]:
        """Arguments of `pairflow` for one of the steps, some of its options changed."""
        given, written = self.steps[name]
        options = [f"--{option}={value}" for option, value in {**written, **changes}.items()]
        quiet = [] if name in LOUD else ["--quiet"]
        return [name.split()[0], *given, *options, *quiet, *more]

    def run(self, *arguments: str) -> int:
        """Run `pairflow` in this process and in this place; its exit code."""
        with contextlib.chdir(self.folder), pytest.raises(SystemExit) as end:
            main(arguments)
        return end.value.code

    def outputs(self, name: str) -> list[Path]:
        """What a step writes, its record of costs aside."""
        return [self.folder / path for path in self.steps[name][1].values()]

    def start(self, step: str, *more: str):
        """The step as a process of its own, with a block for each row of a pairing."""
        return self.fork(self.command(step, *more), self.folder, self.folder / "errors.txt", block=1)

    def finish(self, step: str, *more: str) -> float:
        """Run a step to its end; the seconds that it took."""
        started = time.monotonic()
        process = self.start(step, *more)
        process.join()
        assert process.exitcode == 0, self.errors()
        return time.monotonic() - started

    def errors(self) -> str:
        return (self.folder / "errors.txt").read_text()


MAKE = ("preprocess", "pair", "cover", "diagnose", "train", "sample", "describe_molecules", "evaluate")
LOUD = ("diagnose", "report", "gather", "compare", "import", "adopt")  # without an option --quiet


@pytest.fixture(scope="session")
def place(tmp_path_factory, experiment, model_files, fork):
    """Make a working directory."""

    def make(name: str, experiment=experiment) -> Place:
        return Place(tmp_path_factory.mktemp(name) / NASTY, experiment, model_files, fork)

    return make


@pytest.fixture(scope="session")
def chain():
    """The steps before the report, in their order."""
    return MAKE


@pytest.fixture(scope="session")
def calm(made_once, experiment, model_files, fork):
    """The miniature, undisturbed, one step after the other."""

    def make(folder: Path) -> None:
        made = Place(folder / NASTY, experiment, model_files, fork)
        seconds = {step: made.finish(step) for step in (*MAKE, "report")}
        (folder / "seconds.json").write_text(json.dumps(seconds))

    folder = made_once("calm", make)
    made = Place(folder / NASTY, experiment, model_files, fork)
    made.seconds = json.loads((folder / "seconds.json").read_text())
    return made
