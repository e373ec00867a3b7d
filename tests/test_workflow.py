"""Snakemake runs the workflow on a miniature experiment: once, again, and after each kind of change."""

import copy
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import yaml

REPOSITORY = Path(__file__).parent.parent
pytestmark = pytest.mark.workflow

MINI = {
    "description": "a few molecules through every step",
    "scale": "reduced",
    "data": {"source": "small_molecules", "length": 16, "max_heavy_atoms": 5},
    "network": {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16},
    "pairing": {"steps": 5, "coverage": True},
    "training": {"batch_size": 32, "iterations": 20, "learning_rate": 1.0e-3, "validate_every": 10},
    "distillation": {
        "dcd": {"batch_size": 32, "iterations": 6, "learning_rate": 1.0e-4, "teacher_every": 3},
        "redi": {
            "batch_size": 32,
            "iterations": 5,
            "learning_rate": 1.0e-4,
            "pairs": {"count": 40, "steps": 2},
        },
    },
    "methods": ["mdlm", "udlm", "pairflow", "pairflow+dcd", "udlm+redi+redi"],
    "evaluations": {"main": {"nfe": [1, 2], "samples": 16, "trials": 2}},
}


WILDCARDS = ("coupling", "base", "parent", "distillation", "method", "nfe")


class Workflow:
    """A folder with a configuration, and Snakemake run in it."""

    def __init__(self, folder: Path):
        self.folder, self.config = folder, folder / "workflow_config.yaml"

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

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "snakemake", "--snakefile", REPOSITORY / "Snakefile", "--cores", "2"]
        return subprocess.run(
            [*map(str, command), *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PAIRFLOW_DATA_DIR": ""},
        )

    def planned(self, *arguments: str) -> list[str]:
        """The jobs of a dry run, sorted: the rule and the wildcards that tell its jobs apart."""
        run = self.run("--dry-run", *arguments, "--", "results/mini/report.html")
        assert run.returncode == 0, run.stderr
        blocks = re.split(r"\nrule ", run.stderr + run.stdout)[1:]
        jobs = []
        for block in blocks:
            wildcards = dict(re.findall(r"(\w+)=([^,\s]+)", re.search(r"wildcards: (.*)", block)[1]))
            names = [wildcards[key] for key in WILDCARDS if key in wildcards]
            jobs.append(" ".join([block.split(":")[0], *names]))
        return sorted(jobs)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The miniature experiment, run once from raw data to report."""
    workflow = Workflow(tmp_path_factory.mktemp("mini workflow"))  # a path with a space
    workflow.configure()
    run = workflow.run("results/mini/report.html")
    assert run.returncode == 0, run.stderr + run.stdout
    return workflow


@pytest.fixture
def workflow(finished):
    """The finished miniature, its configuration restored afterwards."""
    yield finished
    finished.configure()


def downstream(methods, nfes=(1, 2)):
    return [f"{rule} {method} {nfe}" for rule in ("evaluate", "sample") for method in methods for nfe in nfes]


REDI = [
    *("teach udlm", "distill udlm redi", "diagnose udlm+redi"),
    *("teach udlm+redi", "distill udlm+redi redi", "diagnose udlm+redi+redi"),
]


def test_every_artifact_is_there_with_its_columns(finished):
    root = finished.folder / "results" / "mini"
    metrics = pd.read_parquet(root / "metrics.parquet")
    assert list(metrics.columns) == [
        "method",
        "nfe",
        "trial",
        "metric",
        "value",
        "seed",
        "evaluation",
        "samples",
        "reference",
        "extractor",
    ]
    sampled = metrics[metrics["evaluation"] == "main"]
    counts = sampled[sampled["metric"].isin(["valid", "unique", "novel", "unique_strict", "novel_strict"])]
    assert len(counts) == 5 * 2 * 2 * 5  # methods x NFE x trials x metrics
    assert counts["value"].between(0, 16).all()
    assert (sampled["metric"] == "qed_wasserstein").sum() == 5 * 2 * 2
    histograms = pd.read_parquet(root / "seed0/properties/udlm/main/nfe1.parquet")
    assert list(histograms.columns) == ["property", "low", "high", "samples", "training"]
    coupling = metrics[metrics["evaluation"] == "coupling"]
    assert set(coupling["method"]) == {"pairflow", "udlm+redi", "udlm+redi+redi"}
    coupling = coupling[coupling["method"] == "pairflow"].set_index("metric")["value"]
    assert coupling.filter(like="jumps_").between(0, 16).sum() == 5
    assert coupling.filter(like="hamming_share").sum() == pytest.approx(1)
    assert 0 < coupling["hamming_mean"] < coupling["hamming_independent"]
    coverage = metrics[metrics["evaluation"] == "coverage"].set_index("metric")["value"]
    assert 0.3 < coverage["coverage"] < 0.8
    log = pd.read_parquet(root / "seed0/models/udlm/log.parquet")
    assert list(log.columns) == ["iteration", "loss", "learning_rate", "seconds", "validation_nll"]
    assert log["iteration"].iloc[-1] == 20
    assert log["validation_nll"].notna().sum() == 2
    for method in MINI["methods"]:
        beside = {path.name for path in (root / "seed0/models" / method).iterdir()}
        assert {"vocabulary.json", "known.parquet"} <= beside
    samples = pd.read_parquet(root / "seed0/samples/udlm/main/nfe1.parquet")
    assert list(samples.columns) == ["tokens", "trial", "sample"]
    assert len(samples) == 2 * 16
    pairs = pd.read_parquet(root / "seed0/pairs/pairflow.parquet")
    assert list(pairs.columns) == ["x0", "x1"]
    timings = pd.read_parquet(root / "timings.parquet")
    assert {"step", "method", "seconds", "peak_memory_mb", "device"} <= set(timings.columns)
    assert timings["seconds"].notna().all()
    page = (root / "report.html").read_text()
    assert "mini" in page
    assert "pairflow" in page
    assert "snakemake --cores all -- results/mini/report.html" in page
    assert not list(root.rglob("*.partial"))


def test_figures_lie_beside_the_page(finished):
    folder = finished.folder / "results" / "mini" / "figures"
    assert {"main-valid.svg", "main-valid.pdf", "coupling-distances.pdf", "training-loss.svg"} <= {
        path.name for path in folder.iterdir()
    }
    kinds = [path.suffix for path in folder.glob("*.*") if not path.name.startswith(".")]
    assert kinds.count(".svg") == kinds.count(".pdf") == len(kinds) / 2


def test_snakemakes_own_report_shows_page_table_and_figures_with_captions(workflow):
    """Without a network: what its page needs comes with Snakemake."""
    run = workflow.run("--report", "report.zip", "--", "results/mini/report.html")
    assert run.returncode == 0, run.stderr + run.stdout
    assert "downloading" not in run.stderr + run.stdout
    with zipfile.ZipFile(workflow.folder / "report.zip") as report:
        names = {Path(name).name for name in report.namelist()}
        text = report.read("report/report.html").decode()
    assert {"metrics.parquet", "main-valid.svg", "training-loss.svg"} <= names
    assert "of the experiment" in text
    assert f"mini</tt>: {MINI['description']}" in text
    assert re.search(r'"labels": {"kind": "figure", "shows": "main-valid"}', text)


def test_a_second_run_does_nothing(workflow):
    run = workflow.run("results/mini/report.html")
    assert run.returncode == 0
    assert "Nothing to be done" in run.stderr + run.stdout
    assert workflow.planned() == []


def test_comments_and_order_of_the_configuration_rerun_nothing(workflow):
    workflow.configure(comment="# a cosmetic change\n")
    assert workflow.planned() == []


def test_a_network_width_reruns_training_and_what_follows(workflow):
    workflow.configure({"network.width": 24})
    assert workflow.planned() == sorted(
        [
            *downstream(MINI["methods"]),
            *(f"train {base}" for base in ("mdlm", "udlm", "pairflow")),
            "distill pairflow dcd",
            *REDI,
            "report",
        ]
    )


def test_a_pairing_step_count_reruns_only_its_own_method(workflow):
    workflow.configure({"pairing.steps": 6})
    expected = ["pair pairflow", "train pairflow", "diagnose pairflow", "cover", "distill pairflow dcd"]
    assert workflow.planned() == sorted([*expected, *downstream(["pairflow", "pairflow+dcd"]), "report"])


def test_a_distillation_setting_reruns_neither_pairing_nor_base_training(workflow):
    workflow.configure({"distillation.dcd.learning_rate": 2.0e-4})
    assert workflow.planned() == sorted(["distill pairflow dcd", *downstream(["pairflow+dcd"]), "report"])
    workflow.configure({"distillation.redi.pairs.count": 50})
    assert workflow.planned() == sorted([*REDI, *downstream(["udlm+redi+redi"]), "report"])


def test_a_round_more_reruns_nothing_of_those_before(workflow):
    workflow.configure({"methods": [*MINI["methods"], "udlm+redi+redi+redi"]})
    new = ["teach udlm+redi+redi", "distill udlm+redi+redi redi", "diagnose udlm+redi+redi+redi"]
    assert workflow.planned() == sorted([*new, *downstream(["udlm+redi+redi+redi"]), "report"])


def test_an_nfe_list_reruns_only_the_new_number(workflow):
    workflow.configure({"evaluations.main.nfe": [1, 4]})
    assert workflow.planned() == sorted([*downstream(MINI["methods"], nfes=[4]), "report"])


def test_the_number_of_shards_is_the_machines_and_changes_no_byte(workflow, tmp_path):
    assert workflow.planned("--config", "pair_shards=3") == []
    other = Workflow(tmp_path)
    other.configure()
    pairs = "results/mini/seed0/pairs/pairflow.parquet"
    run = other.run(pairs, "--config", "pair_shards=3")
    assert run.returncode == 0, run.stderr + run.stdout
    assert len(re.findall("rule pair_shard:", run.stderr + run.stdout)) == 3
    assert (tmp_path / pairs).read_bytes() == (workflow.folder / pairs).read_bytes()
    assert not list((tmp_path / "results").rglob("*-of-3.parquet*"))


def test_how_many_gpus_train_a_model_is_the_machines_and_reruns_nothing(workflow):
    machine = ("--set-resources", "train:gpu=2", "train:micro_batch=8", "--resources", "gpu=2")
    assert workflow.planned(*machine) == []
    run = workflow.run(
        "--dry-run", "--printshellcmds", "--forcerun", "train", *machine, "--", "results/mini/report.html"
    )
    started = "python -m pairflow.runtime.launch 2 pairflow.steps.train "
    assert re.search(re.escape(started) + ".* --micro-batch 8 ", run.stdout + run.stderr)


def test_results_of_another_configuration_are_refused(workflow, pairflow_command):
    """Only the report step, given a configuration that its folder was not made with."""
    experiment = copy.deepcopy(MINI)
    experiment["evaluations"]["main"]["samples"] = 17
    root = workflow.folder / "results" / "mini"
    names = {
        "metrics": "metrics.parquet",
        "timings": "timings.parquet",
        "figures": "figures",
        "out": "page.html",
    }
    outputs = [workflow.folder / name for name in names.values()]
    flags = [item for name, output in zip(names, outputs, strict=True) for item in (f"--{name}", output)]
    run = pairflow_command("report", "--settings", json.dumps(experiment), "--root", root, *flags)
    assert run.returncode == 2
    assert re.search(
        r"nfe1\.parquet: from another configuration, samples is 16 there and 17 in the configuration",
        run.stderr,
    )
    assert "Traceback" not in run.stderr
    assert not any(path.exists() for path in outputs)


def test_a_failing_step_leaves_no_output_and_says_why(tmp_path):
    workflow = Workflow(tmp_path)
    workflow.configure({"data.length": 5})
    run = workflow.run("results/mini/report.html")
    assert run.returncode == 1
    log = (tmp_path / "results/mini/logs/preprocess.log").read_text()
    assert re.search(r"pairflow preprocess: error: .*length", log)
    assert "Traceback" not in log
    assert not list((tmp_path / "results/mini/data").glob("*"))


def test_images_go_the_same_way_with_measures_of_their_own(tmp_path):
    """The embedded digits, from pixels to the page: FD on a classifier that the workflow trains itself."""
    workflow = Workflow(tmp_path)
    workflow.configure(
        {
            "data": {"source": "digits", "training_rows": 200},
            "network": {"name": "unet", "channels": 8, "multipliers": [1, 2], "blocks": 1},
            "pairing.coverage": False,
            "features": {"extractor": "classifier", "iterations": 20},
            "methods": ["mdlm", "udlm", "pairflow", "pairflow+dcd", "pairflow+redi"],
            "evaluations.main.nfe": [2],
        }
    )
    run = workflow.run("results/mini/report.html")
    assert run.returncode == 0, run.stderr + run.stdout
    root = tmp_path / "results/mini"
    metrics = pd.read_parquet(root / "metrics.parquet")
    found = metrics[(metrics["metric"] == "fd") & (metrics["method"] == "pairflow")]
    assert set(zip(found["nfe"], found["reference"], strict=True)) == {(2, "train"), (2, "test")}
    assert found["extractor"].str.fullmatch(r"classifier-[0-9a-f]{8}").all()
    assert (metrics["method"] == "data").any()  # real images against real images
    beside = {path.name for path in (root / "seed0/models/pairflow+dcd").iterdir()}
    assert {"vocabulary.json", "known.parquet"} <= beside
    page = (root / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert "Valid molecules" not in page
    assert workflow.planned() == []


def test_a_configuration_mistake_stops_before_any_rule(tmp_path):
    workflow = Workflow(tmp_path)
    workflow.configure({"pairing.stepz": 5})
    run = workflow.run("results/mini/report.html")
    assert run.returncode == 1
    assert "unknown key 'experiments.mini.pairing.stepz' (did you mean 'steps'?)" in run.stderr + run.stdout
    assert not (tmp_path / "results").exists()


def test_an_unknown_experiment_is_named(tmp_path):
    workflow = Workflow(tmp_path)
    workflow.configure()
    run = workflow.run("results/minni/report.html")
    assert run.returncode == 1
    assert "unknown experiment 'minni' (did you mean 'mini'?)" in run.stderr + run.stdout


def test_the_papers_plan_carries_gpu_resources(tmp_path):
    """The whole plan of qm9; the GPUs are those that a profile or the command line grants."""
    wants = {"train": 4, "teach": 6, "distill": 8, "sample": 12 * 7, "correlate": 11}
    command = ["--dry-run", "--set-resources", *(f"{rule}:gpu=1" for rule in wants), "--resources", "gpu=1"]
    workflow = Workflow(tmp_path)
    workflow.config.write_text((REPOSITORY / "workflow_config.yaml").read_text())
    run = workflow.run(*command, "--", "results/qm9/report.html")
    plan = run.stdout + run.stderr
    assert run.returncode == 0, plan
    assert {rule: len(re.findall(rf"rule {rule}:", plan)) for rule in wants} == wants
    assert len(re.findall(r"resources: .*gpu=1", plan)) == sum(wants.values())
