"""`pairflow estimate`: its arithmetic, the rates that it uses, and the words that say what it rests on."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from pairflow.artifacts import provenance_path
from pairflow.cli import main
from pairflow.config import Experiment, check
from pairflow.config.file import read
from pairflow.data.source import DatasetSize
from pairflow.estimate import measure, rates
from pairflow.estimate.costs import JobCost, job_costs, memory_requests, wall_seconds
from pairflow.estimate.forecast import forecast
from pairflow.estimate.rates import Rate
from pairflow.pairing.transport import sources_needed
from pairflow.plan.job import Job
from pairflow.plan.jobs import jobs
from pairflow.plan.lineage import done
from pairflow.plan.sizes import sizes
from pairflow.plan.work import Work, needed, tasks_of

REPOSITORY = Path(__file__).parents[2]
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
    "correlation": {"sources": 10, "steps": 2, "methods": ["random", "udlm+dcd", "udlm+redi+redi"]},
    "chemistry": {"fcd": True},
}
IMAGES = {
    **{key: SMALL[key] for key in ("description", "scale", "network", "training", "methods", "distillation")},
    "data": {"source": "digits"},
    "evaluations": {"main": {"nfe": [1, 2]}, "b": {"nfe": [3], "methods": ["mdlm"]}},
}
ONE = {"main": {"nfe": [1]}}  # an evaluation at one number of steps
SIZES = DatasetSize(rows=1000, validation_rows=100, length=16, vocabulary_size=16)


def estimate(*arguments, device="cpu") -> str:
    """What the command prints."""
    run = CliRunner().invoke(main, ["estimate", *arguments, "--quiet", "--device", device])
    assert run.exit_code == 0, run.output
    return run.output


def shipped(project: Path, name: str) -> tuple[Experiment, DatasetSize]:
    """An experiment of the shipped configuration, and the size of its data."""
    plan = read(project / "workflow_config.yaml").experiments[name]
    return plan, sizes(project / "results" / name, plan, project)


def experiment(**changes) -> Experiment:
    return check(Experiment, {**SMALL, **changes}, "x")


@pytest.mark.parametrize(
    ("cores", "threads", "gpu", "seconds"),
    [
        (1, 1, False, 11.0),  # all of the work on one core
        (2, 1, False, 8.0),  # the chain a, b, d
        (2, 2, False, 8.0),
        (1, 1, True, 8.0),  # b and c take turns on the one GPU, and a and d fit beside them
    ],
)
def test_wall_time_of_a_small_plan(cores, threads, gpu, seconds):
    costs = {}
    for name, inputs, own in [("a", "", 1.0), ("b", "a", 5.0), ("c", "a", 3.0), ("d", "bc", 2.0)]:
        job = Job(name, {"files": [*map(Path, inputs)]}, {"out": Path(name)})
        costs[job] = JobCost(own, 1.0, 1.0, threads if name == "b" else 1, gpu and name in "bc")
    assert wall_seconds([*costs], costs, cores) == seconds
    assert wall_seconds([*costs][3:], costs, cores) == 2.0  # what is done is not waited for
    assert wall_seconds([], costs, cores) == 0.0


def known_rates(plan: Experiment, device="cpu") -> dict[Work, Rate]:
    """Ten seconds an iteration, two seconds a row and a step, a minute a pairing."""
    seconds = {"train": 10.0, "draw": 2.0, "pair": 60.0, "lead": 4.0}
    works = needed(jobs(Path("x"), plan), plan, SIZES, device)
    return {work: Rate(seconds[work.kind], 100.0, "a test", 1000) for work in works}


def cost_of(plan: Experiment, device: str = "cpu", shards: int = 1) -> dict[tuple, JobCost]:
    """Rule, method, NFE and seed -> what the job takes on 4 cores."""
    table = jobs(Path("x"), plan, shards)
    costs = job_costs(table, plan, SIZES, known_rates(plan, device), 4, device)
    return {(job.rule, job.method, job.nfe, job.seed): costs[job] for job in table}


def test_known_arithmetic():
    costs = cost_of(experiment())
    train = costs["train", "mdlm", None, 0]
    assert (train.seconds, train.memory_mb) == (3.0 + 20 * 10, 100.0)
    assert train.disk == 8 * 1000
    # An iteration of DCD is one of a training, and the teacher's answers for its 32 rows.
    assert costs["distill", "udlm+dcd", None, 1].seconds == 3.0 + 20 * (10 + 32 * 2)
    assert costs["distill", "udlm+redi", None, 1].seconds == 3.0 + 20 * 10
    assert costs["teach", "udlm+redi", None, 0].seconds == 3.0 + 40 * 3 * 2.0
    random = costs["sample", "random", 2, 0]
    assert random.seconds == 3.0 + 32 * 3 * 2.0
    assert random.disk == 32 * 16 * 0.5  # four bits a token
    # of two steps a row of masks changes in both, save where all its positions fall on one
    masked = costs["sample", "mdlm", 2, 0].seconds
    assert masked == pytest.approx(random.seconds - 32 * 2 * 2 * 0.5**16)
    pair = costs["pair", "pairflow-sub2", None, 0]
    assert (pair.seconds, pair.threads) == (1.0 + 2 * 60 / 4, 4)  # two subsets
    assert costs["correlate", "random", None, 0].seconds == 3.0 + 100 * 3 * 2.0
    shard = cost_of(experiment(), shards=3)["pair_shard", "pairflow-sub2", None, 0]
    assert (shard.seconds, shard.threads) == (1.0 + 2 * 60 / 3 / 2, 2)
    # Networks that nobody has timed are unknown.
    assert costs["chemnet", None, None, None].seconds is None
    assert costs["evaluate", "random", 2, 0].seconds is None  # with ChemNet's distance
    assert cost_of(experiment(chemistry=None))["evaluate", "random", 2, 0].seconds < 3
    data = {"source": "zinc250k", "length": 24}
    smiles, groups = (
        cost_of(experiment(data=data | {"representation": written}))["preprocess", None, None, None].seconds
        for written in ("smiles", "groups")
    )
    assert groups - 1 == pytest.approx(17 * (smiles - 1)) != 0


def test_no_rule_is_guessed():
    text = "\n".join(path.read_text() for path in (REPOSITORY / "rules").glob("*.smk"))
    names = set(re.findall(r"^ *rule (\w+):", text, re.MULTILINE)) - {"paper"}  # a page on all experiments
    names |= set(re.findall(r'f"(\w+)_\{kind.name\}"', text))
    assert {"preprocess", "evaluate", "floor", "describe_molecules"} <= names
    guessed = {}
    for plan in (experiment(), check(Experiment, IMAGES, "x")):
        table = [Job(name, {}, {"out": Path("x")}) for name in names]
        costs = job_costs(table, plan, SIZES, {}, 1, "cpu")
        guessed[plan.data.kind] = {job.rule for job, cost in costs.items() if cost.guessed}
    assert guessed == {"molecules": {"reference"}, "images": {"describe_molecules"}}


def test_the_judges_of_text():
    """GPT-2 large has never been timed."""
    text = {"source": "shakespeare", "tokeniser": "characters", "length": 16}
    for judge, timed in (({}, True), ({"gen_ppl": True}, False)):
        costs = cost_of(check(Experiment, {**IMAGES, "data": text, "judge": judge}, "x"))
        assert (costs["floor", None, None, None].seconds is not None) == timed


def test_the_assignments_of_ot_take_the_time_of_their_pool():
    changes = {"flow": "continuous", "data": {"source": "two_moons", "dims": 2}, "methods": ["condot", "ot"]}
    absent = {"chemistry": None, "correlation": None, "distillation": {}, "seeds": [0, 1, 2]}
    led = cost_of(experiment(methods=["sdot"], evaluations=ONE, **absent))
    assert led["train", "sdot", None, 0].seconds == 203.0 + 20 * 32 * 4.0  # sdot assigns nothing
    training = {"batch_size": 512, "iterations": 20, "learning_rate": 1e-3, "loss": "velocity"}

    def seconds(**pairing):
        costs = cost_of(experiment(**changes, **absent, training=training, evaluations=ONE, pairing=pairing))
        return [costs["train", name, None, 0].seconds for name in ("condot", "ot")]

    # 10,240 rows: 20 assignments of 512, or 2 of 5,120, which took 80 s each
    assert seconds() == [203.0, pytest.approx(203.0 + 20 * 0.08, abs=1)]
    assert seconds(pool=5120) == [203.0, pytest.approx(203.0 + 2 * 80, abs=5)]


def test_a_single_training_uses_more_cores():
    small = {"seeds": [0], "correlation": None, "distillation": {}}
    costs = cost_of(experiment(methods=["mdlm"], evaluations=ONE, **small))
    assert costs["train", "mdlm", None, 0].threads == 2
    assert costs["train", "mdlm", None, 0].seconds == 3.0 + 20 * 10 / 1.4
    assert costs["sample", "mdlm", 1, 0].threads == 2
    both = cost_of(experiment(methods=["mdlm", "udlm"], evaluations=ONE, **small))
    assert both["train", "mdlm", None, 0].seconds == 3.0 + 20 * 10  # one core of four stays free


def test_a_gpu_is_used_by_what_can_use_it():
    costs = cost_of(experiment(), "cuda")
    on_gpu = {rule for (rule, *_), cost in costs.items() if cost.gpu}
    assert on_gpu == {"pair", "train", "teach", "distill", "sample", "chemnet", "correlate"}
    assert costs["pair", "pairflow-sub2", None, 0].seconds == 1.0 + 2 * 60


def test_finished_jobs_give_their_rates_back(tmp_path):
    plan = experiment(seeds=[0])
    seconds = {("train", "mdlm"): 40.0, ("train", "random"): 20.0, ("sample", "random"): 32.0 * 3}
    seconds |= {("pair", "pairflow-sub2"): 7.0, ("pair", "random"): 7.0, ("teach", "udlm+redi"): None}
    # an iteration of a base, and one with a teacher's answers
    seconds |= {("distill", "udlm+redi"): 60.0, ("distill", "udlm+dcd"): 80.0}
    ours = [job for job in jobs(tmp_path, plan) if (job.rule, job.method) in seconds]
    finished = [job for job in ours if job.nfe in (None, 2)]
    for job in finished:
        record = {"device": "cpu", "device_seconds": seconds[job.rule, job.method], "machine": "this one"}
        job.record.parent.mkdir(parents=True, exist_ok=True)
        provenance_path(job.record).write_text(json.dumps(record | {"peak_memory_mb": 5.0}))
    there = rates.rates_of(finished, plan, SIZES, "there", "this one")
    found = {work.kind: rate.seconds for work, rate in there.items()}
    assert found == {"train": 2.0, "draw": 1.0, "pair": 7.0 / 2}  # of one of two subsets
    assert set(there) < set(needed(jobs(Path("x"), plan), plan, SIZES, "cpu"))
    assert rates.rates_of(finished, plan, SIZES, "there", "another") == {}
    for job in finished:  # on two threads, each of which did 0.7 of what one by itself does
        facts = json.loads(provenance_path(job.record).read_text()) | {"threads": 2}
        provenance_path(job.record).write_text(json.dumps(facts))
    there = rates.rates_of(finished, plan, SIZES, "there", "this one")
    assert {work.kind: rate.seconds for work, rate in there.items()}["train"] == pytest.approx(0.7 * 2.0)


def test_the_packaged_records_are_of_the_shipped_experiments(project):
    for name in ("demo", "demo_full", "digits", "mnist_binary_small"):
        plan, size = shipped(project, name)
        assert rates.packaged().keys() >= {*needed(jobs(Path(), plan), plan, size, "cpu")}, name


def test_the_demo_by_its_record(project):
    text = estimate("demo", "--recorded", "--cores", "2")
    assert "demo: 7,561 rows of N = 16 tokens, K = 24; mlp, 3 methods, 1 seed" in text
    assert "to do      26 of 26 jobs" in text
    assert re.search(r"^GPU-hours  none here; 0\.\d+ on an RTX A6000, by arithmetic$", text, re.MULTILINE)
    assert re.search(r"based on   recorded on \d{4}-\d\d-\d\d \(Linux x86_64, 2 cores, demo\)", text)
    # 1,000 iterations on one core: the record has 38 s, with another training on the other core
    [seconds] = re.findall(r"^train +udlm, pairflow +2 +(\d+) s ", text, re.MULTILINE)
    assert 36 <= int(seconds) <= 48
    larger = estimate("demo", "--recorded", "--cores", "2", "--rows", "1000000")
    assert "demo: 1,000,000 rows of N = 16 tokens" in larger
    # of 250,000 molecules at most fingerprints are computed: 12 us for each of 16 tokens, on two cores
    [seconds] = re.findall(r"^describe_molecules +1 +(\d+) s ", larger, re.MULTILINE)
    assert int(seconds) == int(3 + 250_000 * 16 * 1.2e-5 / 2)


def test_subsets_of_a_given_size_cost_in_proportion_to_the_rows():
    pairing = {"steps": 5, "subsets": "auto", "keys": 500}
    few = {"correlation": None, "evaluations": ONE}
    plan = experiment(methods=["pairflow"], pairing=pairing, **few)
    for rows, subsets in ((500, 1), (1000, 2), (50_000, 100)):
        [job] = [job for job in jobs(Path("x"), plan) if job.rule == "pair" and job.seed == 0]
        [(work, units)] = tasks_of(job, plan, SIZES.scaled(rows), "cpu")
        assert (work.rows, units) == (500, subsets)
    assert SIZES.scaled(None) == SIZES
    assert SIZES.scaled(50_000).validation_rows == 5000


@pytest.mark.parametrize(
    ("name", "hours"),
    # the paper's hours of one RTX A6000 for three seeds, without sampling and evaluation: docs/paper.md
    [("qm9", 132), ("zinc250k", 430), ("mnist_binary", 25), ("cifar10", 1428)],
)
def test_hours_on_a_gpu_by_arithmetic_are_about_those_of_the_paper(project, name, hours):
    plan, size = shipped(project, name)
    work = forecast(project / "results" / name, plan, size, 8, "cuda", recorded=True, progress=False)
    trained = ("pair", "train", "teach", "distill")
    seconds = [work.costs[job].seconds for job in work.table if job.rule in trained]
    assert 0.7 < sum(seconds) / 3600 / hours < 1.4


def test_what_nobody_has_timed_is_never_zero(project):
    text = estimate("qm9", "--recorded", "--cores", "2")
    assert re.search(r"^pair +pairflow +3 +\d+ s ", text, re.MULTILINE)
    # Methods that differ in nothing else share a line.
    rows = re.findall(r"^(\w+ +.+?) {2,}(\d+) ", text, re.MULTILINE)
    assert ("train               4 methods", "12") in rows
    assert "unknown" not in text
    text = estimate("cifar10", "--recorded", "--cores", "8", device="cuda")
    assert re.search(
        r"^wall time  unknown, because \d+ of these jobs have never been tim", text, re.MULTILINE
    )
    assert re.search(r"^GPU-hours  at least [1-9],\d00$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "shape", "length", "symbols", "millions"),
    # docs/paper.md and pairflow/networks/unet.py have these numbers
    [
        ("qm9", None, 32, 40, 92.4),
        ("mnist_binary", (1, 28, 28), 784, 2, 25.84),
        ("cifar10", (3, 32, 32), 3072, 256, 35.75),
        ("mnist_continuous", (1, 32, 32), 1024, 0, 61.8),
    ],
)
def test_the_maps_of_a_network_have_its_parameters(name, shape, length, symbols, millions):
    network = read(REPOSITORY / "workflow_config.yaml").experiments[name].network
    parameters = sum(one.inputs * one.outputs * one.number for one in network.maps(length, symbols, shape))
    assert parameters / 1e6 == pytest.approx(millions, rel=0.02)


def test_the_memory_of_a_training_grows_with_its_batch(project):
    """28.7 MB a row of QM9 are kept for the way back (measured), and 20 bytes of each of 92 M parameters."""
    plan, size = shipped(project, "qm9")
    asked = {}
    for batch in (256, 1024):
        training = plan.training.model_copy(update={"batch_size": batch})
        smaller = plan.model_copy(update={"training": training})
        asked[batch] = memory_requests(Path("results/qm9"), smaller, size)["train"] / 1.2
    assert (asked[1024] - asked[256]) / 768 == pytest.approx(28.7, rel=0.05)
    assert asked[1024] == pytest.approx(700 + 92.4e6 * 20 / 2**20 + 1024 * 28.7, rel=0.05)
    asked = memory_requests(Path("results/demo"), experiment(), SIZES)
    assert asked["train"] >= 1000
    assert "chemnet" not in asked  # nobody has measured it


def test_own_files_are_read_for_their_sizes(project):
    from PIL import Image

    (project / "my.smi").write_text("".join("C" * length + "\n" for length in range(1, 11)) + "CC\nx\n")
    data = {"source": "my.smi", "length": 8, "drop_duplicates": True, "validation_fraction": 0.5}
    data["max_too_long_share"] = 0.5
    found = sizes(project / "r", experiment(data=data), project)
    assert (found.rows, found.validation_rows, found.length) == (3, 3, 8)  # C to CCCCCC fit, with two ends
    (project / "pictures").mkdir()
    for number in range(4):
        Image.new("RGB", (6, 4)).save(project / "pictures" / f"{number}.png")
    data = {"source": "image_folder", "folder": "pictures", "validation_fraction": 0.25, "flips": True}
    values = {**IMAGES, "data": data, "features": {"extractor": "inception"}}
    found = sizes(project / "r", check(Experiment, values, "x"), project)
    assert found == DatasetSize(6, 1, 256, 72, (3, 4, 6))


@pytest.mark.parametrize(("values", "kind"), [(SMALL, "molecules"), (IMAGES, "images")])
def test_known_sizes_are_what_preprocessing_finds(tmp_path, step, values, kind):
    plan = check(Experiment, values, "x")
    known = sizes(tmp_path, plan, tmp_path)
    outputs = jobs(tmp_path, plan)[0].outputs
    assert step("preprocess", kind, settings=plan.data.model_dump(mode="json"), **outputs).exit_code == 0
    assert sizes(tmp_path, plan, tmp_path) == known


def test_what_is_done_is_not_counted(tmp_path, step):
    root = tmp_path / "results" / "small"
    plan = experiment(seeds=[0], methods=["random"], correlation=None, evaluations=ONE)
    table = jobs(root, plan)
    assert done(table) == set()
    preprocess, pair = table[0], next(job for job in table if job.rule == "pair")
    settings = preprocess.settings.model_dump(mode="json")
    assert step("preprocess", "molecules", settings=settings, **preprocess.outputs).exit_code == 0
    files = {"tokens": root / "data/train.parquet", "out": pair.outputs["pairs"]}
    assert step("pair", settings=pair.settings.model_dump(mode="json"), **files).exit_code == 0
    assert {job.rule for job in done(table)} == {"preprocess", "pair"}
    # other data are another run, and whatever is made of them
    longer = plan.model_copy(update={"data": plan.data.model_copy(update={"length": 24})})
    assert done(jobs(root, longer)) == set()
    # of a pairing in shards only the joined file is there
    assert {job.rule for job in done(jobs(root, plan, 3))} == {"preprocess", "pair_shard", "gather"}
    path, values = tmp_path / "workflow_config.yaml", plan.model_dump(mode="json", exclude_none=True)
    path.write_text(yaml.safe_dump({"experiments": {"small": values}}))
    text = estimate("small", "--recorded", "--config", str(path))
    assert f"to do      {len(table) - 2} of {len(table)} jobs" in text
    assert re.search(r"^pair +random +1 +1 +done$", text, re.MULTILINE)


WORKS = {work.kind: work for work in needed(jobs(Path(), experiment()), experiment(), SIZES, "cpu")}
WORKS["lead"] = Work("lead", "cpu", "discrete", 16, 16, rows=1000)
VELOCITIES = [replace(WORKS[kind], flow="continuous", vocabulary_size=0) for kind in ("train", "draw")]


def test_rates_are_measured_in_a_process_of_their_own():
    work = WORKS["train"]
    rate = measure.measure(work, "nelbo", None, None, "here")
    assert rate.origin == "here"
    assert 0 < rate.seconds < 10
    assert 50 < rate.memory_mb < 10_000
    broken = replace(work, network=json.dumps({**json.loads(work.network), "name": "none such"}))
    assert measure.measure(broken, "nelbo", None, None, "here") is None


@pytest.mark.parametrize("work", [*WORKS.values(), *VELOCITIES], ids=lambda work: f"{work.kind}-{work.flow}")
def test_every_kind_of_work_can_be_measured(monkeypatch, work):
    monkeypatch.setattr(measure, "SECONDS", 0.01)
    loss = "nelbo" if work.flow == "discrete" else "velocity"
    facts = measure.main({"work": vars(work), "loss": loss, "shape": None, "tokens": None})
    assert facts["seconds"] > 0
    assert facts["memory_mb"] > 0


@pytest.mark.parametrize("kind", ["train", "draw"])
def test_what_takes_too_long_is_extrapolated_in_a_straight_line(monkeypatch, kind):
    """A row takes a tenth of a second more, and one MiB, than what any batch needs."""
    clock, largest = [0.0], [0]

    def step(count):
        clock[0] += 0.5 + 0.1 * count
        largest[0] = max(largest[0], count)

    monkeypatch.setattr(measure, "_network", lambda work, request: (step, 1000, {}))
    monkeypatch.setattr("time.process_time", lambda: clock[0])
    monkeypatch.setattr(measure, "peak_memory_mb", lambda device: 100.0 + largest[0])
    facts = measure.main({"work": vars(WORKS[kind])})
    seconds = 100.5 / (1000 if kind == "draw" else 1)
    assert facts == {"seconds": pytest.approx(seconds), "memory_mb": pytest.approx(1100.0)}
    assert largest[0] < 100


@pytest.mark.parametrize("speed", [1e-3, 1e-8])
def test_a_pairing_of_many_rows_is_measured_on_fewer_and_scaled(monkeypatch, speed):
    """Preparation and queries take time in proportion to the rows, and so does the index's memory.

    At the higher speed all queries take less time than a measurement.
    """
    clock, memory = [0.0], [100.0]

    def pair(data, *, rows, **options):
        assert 0 <= rows[0] < rows[1] <= len(data)
        clock[0] += speed * len(data) * (1 + rows[1] - rows[0])
        memory[0] = 100.0 + len(data)

    monkeypatch.setattr("pairflow.pairing.pair.pair", pair)
    monkeypatch.setattr("time.process_time", lambda: clock[0])
    monkeypatch.setattr(measure, "peak_memory_mb", lambda device: memory[0])
    work = replace(WORKS["pair"], rows=3000)
    request = {"work": vars(work), "tokens": None}
    for most in (3000, 300):
        memory[0] = 100.0
        monkeypatch.setattr(measure, "MOST_TOKENS", most * work.length)
        facts = measure.main(request)
        assert facts == {"seconds": pytest.approx(speed * 3000 * 3001, rel=0.01), "memory_mb": 3100.0}


def test_sources_that_are_led_to_rows_are_counted_in_the_search_and_in_trainings():
    led = experiment(methods=["sdot"], distillation={}, evaluations=ONE, correlation=None)
    tasks = {job.rule: tasks_of(job, led, SIZES, "cpu") for job in jobs(Path("x"), led)}
    units = {rule: {work.kind: count for work, count in own} for rule, own in tasks.items()}
    assert units["train"] == {"train": 20.0, "lead": 20.0 * 32}
    assert units["potentials"] == {"lead": sources_needed(1000)}
    assert sources_needed(1000) > 60 * 2048


def test_pairing_with_noise_by_frequency_has_a_rate_of_its_own_on_the_cpu():
    changes = {"noise": "frequencies", "methods": ["pairflow"], "pairing": {"steps": 5}, "distillation": {}}
    settings = experiment(**changes, evaluations=ONE, correlation=None)
    tasks = [task for job in jobs(Path("x"), settings) for task in tasks_of(job, settings, SIZES, "cuda")]
    [work] = {work for work, _ in tasks if work.kind == "pair"}
    assert (work.noise, work.device) == ("frequencies", "cpu")
    measured = replace(work, rows=20_000, length=24, vocabulary_size=1926, steps=20)
    assert rates.expected_rates([measured], settings, SIZES)[measured].seconds == pytest.approx(12.1, rel=0.1)
    request = {"work": asdict(work), "loss": "nelbo", "shape": None, "tokens": None}
    assert measure.main(request)["seconds"] > 0
