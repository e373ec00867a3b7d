"""Half an hour on a GPU, spent on what cannot be known without one. Every finished task is recorded at once.

    python benchmarks/on_gpu.py inputs/ --prepare --python 3.12   # where RDKit and the data are; needs no GPU
    python benchmarks/on_gpu.py inputs/ --hashes   # on a CPU: what the pairings should give (pairs.json)
    python benchmarks/on_gpu.py inputs/ --plan     # the tasks and how long they should take
    PYTHONPATH=inputs/packages:. python benchmarks/on_gpu.py inputs/ --minutes 9 --out on-gpu.json
    tar xf on-gpu-samples.tar.gz -C inputs/        # then, where RDKit is:
    python benchmarks/on_gpu.py inputs/ --stages evaluation --out on-gpu.json

The stages, in this order:

    pairing    the data sets of the paper in full, by `pairflow.pair`; the bytes are compared with pairs.json
    one-hot    the engine beside matrix products of one-hot rows in torch, in turns (see gpu_pairing.py)
    pieces     packing, compilation and kernels apart, also in blocks of other sizes, and in one step
    profile    what ncu says of one launch, where it is installed
    sanitizer  small pairings under the four tools of compute-sanitizer, where it is installed
    tests      the tests that need a GPU
    speed      rows per second in training and sampling of the paper's networks, in bf16 and float32, with
               torch.compile, with channels-last memory (see compile.py)
    training   udlm, random and pairflow on QM9 with equal numbers of iterations, by the workflow's own steps;
               the samples go into one archive beside the record
    evaluation of these samples, only if `--stages` asks for it: it needs RDKit, and no GPU

The machine with the GPU needs this repository, torch, CuPy, Numba, SciPy, pandas and PyArrow; all else is in
`inputs/`, 56 MB, for the version of Python that `--python` names. Given again, the command leaves out what is
finished, and a training resumes from its last state; a task that needs more time than is left is not started.
`--toy` does it all on a CPU in seconds, at sizes that measure nothing.
"""

import hashlib
import json
import multiprocessing
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import click
import compile as variants
import gpu_pairing
import numpy as np
import pairing
import torch
import torch._dynamo  # which optimisers import when they are first used: once, not in every process

import pairflow
from pairflow.artifacts import atomic, read_table
from pairflow.cli import main as pairflow_command
from pairflow.config import Experiment
from pairflow.config.file import read
from pairflow.data.source import DatasetSize
from pairflow.estimate import measure
from pairflow.pairing.pair import Pairer
from pairflow.plan.jobs import Job, jobs
from pairflow.plan.work import needed

HERE = Path(__file__).parent
EXPERIMENTS = read(HERE.parent / "workflow_config.yaml").experiments
HASHES = HERE / "pairs.json"
PAPER = ("qm9", "zinc250k", "mnist_binary", "cifar10")  # experiments
# What pairflow and its tests import beside the packages that the machine with the GPU has.
PACKAGES = (
    *("annotated-types", "click", "pydantic", "pydantic-core", "pyyaml", "tqdm", "typing-inspection"),
    *("packaging", "pygments", "safetensors", "typing-extensions"),
    *("pytest", "pytest-timeout", "iniconfig", "pluggy"),
)
SANITIZERS = ("memcheck", "racecheck", "synccheck", "initcheck")  # racecheck sees shared memory only
PROFILED = ("qm9", "mnist_binary")  # many symbols and few
METHODS = ("udlm", "random", "pairflow")
TRAINING = [  # rules and methods, in their order
    *(("pair", method) for method in METHODS[1:]),
    *((rule, method) for rule in ("train", "sample") for method in METHODS),
]
EVALUATION = [("describe_molecules", None), *(("evaluate", method) for method in METHODS)]
TRAINING_SECONDS = 450  # of the three trainings together
STOPPING_SECONDS = 60  # a training that is told to stop saves its state in less
MOST_SECONDS = 540  # of a task: some machines end a command after ten minutes
ARCHIVE_BYTES = 16 << 20


class Skipped(Exception):
    """A task cannot be done here; the text says why."""


@dataclass
class Stint:
    """Where the inputs are, what has been recorded, and whether sizes are toys."""

    folder: Path
    out: Path
    toy: bool
    iterations: int | None
    record: dict[str, Any]

    @property
    def device(self) -> str:
        return "cpu" if self.toy else "cuda"

    def pair(self, tokens: np.ndarray, symbols: int, steps: int, **options: Any) -> np.ndarray:
        """Algorithm 1 on the GPU, as a user calls it."""
        options = {"backend": "cpu" if self.toy else "gpu", "progress": False, **options}
        return pairflow.pair(tokens, vocabulary_size=symbols, steps=steps, **options)

    def result(self, task: str) -> dict[str, Any] | None:
        """What a finished task has found."""
        entry = self.record["tasks"].get(task, {})
        return entry["result"] if entry.get("status") == "done" else None


class Task(NamedTuple):
    """One piece of work, recorded under `stage/name`; `seconds` is what an H200 should take.

    A task that takes more than `limit` is stopped, so that it leaves time for the others. One that does not
    resume is only started if it has its seconds.
    """

    stage: str
    name: str
    seconds: float
    work: Callable[[Stint], dict[str, Any]]
    resumes: bool = False

    @property
    def key(self) -> str:
        return f"{self.stage}/{self.name}"

    @property
    def limit(self) -> float:
        return min(MOST_SECONDS, 60 + 3 * self.seconds)


def tasks() -> Iterator[Task]:
    """All tasks, what matters most first."""
    for name, seconds in zip(PAPER, (30, 60, 30, 40), strict=True):
        yield Task("pairing", name, seconds, partial(pair_in_full, name))
    yield Task("pairing", "cifar10 of 100,000 rows", 120, pair_many_images)
    for name in PAPER:
        yield Task("one-hot", name, 30, partial(beside_one_hot, name))
    for name in PAPER:
        yield Task("pieces", name, 45 if name in PROFILED else 15, partial(engine_pieces, name))
    for name in PROFILED:
        yield Task("profile", name, 45, partial(profile, name))
    for tool in SANITIZERS:
        yield Task("sanitizer", tool, 30, partial(sanitize, tool))
    yield Task("tests", "pytest", 120, gpu_tests)
    for name in PAPER:
        yield Task("speed", name, 20, partial(network_speed, name))
        yield Task("speed", f"{name}, variants", 20, partial(side_by_side, name, False))
    for name in ("qm9", "cifar10"):  # a transformer and a U-Net
        yield Task("speed", f"{name}, compiled", 60, partial(side_by_side, name, True))
    yield Task("training", "scale", 1, training_scale)
    for rule, method in TRAINING:
        seconds = TRAINING_SECONDS / len(METHODS) if rule == "train" else 20
        yield Task("training", f"{rule} {method}", seconds, partial(run_jobs, rule, method), rule == "train")
    yield Task("training", "archive", 5, archive)
    for rule, method in EVALUATION:
        name = f"{rule} {method}" if method else rule
        yield Task("evaluation", name, 100, partial(run_jobs, rule, method))


# ---- the command


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The record (JSON).")
@click.option(
    "--minutes", type=click.FloatRange(min=0), default=30, show_default=True, help="Time for all tasks."
)
@click.option("--stages", help="Only these stages, separated by commas.")
@click.option(
    "--iterations", type=click.IntRange(1), help="Of each training [default: what takes ten minutes]."
)
@click.option("--plan", is_flag=True, help="Print the tasks and the seconds they should take.")
@click.option(
    "--prepare",
    is_flag=True,
    help="Write the data sets and packages into FOLDER; needs RDKit and the raw data.",
)
@click.option("--python", help="The version of Python on the machine with the GPU [default: this one's].")
@click.option(
    "--hashes", is_flag=True, help="Pair the data sets on the CPU and write the hashes to pairs.json."
)
@click.option("--toy", is_flag=True, help="Tiny data and networks on a CPU, as a test of this script.")
def main(folder: Path, out: Path | None, minutes, stages, iterations, plan, prepare, python, hashes, toy):
    """Measure on a GPU what FOLDER has been prepared for."""
    asked = set(stages.split(",")) if stages else {task.stage for task in tasks()} - {"evaluation"}
    chosen = [task for task in tasks() if task.stage in asked]
    if not chosen:
        raise click.ClickException(f"--stages: {stages} names no stage")
    out = out or HERE / "records" / f"on-gpu-{datetime.now(UTC).date()}.json"
    stint = Stint(folder, out, toy, iterations, _read_record(out, toy))
    if prepare or (toy and not folder.exists()):
        prepare_inputs(stint)
        if not toy:
            fetch_packages(folder / "packages", python or platform.python_version())
    if hashes:
        write_hashes(stint)
    if plan:
        show_plan(stint, chosen)
    elif not (prepare or hashes):
        run(stint, chosen, minutes * 60)


def _read_record(out: Path, toy: bool) -> dict[str, Any]:
    if not out.is_file():
        return {"toy": toy, "machines": {}, "tasks": {}}
    record = json.loads(out.read_text(encoding="utf-8"))
    if record["toy"] != toy:
        raise click.ClickException(f"{out}: expected a record {'with' if toy else 'without'} --toy")
    return record


def show_plan(stint: Stint, chosen: list[Task]) -> None:
    """Print the tasks; what is finished takes no time."""
    for task in chosen:
        entry = stint.record["tasks"].get(task.key, {})
        print(f"{task.key:44} {task.seconds:6.0f} s  {entry.get('status', '')}")
    left = sum(task.seconds for task in chosen if stint.result(task.key) is None)
    print(f"{'together, without what is done':44} {left:6.0f} s")


def run(stint: Stint, chosen: list[Task], seconds: float) -> None:
    """Do what is not done yet, in processes of their own, until the time is up."""
    deadline = time.monotonic() + seconds
    if stint.toy:
        small_pairings("cpu")  # compiles, or loads what was compiled, for all processes that follow
    _, machine = _in_process(_machine, stint, seconds)
    name = machine.get("gpu") or machine.get("processor") or "unknown"
    stint.record["machines"][name] = machine
    for task in chosen:
        left = deadline - time.monotonic()
        if stint.result(task.key) is not None or left < (1 if task.resumes else task.seconds):
            continue
        started = time.perf_counter()
        status, result = _in_process(task.work, stint, min(left, task.limit))
        stint.record["tasks"][task.key] = {
            "status": status,
            "seconds": round(time.perf_counter() - started, 3),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": machine.get("commit"),
            "machine": name,
            "result": result,
        }
        with atomic(stint.out) as [part]:
            part.write_text(json.dumps(stint.record, indent=1) + "\n", encoding="utf-8")
        print(f"{task.key}: {status}, {json.dumps(result)[:300]}", flush=True)


def _in_process(work: Callable, stint: Stint, seconds: float) -> tuple[str, dict[str, Any]]:
    """Status and result of work in a process of its own, which starts as a copy of this one (no CUDA yet).

    Its output goes to a file beside the record. When the time is up it is asked to stop, and then made to.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, stint, sender))
    process.start()
    sender.close()
    answer = ("stopped", {"reason": f"it was given {seconds:.0f} s"})
    try:
        if receiver.poll(seconds):
            answer = receiver.recv()
    except EOFError:
        answer = ("failed", {"reason": "the process ended without an answer"})
    finally:
        process.join(1)
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.is_alive():
                os.killpg(process.pid, number)
                process.join(STOPPING_SECONDS)
    return answer


def _child(work: Callable, stint: Stint, sender) -> None:
    os.setsid()  # it is stopped together with the processes that it starts
    with stint.out.with_suffix(".log").open("a") as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
    try:
        sender.send(("done", work(stint)))
    except Skipped as reason:
        sender.send(("skipped", {"reason": str(reason)}))
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        sender.send(("failed", {"reason": f"{type(error).__name__}: {error}"[:2000]}))


def _machine(stint: Stint) -> dict[str, Any]:
    """The machine, the libraries, the commit, and the driver where there is a GPU."""
    facts = pairing.machine()
    with suppress(OSError):  # there is no git
        facts["commit"] = pairing.commit()
    if not stint.toy:
        query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        with suppress(OSError):
            facts["nvidia-smi"] = subprocess.run(
                query, capture_output=True, text=True, check=False
            ).stdout.strip()
    return facts


# ---- inputs


def prepare_inputs(stint: Stint) -> None:
    """Write the token rows of the data sets, and the data of the experiment that is trained."""
    stint.folder.mkdir(parents=True, exist_ok=True)
    for job in jobs(stint.folder, _reduced(EXPERIMENTS["qm9"], 1, stint.toy)):
        if job.rule == "preprocess":
            pairflow_command(_arguments(job), standalone_mode=False)
    for name in PAPER:
        tokens, symbols, shape = (_toy_rows if stint.toy else _paper_rows)(name)
        np.savez_compressed(stint.folder / f"{name}.npz", tokens=tokens, symbols=symbols, shape=shape)
        print(f"{name}: {tokens.shape}, K = {symbols}")
    size = sum(path.stat().st_size for path in stint.folder.rglob("*") if path.is_file())
    print(f"{stint.folder}: {size / 1e6:.1f} MB")


def fetch_packages(folder: Path, python: str) -> None:
    """Unpack the versions of `PACKAGES` that envs/requirements.txt pins, for another Python on Linux."""
    shutil.rmtree(folder, ignore_errors=True)
    pinned = re.findall(r"^([a-z0-9-]+)==([^ ;]+)", (HERE.parent / "envs/requirements.txt").read_text(), re.M)
    wanted = [f"{name}=={version}" for name, version in pinned if name in PACKAGES]
    options = [
        "--no-deps",
        "--no-compile",
        "--only-binary=:all:",
        "--python-version",
        python,
        "--target",
        str(folder),
    ]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *options, *wanted], check=True)


def _paper_rows(name: str) -> tuple[np.ndarray, int, tuple[int, ...]]:
    """Tokens (M, N), K, and (C, H, W) of images; of CIFAR-10 the first 10,000 images."""
    if name == "mnist_binary":
        return pairing.read_digits(), 2, (1, 28, 28)
    if name == "cifar10":
        return _cifar10(Path(os.environ["PAIRFLOW_DATA_DIR"])), 256, (3, 32, 32)
    return *pairing.read_molecules(name, EXPERIMENTS[name].data.length), ()


def _cifar10(raw: Path) -> np.ndarray:
    """(10000, 3072) in channel-height-width order, as the workflow has it."""
    subset = raw / "cifar10_subset.npz"
    if subset.is_file():
        images = np.load(subset)["x_train"]
    else:
        from torchvision.datasets import CIFAR10

        images = CIFAR10(raw, download=True).data
    return images[:10_000].transpose(0, 3, 1, 2).reshape(10_000, -1)


def _toy_rows(name: str) -> tuple[np.ndarray, int, tuple[int, ...]]:
    shape = {"mnist_binary": (1, 4, 4), "cifar10": (3, 4, 4)}.get(name, ())
    symbols = {"mnist_binary": 2, "cifar10": 16}.get(name, 8)
    return pairing.clusters(100, int(np.prod(shape)) if shape else 12, symbols), symbols, shape


def _load(stint: Stint, name: str) -> tuple[np.ndarray, int, tuple[int, ...]]:
    with np.load(stint.folder / f"{name}.npz") as file:
        return file["tokens"], int(file["symbols"]), tuple(map(int, file["shape"]))


# ---- pairings


def gpu_tests(stint: Stint) -> dict[str, Any]:
    """The tests with the mark `gpu`; the files that have none may need packages that are not here."""
    tests = HERE.parent / "tests"
    files = [path for path in tests.rglob("test_*.py") if "mark.gpu" in path.read_text(encoding="utf-8")]
    if stint.toy:
        return {"in place of": f"the tests in {len(files)} files"}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-W", "default", "-p", "no:cacheprovider"]
    run = subprocess.run([*command, *files], capture_output=True, text=True, check=False, cwd=HERE.parent)
    print(run.stdout, run.stderr)
    if run.returncode:
        raise RuntimeError(run.stdout[-1500:])
    summary = run.stdout.splitlines()[-1]
    if not re.search(r"\d+ passed", summary):
        raise RuntimeError(f"no test passed: {summary}")
    return {"summary": summary}


def small_pairings(backend: str) -> None:
    """Pairings that take all ways through the kernels, for a tool that makes them a thousand times slower."""
    for rows, length, symbols, steps in ((300, 40, 8, 4), (100, 74, 300, 3), (100, 100, 2, 4)):
        data = pairing.clusters(rows, length, symbols)
        rule = {"vocabulary_size": symbols, "steps": steps, "progress": False}
        expected = pairflow.pair(data, backend="reference", **rule)
        assert np.array_equal(pairflow.pair(data, backend=backend, **rule), expected), (rows, length, symbols)


def sanitize(tool: str, stint: Stint) -> dict[str, Any]:
    """Small pairings under a tool of compute-sanitizer; what it finds is an error."""
    if stint.toy:
        small_pairings("cpu")
        return {"in place of": f"compute-sanitizer --tool {tool}"}
    program = shutil.which("compute-sanitizer", path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
    if program is None:
        raise Skipped("compute-sanitizer is not installed")
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import on_gpu; on_gpu.small_pairings('gpu')"
    command = [program, "--tool", tool, "--error-exitcode", "9", sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    print(run.stdout, run.stderr)
    if run.returncode:
        raise RuntimeError((run.stdout + run.stderr)[-1500:])
    return {"summary": run.stdout.splitlines()[-1]}


def pair_in_full(name: str, stint: Stint) -> dict[str, Any]:
    """Seconds of a whole pairing, as a user calls it, and whether its bytes are the CPU's."""
    tokens, symbols, _ = _load(stint, name)
    steps = EXPERIMENTS[name].pairing.steps
    result = _paired(stint, tokens, symbols, steps, turns=3)
    known = _hashes().get(_hashed_name(stint, name))
    result["equals the CPU"] = known and known == {key: result[key] for key in known}
    if known and not result["equals the CPU"]:
        raise RuntimeError(f"other bytes than on the CPU: {result}, expected {known}")
    return result


def pair_many_images(stint: Stint) -> dict[str, Any]:
    """As many rows as CIFAR-10 with its mirror images has: each image mirrored or not and moved five ways."""
    tokens, symbols, shape = _load(stint, "cifar10")
    images = tokens.reshape(-1, *shape)
    both = np.concatenate([images, images[..., ::-1]])
    moved = np.concatenate([np.roll(both, pixels, axis=-1) for pixels in range(5)])
    rows, steps = moved.reshape(len(moved), -1), EXPERIMENTS["cifar10"].pairing.steps
    few = [stint.pair(rows, symbols, steps, rows=(0, 4), **where) for where in ({}, {"backend": "cpu"})]
    if not np.array_equal(*few):
        raise RuntimeError("other bytes than on the CPU")
    return _paired(stint, rows, symbols, steps, turns=1) | {"rows compared with the CPU": len(few[0])}


def _paired(stint: Stint, tokens: np.ndarray, symbols: int, steps: int, turns: int) -> dict[str, Any]:
    pair = partial(stint.pair, tokens, symbols, steps)
    first = pairing.seconds_of(lambda: pair(rows=(0, 64)))  # compiles, or loads what was compiled
    seconds = []
    for _ in range(turns):
        started = time.perf_counter()
        sources = pair()
        seconds.append(time.perf_counter() - started)
    comparisons = len(tokens) ** 2 * steps
    return {
        "first_call_seconds": first,
        "seconds": pairing.spread(seconds),
        "pairs_per_second_and_step": comparisons / float(np.median(seconds)),
        **_hash(tokens, sources, steps),
    }


def _hash(tokens: np.ndarray, sources: np.ndarray, steps: int) -> dict[str, Any]:
    """Which pairing this is, and what it gave."""
    tokens_hash, sources_hash = (hashlib.sha256(rows.tobytes()).hexdigest() for rows in (tokens, sources))
    return {"shape": list(tokens.shape), "steps": steps, "tokens": tokens_hash, "sources": sources_hash}


def _hashes() -> dict[str, Any]:
    return json.loads(HASHES.read_text(encoding="utf-8"))


def _hashed_name(stint: Stint, name: str) -> str:
    return f"toy {name}" if stint.toy else name


def write_hashes(stint: Stint) -> None:
    """Pair the data sets on the CPU and write the hashes; what is in the file already is not made again."""
    for name in PAPER:
        if (key := _hashed_name(stint, name)) in _hashes():
            continue
        tokens, symbols, _ = _load(stint, name)
        steps = EXPERIMENTS[name].pairing.steps
        sources = pairflow.pair(tokens, vocabulary_size=symbols, steps=steps, backend="cpu")
        entry = _hash(tokens, sources, steps)
        with atomic(HASHES) as [part]:
            part.write_text(json.dumps({**_hashes(), key: entry}, indent=1) + "\n", encoding="utf-8")
        print(f"{key}: {entry['sources']}")


def beside_one_hot(name: str, stint: Stint) -> dict[str, Any]:
    """Pairs per second and step of the engine, and of torch by one-hot products, on as many keys as fit."""
    tokens, symbols, _ = _load(stint, name)
    free = 1 << 30 if stint.toy else torch.cuda.mem_get_info()[0]
    keys = min(len(tokens), int(free / 3 / (4 * tokens.shape[1] * symbols))) // 8 * 8
    data, steps = pairing.sample(tokens, keys), EXPERIMENTS[name].pairing.steps
    options = {"threads": None, "progress": False, "backend": "cpu" if stint.toy else "gpu"}
    pairer = Pairer(data, vocabulary_size=symbols, steps=steps, subsets=1, seed=0, **options)
    if stint.toy:
        gpu_pairing.BATCHES = (24, 32)
    return {"keys": keys, **gpu_pairing.beside_one_hot(data, symbols, pairer, steps, stint.device)}


def engine_pieces(name: str, stint: Stint) -> dict[str, Any]:
    """Seconds of compilation, packing and kernels, of QM9 and MNIST-Binary also in blocks of other sizes."""
    if stint.toy and (name != "qm9" or shutil.which("g++") is None):
        return {"in place of": "the engine in pieces"}
    tokens, symbols, _ = _load(stint, name)
    device, clock = gpu_pairing.device_and_clock(stint.toy, stint.folder.resolve())
    if stint.toy:
        gpu_pairing.WARPS, gpu_pairing.RESIDENT = (2,), (3,)
    measured = gpu_pairing.variants if name in PROFILED else gpu_pairing.as_it_is
    return measured(tokens, symbols, EXPERIMENTS[name].pairing.steps, device, clock)


def profile(name: str, stint: Stint) -> dict[str, Any]:
    """What ncu says of a launch with every block busy, in a file beside the record."""
    if stint.toy:
        return {"in place of": "ncu"}
    program = shutil.which("ncu", path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
    if program is None:
        raise Skipped("ncu is not installed")
    options = ["--clock-control", "none", "--set", "full", "--kernel-name", "walk"]
    options += ["--launch-skip", "1", "--launch-count", "1"]
    script = [HERE / "gpu_pairing.py", stint.folder / f"{name}.npz", str(EXPERIMENTS[name].pairing.steps)]
    command = [program, *options, sys.executable, *script]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError((run.stdout + run.stderr)[-1500:])
    text = stint.out.with_name(f"{stint.out.stem}-ncu-{name}.txt")
    text.write_text(run.stdout, encoding="utf-8")
    return {"file": text.name}


# ---- networks


def network_speed(name: str, stint: Stint) -> dict[str, Any]:
    """Seconds of an iteration, and of a row and a sampling step, as the workflow does them."""
    experiment, size = _network(stint, name)
    batch, results = experiment.training.batch_size, {}
    for work in needed(jobs(Path(), experiment), experiment, size, stint.device):
        if (work.kind, work.batch) in (("train", batch), ("draw", 0)):
            request = {
                "work": vars(work),
                "loss": experiment.training.loss,
                "shape": size.shape,
                "tokens": None,
            }
            rate = measure.main(request)
            results[work.kind] = {**rate, "rows_per_second": max(1, work.batch) / rate["seconds"]}
    return results


def side_by_side(name: str, compiled: bool, stint: Stint) -> dict[str, Any]:
    """Rows per second of a training's iterations, of the network as it is and of variants, in turns."""
    experiment, size = _network(stint, name)
    settings, batch = experiment.network.model_dump(mode="json"), experiment.training.batch_size
    case = variants.Case(settings, size.length, size.vocabulary_size, batch, size.shape)
    if compiled and stint.toy:
        return {"in place of": "torch.compile"}
    kinds = [kind for kind in variants.kinds(case) if kind == "plain" or (kind == "compiled") == compiled]
    return variants.side_by_side(case, kinds, 2, torch.device(stint.device))


def _network(stint: Stint, name: str) -> tuple[Experiment, DatasetSize]:
    """The experiment with its network, and the sizes of its data."""
    tokens, symbols, shape = _load(stint, name)
    size = DatasetSize(len(tokens), 0, symbols, tokens.shape[1], shape or None)
    variants.SECONDS = 2.0
    if not stint.toy:
        return EXPERIMENTS[name], size
    measure.SECONDS = variants.SECONDS = 0.01
    return _toy_network(EXPERIMENTS[name], bool(shape)), size


def _toy_network(experiment: Experiment, images: bool) -> Experiment:
    values = experiment.model_dump(mode="json")
    small = {"channels": 8, "multipliers": [1, 2], "attention": []} if images else {"width": 16, "heads": 2}
    values["network"] |= {"blocks": 1, **small}
    values["training"]["batch_size"] = 4
    return Experiment.model_validate(values)


def _reduced(experiment: Experiment, iterations: int, toy: bool) -> Experiment:
    """The experiment with one seed, three methods, two trials and fewer iterations; else as it is.

    The warm-up and the average of the weights shrink with the iterations.
    """
    values = EXPERIMENTS["demo"].model_dump(mode="json") if toy else experiment.model_dump(mode="json")
    training = values["training"]
    if toy:
        values["data"]["training_rows"] = 100
        values["network"] |= {"width": 16, "blocks": 1}
        training["batch_size"] = 8
    training |= {
        "iterations": iterations,
        "warmup_iterations": min(training["warmup_iterations"], iterations // 20),
        "ema_decay": min(training["ema_decay"], max(0.0, 1 - 10 / iterations)),
        "validate_every": max(1, iterations // 4),
    }
    sampling = {"samples": 8, "nfe": [1]} if toy else {}
    values |= {"seeds": [0], "methods": list(METHODS), "scale": "reduced", "correlation": None}
    values["evaluations"] = {"main": values["evaluations"]["main"] | {"trials": 2} | sampling}
    values["pairing"]["coverage"] = False
    return Experiment.model_validate(values)


def training_scale(stint: Stint) -> dict[str, Any]:
    """How many iterations: as many as three trainings do in their time, by the speed that was measured."""
    full = EXPERIMENTS["qm9"].training.iterations
    speed = stint.result("speed/qm9")
    iterations = stint.iterations or (2 if stint.toy else None)
    if iterations is None and speed:
        iterations = int(TRAINING_SECONDS / len(METHODS) / speed["train"]["seconds"])
    if iterations is None:
        raise Skipped("the stage speed has to measure QM9 first, or set --iterations")
    return {
        "iterations": min(full, iterations),
        "of": full,
        "methods": list(METHODS),
        "seeds": [0],
        "trials": 2,
    }


def run_jobs(rule: str, method: str | None, stint: Stint) -> dict[str, Any]:
    """The jobs of a rule and a method, by the workflow's commands; of evaluations, the means over trials."""
    scale = stint.result("training/scale")
    if scale is None:
        raise Skipped("the number of iterations is not known")
    if rule in ("describe_molecules", "evaluate") and find_spec("rdkit") is None:
        raise Skipped("RDKit is not installed; the same command can do this on another machine")
    experiment = _reduced(EXPERIMENTS["qm9"], scale["iterations"], stint.toy)
    results = {}
    for job in jobs(stint.folder, experiment):
        if (job.rule, job.method) != (rule, method):
            continue
        if lacking := [path for path in job.needed if not path.exists()]:
            raise Skipped(f"{lacking[0]} has not been made")
        pairflow_command(_arguments(job), standalone_mode=False)
        name = f"NFE {job.nfe}" if job.nfe else job.record.name
        results[name] = (
            _means(job.record) if rule == "evaluate" else str(job.record.relative_to(stint.folder))
        )
    return results


def archive(stint: Stint) -> dict[str, Any]:
    """The samples of all methods in one file beside the record, to be unpacked in FOLDER elsewhere."""
    path = stint.out.with_name(f"{stint.out.stem}-samples.tar.gz")
    files = sorted((stint.folder / "seed0" / "samples").rglob("*.*"))
    if not files:
        raise Skipped("there are no samples")
    with tarfile.open(path, "w:gz") as tar:
        for file in files:
            tar.add(file, file.relative_to(stint.folder))
    if path.stat().st_size > ARCHIVE_BYTES:
        raise RuntimeError(f"{path}: expected at most {ARCHIVE_BYTES >> 20} MB, found {path.stat().st_size}")
    return {"file": path.name, "samples": len(files), "bytes": path.stat().st_size}


def _means(metrics: Path) -> dict[str, float]:
    rows = read_table(metrics, "metrics")[0].to_pandas()
    return rows.groupby("metric")["value"].mean().loc[["valid", "unique", "novel"]].to_dict()


def _arguments(job: Job) -> list[str]:
    """The command line of a job, as in rules/: its files have the names of the options."""
    out = {"pair": "pairs", "sample": "samples", "describe_molecules": "molecules", "evaluate": "metrics"}
    files = {**job.outputs, **job.inputs}
    files = {"out" if name == out.get(job.rule) else name: path for name, path in files.items()}
    if job.rule == "evaluate":
        files |= {"molecules": job.inputs["molecules"], "samples": job.inputs["samples"]}
    if job.rule == "sample":
        files = {"model": job.inputs["model"].parent, "out": job.outputs["samples"]}
    options = {name: str(path) for name, path in files.items()}
    if job.settings:
        options["settings"] = job.settings.model_dump_json()
    if job.evaluation and job.rule == "evaluate":
        options["evaluation"] = job.evaluation
    kind = ["molecules"] if job.rule in ("preprocess", "evaluate") else []
    return [job.rule, *kind, *(text for name, value in options.items() for text in (f"--{name}", value))]


if __name__ == "__main__":
    main()
