"""`pairflow estimate`: its jobs are Snakemake's, its arithmetic is known, its words say what it rests on."""

import copy
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from pairflow.cli import main
from pairflow.config import Experiment, check
from pairflow.config.file import read
from pairflow.estimate import measure, rates
from pairflow.estimate.costs import Cost, Costs
from pairflow.estimate.rates import Rate, Work
from pairflow.estimate.schedule import wall_seconds
from pairflow.estimate.sizes import Sizes, sizes
from pairflow.plan.jobs import Job, done, jobs
from pairflow.steps.estimate import duration

REPOSITORY = Path(__file__).parent.parent.parent
SHIPPED = REPOSITORY / "workflow_config.yaml"
RUN = {"batch_size": 32, "iterations": 20, "learning_rate": 1.0e-3, "validate_every": 10}
SMALL = {
    "description": "small",
    "scale": "reduced",
    "seeds": [0, 1],
    "data": {"source": "small_molecules", "length": 16},
    "network": {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16},
    "pairing": {"steps": 5, "coverage": True},
    "training": RUN,
    "distillation": {"dcd": {**RUN, "teacher_every": 3}, "redi": {**RUN, "pairs": {"count": 40, "steps": 2}}},
    "methods": ["mdlm", "random", "pairflow-sub2", "udlm+dcd", "udlm+redi+redi"],
    "evaluations": {
        "main": {"nfe": [1, 2], "samples": 16, "trials": 2},
        "b": {"nfe": [3], "methods": ["mdlm"]},
    },
    "correlation": {"sources": 10, "steps": 2},
    "chemistry": {"fcd": True},
}
IMAGES = {
    **{key: SMALL[key] for key in ("description", "scale", "network", "training", "methods", "distillation")},
    "data": {"source": "digits"},
    "evaluations": {"main": {"nfe": [1, 2]}, "b": {"nfe": [3], "methods": ["mdlm"]}},
}
SIZES = Sizes(rows=1000, validation_rows=100, length=16, vocabulary_size=16)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copy(SHIPPED, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def estimate(*arguments):
    return CliRunner().invoke(main, ["estimate", *arguments, "--quiet", "--device", "cpu"])


def experiment(**changes) -> Experiment:
    return check(Experiment, {**copy.deepcopy(SMALL), **changes}, "x")


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("kind", ["molecules", "images"])
def test_the_jobs_are_those_of_snakemakes_dry_run(tmp_path, kind, shards):
    named = {"small": SMALL if kind == "molecules" else IMAGES}
    config = {"experiments": named, "pair_shards": shards}
    (tmp_path / "workflow_config.yaml").write_text(yaml.safe_dump(config))
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(REPOSITORY / "Snakefile"),
        "--cores",
        "4",
    ]
    command += ["--dry-run", "--", "results/small/report.html"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    counted = dict(re.findall(r"^(\w+) +(\d+)$", run.stdout + run.stderr, re.MULTILINE))
    total = int(counted.pop("total"))
    every = jobs(Path("results/small"), read(tmp_path / "workflow_config.yaml").experiments["small"], shards)
    assert len(every) == total
    own = Counter("pair" if job.rule == "gather" else job.rule for job in every)
    assert own == {name.removesuffix("_images"): int(number) for name, number in counted.items()}
    made = {tuple(each.split(", ")) for each in re.findall(r"^    output: (.+)$", run.stdout, re.MULTILINE)}
    assert {path.as_posix() for job in every for path in job.outputs} <= {
        path for each in made for path in each
    }
    report = next(each for each in made if "results/small/report.html" in each)
    assert sorted(path.as_posix() for path in every[-1].outputs) == sorted(report)


def test_every_job_comes_after_those_that_it_waits_for():
    seen = set()
    made = {path for job in jobs(Path("x"), experiment()) for path in job.outputs}
    for job in jobs(Path("x"), experiment()):
        assert {path for path in job.inputs if path in made} <= seen
        seen.update(job.outputs)


def timed(costs: dict[str, float], threads: dict[str, int] | None = None, gpu: tuple = ()):
    def cost(job):
        return Cost(costs[job.rule], 1.0, 1.0, (threads or {}).get(job.rule, 1), job.rule in gpu)

    return cost


def chain(*edges: tuple[str, tuple[str, ...]]) -> list[Job]:
    return [Job(name, (Path(name),), tuple(map(Path, inputs))) for name, inputs in edges]


def test_wall_time_of_small_plans():
    plan = chain(("a", ()), ("b", ("a",)), ("c", ("a",)), ("d", ("b", "c")))
    cost = timed({"a": 1.0, "b": 5.0, "c": 3.0, "d": 2.0})
    assert wall_seconds(plan, cost, cores=1, gpus=1) == 11.0
    assert wall_seconds(plan, cost, cores=2, gpus=1) == 8.0
    assert wall_seconds(plan, cost, cores=9, gpus=1) == 8.0
    wide = timed({"a": 1.0, "b": 5.0, "c": 3.0, "d": 2.0}, {"b": 2})
    assert wall_seconds(plan, wide, cores=2, gpus=1) == 11.0
    on_gpu = timed({"a": 1.0, "b": 5.0, "c": 3.0, "d": 2.0}, gpu=("b", "c"))
    assert wall_seconds(plan, on_gpu, cores=9, gpus=1) == 11.0
    assert wall_seconds(plan, on_gpu, cores=9, gpus=2) == 8.0
    assert wall_seconds(plan[3:], cost, cores=1, gpus=1) == 2.0  # what is done is not waited for
    assert wall_seconds([], cost, cores=1, gpus=1) == 0.0


def known_rates(plan: Experiment, device="cpu") -> dict[Work, Rate]:
    """Ten seconds an iteration, two seconds a row and a step, of which one is the network's."""
    found = {}
    for work in rates.needed(plan, SIZES, device):
        seconds = {"train": 10.0, "dcd": 20.0, "draw": 2.0, "pair": 60.0}[work.kind]
        call = 1.0 if work.kind == "draw" else None
        found[work] = Rate(seconds, 100.0, "a test", call, 1000 if work.kind in ("train", "dcd") else None)
    return found


def test_known_arithmetic():
    plan = experiment()
    every = {(job.rule, job.method, job.nfe, job.seed): job for job in jobs(Path("x"), plan)}
    costs = Costs(plan, SIZES, known_rates(plan), cores=4, gpu=False)
    train = costs.of(every["train", "mdlm", None, 0])
    assert train.seconds == 3.0 + 20 * 10 + (20 // 10 + 1) * 100 * 1.0  # iterations, and validations
    assert train.disk == 8 * 1000 + 8 * 1000
    assert costs.of(every["distill", "udlm+dcd", None, 1]).seconds == 3.0 + 20 * 20 + 3 * 100
    assert costs.of(every["teach", "udlm+redi", None, 0]).seconds == 3.0 + 40 * (2 * 2.0 + 1.0)
    random = costs.of(every["sample", "random", 2, 0])
    assert random.seconds == 3.0 + 32 * (2 * 2.0 + 1.0)
    assert random.disk == 32 * 16 * 0.5  # four bits a token
    # of two steps a row of masks changes in both, save where all its positions fall on one
    masked = costs.of(every["sample", "mdlm", 2, 0]).seconds
    assert masked == pytest.approx(3.0 + 32 * (2 * 1.0 + 2 * (1 - 0.5**16) + 1))
    pair = costs.of(every["pair", "pairflow-sub2", None, 0])
    assert (pair.seconds, pair.threads) == (1.0 + 60 / 4, 4)
    assert costs.of(every["correlate", "random", None, 0]).seconds == 3.0 + 100 * (2 * 2.0 + 1.0)


def test_a_gpu_is_used_by_what_can_use_it():
    plan = experiment()
    costs = Costs(plan, SIZES, known_rates(plan, "cuda"), cores=4, gpu=True)
    on_gpu = {job.rule for job in jobs(Path("x"), plan) if costs.of(job).gpu}
    assert on_gpu == {"pair", "train", "teach", "distill", "sample", "chemnet", "correlate"}
    assert costs.of(next(job for job in jobs(Path("x"), plan) if job.rule == "train")).seconds > 200


def test_what_uses_the_gpu_is_what_asks_for_it():
    """The resource of each rule, and its threads, as they stand in rules/."""
    text = "".join(path.read_text() for path in sorted((REPOSITORY / "rules").glob("*.smk")))
    blocks = re.split(r"\n\s*(?:use )?rule (\w+)", text)[1:]
    bodies = dict(reversed(list(zip(blocks[::2], blocks[1::2], strict=True))))  # the first of each name
    asks = {name: "gpu=gpu" in body for name, body in bodies.items()}
    wide = {name for name, body in bodies.items() if "threads: CORES" in body}
    found = jobs(Path("x"), experiment(), 1) + jobs(Path("x"), experiment(), 2)
    for job in found:
        assert job.uses_gpu("molecules") == asks.get(job.rule, False), job.rule
        assert (job.threads(64) == 64) == (job.rule in wide), job.rule
    images = check(Experiment, IMAGES, "x")
    for job in jobs(Path("x"), images):
        rule = "evaluate_images" if job.rule == "evaluate" else job.rule
        assert job.uses_gpu("images") == asks.get(rule, False), rule


def test_timings_give_their_rates_back():
    plan = experiment(seeds=[0])
    rows = [
        {"step": "train", "method": "mdlm", "device_seconds": 40.0},
        {"step": "train", "method": "random", "device_seconds": 20.0},
        {"step": "distill", "method": "udlm+redi", "device_seconds": 60.0},  # an iteration of a base
        {"step": "distill", "method": "udlm+dcd", "device_seconds": 80.0},
        {"step": "sample", "method": "random", "device_seconds": 32.0 * 3, "evaluation": "main", "nfe": 2},
        {"step": "pair", "method": "pairflow-sub2", "device_seconds": 7.0},
        {"step": "pair", "method": "random", "device_seconds": 7.0},
        {"step": "teach", "method": "udlm+redi", "device_seconds": None},
        {"step": "preprocess", "method": None, "device_seconds": 1.0},
    ]
    frame = pd.DataFrame(rows).assign(device="cpu", peak_memory_mb=5.0)
    found = rates.of_timings(frame, plan, SIZES, "there")
    by_kind = {(work.kind, work.corruption): rate.seconds for work, rate in found.items()}
    assert by_kind == {
        ("train", "absorbing"): 2.0,
        ("train", "uniform"): 2.0,
        ("dcd", "uniform"): 4.0,
        ("draw", "uniform"): 1.0,
        ("pair", "uniform"): 7.0,
    }
    assert set(found) < set(rates.needed(plan, SIZES, "cpu"))


def test_the_packaged_records_are_of_the_shipped_experiments(folder):
    described = read(folder / "workflow_config.yaml")
    for name in ("demo", "digits", "mnist_binary_small"):
        plan = described.experiments[name]
        size = sizes(folder / "results" / name, plan, folder)
        assert not rates.unknown(rates.needed(plan, size, "cpu"), rates.packaged()), name
    assert json.loads(rates.as_json(rates.packaged()))[0]["work"]["kind"] == "pair"


def test_the_demo_by_its_record(folder):
    run = estimate("demo", "--recorded", "--cores", "2")
    assert run.exit_code == 0, run.output
    assert "demo: 7,561 rows of N = 16 tokens, K = 24; mlp, 8 methods, 1 seed" in run.output
    assert "to do      83 of 83 jobs" in run.output
    assert "GPU-hours  none" in run.output
    assert re.search(r"based on   recorded on \d{4}-\d\d-\d\d \(Linux x86_64, 2 cores, demo\)", run.output)
    assert "a factor of two on a machine that does nothing else" in run.output
    # trainings of 85 s on one core: in the table of what `make demo` took they are 82 to 90 s
    [seconds] = set(re.findall(r"^train +mdlm +1 +(\d+) s ", run.output, re.MULTILINE))
    assert 80 <= int(seconds) <= 95


def test_a_gpu_without_a_record_is_unknown(folder):
    arguments = ["estimate", "cifar10", "--recorded", "--device", "cuda", "--cores", "8"]
    run = CliRunner().invoke(main, arguments)
    assert run.exit_code == 0, run.output
    assert "GPU-hours  unknown" in run.output
    assert "GPU: unknown: no GPU here, and no record of one" in run.output
    assert re.search(r"^train +mdlm +1 +unknown ", run.output, re.MULTILINE)
    assert "on one RTX A6000 by the paper’s own table of cost" in run.output


def test_errors_are_one_line(folder):
    run = estimate("dmo")
    assert run.exit_code == 2
    assert run.stderr.startswith(
        "pairflow estimate: error: workflow_config.yaml: no experiment 'dmo' (did you mean 'demo'?): it has "
    )
    run = estimate("demo", "--config", "absent.yaml")
    assert run.stderr == (
        "pairflow estimate: error: absent.yaml: no such file; "
        "go to the workflow's folder, or name it with --config\n"
    )


def test_own_files_are_read_for_their_sizes(folder):
    from PIL import Image

    (folder / "my.smi").write_text("".join("C" * length + "\n" for length in range(1, 11)) + "CC\nx\n")
    data = {"source": "my.smi", "length": 8, "drop_duplicates": True, "validation_fraction": 0.5}
    found = sizes(folder / "r", experiment(data=data), folder, progress=False)
    assert (found.rows, found.validation_rows, found.length) == (3, 3, 8)  # C to CCCCCC fit, with two ends
    (folder / "pictures").mkdir()
    for number in range(4):
        Image.new("RGB", (6, 4)).save(folder / "pictures" / f"{number}.png")
    data = {"source": "image_folder", "folder": "pictures", "validation_fraction": 0.25, "flips": True}
    found = sizes(folder / "r", check(Experiment, {**IMAGES, "data": data}, "x"), folder)
    assert found == Sizes(6, 1, 72, 256, (3, 4, 6))


@pytest.mark.parametrize("source", ["small_molecules", "digits"])
def test_known_sizes_are_what_preprocessing_finds(tmp_path, pairflow_command, source):
    data = {"source": source, **({"length": 16} if source == "small_molecules" else {})}
    values = {**(SMALL if source == "small_molecules" else IMAGES), "data": data}
    plan = check(Experiment, values, "x")
    known = sizes(tmp_path, plan, tmp_path)
    folder = tmp_path / "data"
    files = ["train", "validation", "known"]
    arguments = [f"--{name}={folder}/{name}.parquet" for name in files]
    step = "preprocess_images"
    if source == "small_molecules":
        step = "preprocess"
        arguments += [f"--{name}={folder}/{name}.parquet" for name in ("smiles", "rejected")]
    arguments.append(f"--vocabulary={folder}/vocabulary.json")
    run = pairflow_command(step, f"--settings={json.dumps(data)}", *arguments, "--quiet")
    assert run.returncode == 0, run.stderr
    found = sizes(tmp_path, plan, tmp_path)
    assert found.tokens == folder / "train.parquet"
    for key in ("rows", "validation_rows", "length", "vocabulary_size", "shape"):
        assert getattr(found, key) == getattr(known, key)


def test_what_is_done_is_not_counted(tmp_path, pairflow_command):
    root = tmp_path / "results" / "small"
    plan = experiment(seeds=[0], methods=["random"], correlation=None, evaluations={"main": {"nfe": [1]}})
    every = jobs(root, plan)
    assert done(every) == set()
    files = {
        name: f"--{name}={root}/data/{name}.parquet"
        for name in ("train", "validation", "smiles", "known", "rejected")
    }
    run = pairflow_command(
        "preprocess",
        f"--settings={plan.data.model_dump_json()}",
        *files.values(),
        f"--vocabulary={root}/data/vocabulary.json",
    )
    assert run.returncode == 0, run.stderr
    pairs = root / "seed0" / "pairs" / "random.parquet"
    settings = plan.pair_settings("random", 0).model_dump_json()
    run = pairflow_command(
        "pair", f"--settings={settings}", f"--tokens={root}/data/train.parquet", f"--out={pairs}", "--quiet"
    )
    assert run.returncode == 0, run.stderr
    assert {job.rule for job in done(every)} == {"preprocess", "pair"}
    # other data are another run, and whatever is made of them
    longer = plan.model_copy(update={"data": plan.data.model_copy(update={"length": 24})})
    assert done(jobs(root, longer)) == set()
    (tmp_path / "workflow_config.yaml").write_text(
        yaml.safe_dump({"experiments": {"small": plan.model_dump(mode="json", exclude_none=True)}})
    )
    run = estimate("small", "--recorded", "--config", str(tmp_path / "workflow_config.yaml"))
    assert run.exit_code == 0, run.output
    assert f"to do      {len(every) - 2} of {len(every)} jobs" in run.output
    assert re.search(r"^pair +random +1 +1 +done$", run.output, re.MULTILINE)


def test_rates_are_measured_in_a_process_of_their_own(monkeypatch):
    plan = experiment()
    works = {(work.kind, work.corruption): work for work in rates.needed(plan, SIZES, "cpu")}
    assert set(works) == {
        *(("train", corruption) for corruption in ("absorbing", "uniform")),
        *(("draw", corruption) for corruption in ("absorbing", "uniform")),
        ("dcd", "uniform"),
        ("pair", "uniform"),
    }
    rate = measure.measured(works["train", "uniform"], "nelbo", None, None, "here")
    assert rate.origin == "here"
    assert 0 < rate.seconds < 10
    assert 50 < rate.memory_mb < 10_000
    network = {**json.loads(works["train", "uniform"].network), "width": 17, "name": "none such"}
    broken = rates.Work(**{**works["train", "uniform"].__dict__, "network": json.dumps(network)})
    assert measure.measured(broken, "nelbo", None, None, "here") is None


@pytest.mark.parametrize("kind", ["draw", "dcd", "pair"])
def test_every_kind_of_work_can_be_measured(monkeypatch, kind):
    monkeypatch.setattr(measure, "SECONDS", 0.01)
    for work in rates.needed(experiment(), SIZES, "cpu"):
        if work.kind == kind:
            found = measure.main({"work": work.__dict__, "loss": "nelbo", "shape": None, "tokens": None})
            assert found["seconds"] > 0
            assert kind != "draw" or 0 < found["call"] <= found["seconds"]


def test_a_batch_that_takes_too_long_is_carried_on_in_a_straight_line(monkeypatch):
    asked = []

    def once(rows, device):
        asked.append(rows)
        return 0.1 + 0.1 * rows

    monkeypatch.setattr(measure, "_once", once)
    monkeypatch.setattr(measure, "_memory", lambda device: 100.0 + asked[-1])
    seconds, memory = measure._in_a_line(lambda rows: rows, 1000, "cpu")
    assert asked == [4, 16]
    assert seconds == pytest.approx(100.1)
    assert memory == pytest.approx(1100.0)
    asked.clear()
    monkeypatch.setattr(measure, "_once", lambda rows, device: asked.append(rows) or 1e-4 * rows)
    assert measure._in_a_line(lambda rows: rows, 1000, "cpu")[0] == pytest.approx(0.1)
    assert asked == [4, 1000]


def test_durations_in_words():
    values = [0.2, 90, 130, 3600 * 2, 3600 * 47, 86400 * 3]
    assert [duration(value) for value in values] == ["1 s", "90 s", "2.2 min", "2.0 h", "47 h", "3.0 days"]


def test_made_up_rows_resemble_one_another():
    work = Work("pair", "cpu", 20, 30, rows=2000, steps=5)
    rows = measure._clusters(work)
    assert rows.shape == (2000, 20)
    assert 0 <= rows.min() <= rows.max() < 30
    nearest = min(np.count_nonzero(rows[1:] != rows[0], axis=1))
    assert nearest < 14  # rows of independent tokens would differ in 19 or 20
