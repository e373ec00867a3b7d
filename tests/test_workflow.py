"""Snakemake runs the workflow on a miniature experiment: once, again, and after each kind of change."""

import copy
import os
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image

pytestmark = pytest.mark.workflow

DISTILLED = {"batch_size": 32, "learning_rate": 1.0e-4}
MINI = {
    "description": "a few molecules through every step",
    "scale": "reduced",
    "data": {"source": "small_molecules", "length": 16, "max_heavy_atoms": 5},
    "network": {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16},
    "pairing": {"steps": 5, "coverage": True},
    "training": {"batch_size": 32, "iterations": 20, "learning_rate": 1.0e-3, "validate_every": 10},
    "distillation": {
        "dcd": {**DISTILLED, "iterations": 6, "teacher_every": 3},
        "redi": {**DISTILLED, "iterations": 5, "pairs": {"count": 40, "steps": 2}},
    },
    "methods": ["udlm", "pairflow", "pairflow+dcd", "udlm+redi"],
    "evaluations": {"main": {"nfe": [1], "samples": 16, "trials": 2}},
}
REPORT, SEED = "results/mini/report.html", "results/mini/seed0"
WILDCARDS = ("coupling", "base", "parent", "distillation", "method", "nfe")


class Workflow:
    """A folder with a configuration, and Snakemake run in it."""

    def __init__(self, folder: Path, snakemake):
        self.folder, self.config, self.snakemake = folder, folder / "workflow_config.yaml", snakemake

    def configure(self, changes: dict | None = None, comment: str = "") -> None:
        experiment = copy.deepcopy(MINI)
        for path, value in (changes or {}).items():
            *keys, last = path.split(".")
            place = experiment
            for key in keys:
                place = place[key]
            place[last] = value
        text = comment + yaml.safe_dump({"experiments": {"mini": experiment}}, sort_keys=not comment)
        self.config.write_text(text)

    def run(self, *arguments: str, code: int = 0) -> str:
        """What Snakemake prints; it has to end with this exit code."""
        run = self.snakemake(self.folder, *arguments)
        assert run.returncode == code, run.stderr + run.stdout
        return run.stderr + run.stdout

    def planned(self, *arguments: str) -> list[str]:
        """The jobs of a dry run, sorted: the rule and the wildcards that tell its jobs apart."""
        jobs = []
        for block in re.split(r"\nrule ", self.run("--dry-run", *arguments, "--", REPORT))[1:]:
            wildcards = dict(re.findall(r"(\w+)=([^,\s]+)", re.search(r"wildcards: (.*)", block)[1]))
            names = [wildcards[key] for key in WILDCARDS if key in wildcards]
            jobs.append(" ".join([block.split(":")[0], *names]))
        return sorted(jobs)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, made_once, snakemake):
    """The miniature experiment, run once from raw data to report, in a folder of this process's own."""

    def make(folder: Path) -> None:
        folder.mkdir()
        workflow = Workflow(folder, snakemake)
        workflow.configure()
        workflow.run(REPORT)

    folder = tmp_path_factory.mktemp("mini workflow") / "copy"  # a path with a space
    shutil.copytree(made_once("mini workflow", make), folder)
    return Workflow(folder, snakemake)


@pytest.fixture
def fresh(tmp_path, snakemake):
    """A folder in which nothing has run."""
    workflow = Workflow(tmp_path, snakemake)
    workflow.configure()
    return workflow


@pytest.fixture
def workflow(finished):
    """The finished miniature, its configuration restored afterwards."""
    yield finished
    finished.configure()


REDI = ["teach udlm redi", "distill udlm redi", "diagnose udlm+redi"]


def test_every_artifact_is_there_with_its_columns(finished):
    root = finished.folder / "results" / "mini"
    metrics = pd.read_parquet(root / "metrics.parquet")
    names = "method nfe trial metric value seed evaluation samples reference extractor"
    assert list(metrics.columns) == names.split()
    sampled = metrics[metrics["evaluation"] == "main"]
    assert set(sampled["method"]) == {*MINI["methods"]}
    coupling = metrics[metrics["evaluation"] == "coupling"]
    assert set(coupling["method"]) == {"pairflow", "udlm+redi"}
    assert (metrics["evaluation"] == "coverage").any()
    for method in MINI["methods"]:
        beside = {path.name for path in (root / "seed0/models" / method).iterdir()}
        assert {"vocabulary.json", "known.parquet"} <= beside
    samples = pd.read_parquet(root / "seed0/samples/udlm/main/nfe1.parquet")
    assert list(samples.columns) == ["tokens", "trial", "sample"]
    assert len(samples) == 2 * 16
    assert pd.read_parquet(root / "timings.parquet")["seconds"].notna().all()
    assert f"snakemake --cores all -- {REPORT}" in (root / "report.html").read_text()
    assert not list(root.rglob("*.partial"))
    figures = [path.name for path in (root / "figures").glob("[!.]*.*")]
    assert {"main-valid.svg", "main-valid.pdf", "coupling-distances.pdf", "training-loss.svg"} <= set(figures)


def test_snakemakes_own_report_shows_page_table_and_figures_with_captions(workflow):
    """Without a network: what its page needs comes with Snakemake."""
    assert "downloading" not in workflow.run("--report", "report.zip", "--", REPORT)
    with zipfile.ZipFile(workflow.folder / "report.zip") as report:
        names = {Path(name).name for name in report.namelist()}
        text = report.read("report/report.html").decode()
    assert {"metrics.parquet", "main-valid.svg", "training-loss.svg"} <= names
    assert re.search(r'"labels": {"kind": "figure", "shows": "main-valid"}', text)


def test_a_second_run_does_nothing(workflow):
    assert "Nothing to be done" in workflow.run(REPORT)
    workflow.configure(comment="# a comment, and another order of the keys\n")
    assert workflow.planned() == []


TRAINING = [*(f"train {base}" for base in ("udlm", "pairflow")), "distill pairflow dcd", *REDI]
PAIRING = ["pair pairflow", "train pairflow", "diagnose pairflow", "cover", "distill pairflow dcd"]
ROUND = ["teach udlm+redi redi", "distill udlm+redi redi", "diagnose udlm+redi+redi"]


@pytest.mark.parametrize(
    ("key", "value", "made", "methods", "nfe"),
    [
        ("network.width", 24, TRAINING, MINI["methods"], 1),
        ("pairing.steps", 6, PAIRING, ["pairflow", "pairflow+dcd"], 1),
        ("distillation.dcd.learning_rate", 2.0e-4, ["distill pairflow dcd"], ["pairflow+dcd"], 1),
        ("distillation.redi.pairs.count", 50, REDI, ["udlm+redi"], 1),
        ("methods", [*MINI["methods"], "udlm+redi+redi"], ROUND, ["udlm+redi+redi"], 1),
        ("evaluations.main.nfe", [1, 4], [], MINI["methods"], 4),
    ],
)
def test_a_change_reruns_only_what_depends_on_it(workflow, key, value, made, methods, nfe):
    workflow.configure({key: value})
    downstream = [f"{rule} {name} {nfe}" for rule in ("evaluate_molecules", "sample") for name in methods]
    assert workflow.planned() == sorted([*made, *downstream, "report"])


def test_the_number_of_shards_is_the_machines_and_changes_no_byte(workflow, fresh):
    assert workflow.planned("--config", "pair_shards=3") == []
    pairs = "results/mini/seed0/pairs/pairflow.parquet"
    assert len(re.findall("rule pair_shard:", fresh.run(pairs, "--config", "pair_shards=3"))) == 3
    assert (fresh.folder / pairs).read_bytes() == (workflow.folder / pairs).read_bytes()
    assert not list((fresh.folder / "results").rglob("*-of-3.parquet*"))


def test_how_many_gpus_train_a_model_is_the_machines_and_reruns_nothing(workflow):
    machine = ("--set-resources", "train:gpu=2", "train:micro_batch=8", "--resources", "gpu=2")
    assert workflow.planned(*machine) == []
    plan = workflow.run("--dry-run", "--printshellcmds", "--forcerun", "train", *machine, "--", REPORT)
    assert re.search(r"python -m pairflow\.runtime\.launch 2 pairflow\.steps\.train .* --micro-batch 8", plan)


def test_images_go_the_same_way_with_measures_of_their_own(fresh):
    """The embedded digits, from pixels to the page: FD on a classifier that comes with pairflow."""
    images = {
        "data": {"source": "digits", "training_rows": 200},
        "network": {"name": "unet", "channels": 8, "multipliers": [1, 2], "blocks": 1},
        "pairing.coverage": False,
        "features": "classifier",
        "correlation": {"sources": 20, "samples": 4, "steps": 2, "methods": ["pairflow", "pairflow+dcd"]},
        "methods": ["mdlm", "pairflow", "pairflow+dcd"],
        "evaluations.main.nfe": [2],
    }
    fresh.configure(images)
    fresh.run(REPORT)
    root = fresh.folder / "results/mini"
    metrics = pd.read_parquet(root / "metrics.parquet")
    found = metrics[(metrics["metric"] == "fd") & (metrics["method"] == "pairflow")]
    assert set(zip(found["nfe"], found["reference"], strict=True)) == {(2, "train"), (2, "test")}
    assert found["extractor"].str.fullmatch(r"classifier-[0-9a-f]{8}").all()
    assert (metrics["method"] == "data").any()  # real images against real images
    correlated = metrics[metrics["metric"] == "total_correlation"].set_index("method")["value"]
    assert list(correlated.index) == ["pairflow", "pairflow+dcd"]
    assert not (root / "seed0/models/pairflow+dcd/known.parquet").exists()
    assert "data:image/png;base64," in (root / "report.html").read_text()
    assert fresh.planned() == []


@pytest.mark.parametrize(
    ("changes", "target", "error"),
    [
        ({}, "results/minni/report.html", "unknown experiment 'minni' (did you mean 'mini'?)"),
        (
            {"distillation": {}, "methods": ["udlm"]},
            f"{SEED}/models/udlm+dcd/model.json",
            "'udlm+dcd' needs the settings distillation.dcd",
        ),
    ],
)
def test_a_mistake_stops_before_any_rule(fresh, changes, target, error):
    fresh.configure(changes)
    assert error in fresh.run(target, code=1)
    assert not (fresh.folder / "results").exists()


def test_a_broken_file_of_experiments_stops_only_its_own(fresh):
    folder = fresh.folder / "experiments"
    folder.mkdir()
    (folder / "broken.yaml").write_text("a: !!int x")
    os.mkfifo(folder / "pipe.yaml")
    said = fresh.run("--dry-run", "--", REPORT)
    for mistake in ("broken.yaml: not YAML: a tag (!)", "pipe.yaml: is a folder, a pipe or a device,"):
        assert said.count(f"pairflow: note: left out experiments/{mistake}") == 1
    error = "experiments/broken.yaml: not YAML: a tag (!), which no setting needs (line 1)"
    assert error in fresh.run("--", "results/broken/report.html", code=1)
    assert not (fresh.folder / "results").exists()


def test_a_changed_picture_is_preprocessed_again(fresh):
    for number in range(20):
        fresh.folder.joinpath("faces").mkdir(exist_ok=True)
        Image.fromarray(np.full((4, 4), number, np.uint8)).save(fresh.folder / f"faces/{number}.png")
    data = {"source": "image_folder", "folder": "faces"}
    fresh.configure({"data": data, "features": {"extractor": "inception"}, "network.name": "mlp"})
    train = "results/mini/data/train.parquet"
    fresh.run(train)
    assert "rule preprocess_images:" not in fresh.run("--dry-run", train)
    Image.fromarray(np.full((4, 4), 200, np.uint8)).save(fresh.folder / "faces/7.png")
    assert "rule preprocess_images:" in fresh.run("--dry-run", train)
