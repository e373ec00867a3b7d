"""Shared by all tests: the folder of real data sets, what many tests run and refuse."""

import contextlib
import importlib
import multiprocessing
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import forks
import miniatures
import numpy as np
import pyarrow as pa
import pytest
import torch
from click.testing import CliRunner, Result
from in_ci import IN_CI
from torch_threads import threads_restored

from pairflow.artifacts import Metadata, sole_writer, token_column, write_table
from pairflow.cli import STEPS, module_of
from pairflow.plan.calls import as_arguments
from pairflow.runtime import signals

REPOSITORY = Path(__file__).parent
THREADS = torch.get_num_threads()
# In the background of a shell Ctrl-C is ignored, also by every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
_FORKED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background of a shell ignore it
import pairflow.pairing.blocks
from pairflow.cli import main
pairflow.pairing.blocks.BLOCK = block or pairflow.pairing.blocks.BLOCK
sys.argv = ["pairflow", *arguments]
os.chdir(folder)
os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
main(arguments)
"""
_IMPORTED = [
    "pairflow.cli",
    "torch",
    "torch._dynamo",  # which optimisers import when they are first used
    "pairflow.pairing.cpu.engine",
    "pairflow.training.loop",
    "pairflow.generate.demand",
    "pairflow.report.experiment.page",
    "pairflow.kinds.molecules.measures.chemistry",
    "rdkit.Chem",
    "snakemake.cli",
    "snakemake.dag",
]


# What `make test-fast` leaves out besides tests on real data, of Snakemake and of SLURM. `make slow-tests`
# measures and writes it.
SLOW = {*(REPOSITORY / "tests/slow.txt").read_text().split()}


# The files that take longest, the longest first: begun late, one would keep a single process busy at the end.
LONGEST = ["tests/test_slurm.py", "tests/steps/test_signals.py", "tests/steps/test_run.py"]
LONGEST += ["tests/docs/test_extending.py", "tests/test_on_gpu.py", "tests/robustness/test_rules.py"]


def shuffled(items: list, seed: str) -> list:
    """The files in another order, and the tests of each, which share its fixtures."""
    chance, files = random.Random(seed), {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    return [
        item
        for path in chance.sample([*files], len(files))
        for item in chance.sample(files[path], len(files[path]))
    ]


def pytest_collection_modifyitems(items):
    """Each process begins with its share of the files whose tests take minutes: most run Snakemake or SLURM.

    pytest-xdist gives every process an equal part of the list in one piece. PAIRFLOW_TEST_ORDER chooses
    another order.
    """
    if seed := os.getenv("PAIRFLOW_TEST_ORDER"):
        items[:] = shuffled(items, seed)
    processes = int(os.getenv("PYTEST_XDIST_WORKER_COUNT", "1"))
    long: dict[Path, list] = {}
    short = []
    for item in items:
        path = item.path.relative_to(REPOSITORY)
        if item.get_closest_marker("gpu") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip("no CUDA device"))
        if SLOW & {str(path), item.nodeid.partition("[")[0]}:
            item.add_marker("slow")
        runs_workflow = {"workflow", "slurm"} & {mark.name for mark in item.iter_markers()}
        takes_minutes = runs_workflow or str(path) in LONGEST
        (long.setdefault(item.path, []) if takes_minutes else short).append(item)
    longest = [REPOSITORY / path for path in LONGEST if REPOSITORY / path in long]
    files = longest + [path for path in long if path not in longest]
    size = -(-len(items) // processes)
    items.clear()
    for number in range(processes):
        share = [item for path in files[number::processes] for item in long[path]]
        room = max(0, size - len(share))
        items += share + short[:room]
        del short[:room]
    items += short


@pytest.fixture(scope="session")
def float32_error():
    """How far float32 results may lie apart that only the order of summation sets apart.

    Relative to the largest number that is summed. Each of n additions rounds by up to eps / 2 = 6e-8, and the
    roundings of n terms in each of several layers add up like a random walk: sqrt(n layers) eps. Processors
    (AVX2, AVX-512, AMX), threads and batch sizes choose other orders. Ten times that is allowed, which was
    at least six times what was seen on any of them.
    """

    def error(terms: int, layers: int = 1) -> float:
        return 10 * float(np.finfo(np.float32).eps) * (terms * layers) ** 0.5

    return error


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets; without it a test is skipped, or fails in CI."""
    folder = os.environ.get("PAIRFLOW_DATA_DIR")
    if not folder:
        if IN_CI:
            pytest.fail("CI runs the tests on real data: set PAIRFLOW_DATA_DIR")
        pytest.skip("PAIRFLOW_DATA_DIR is not set: no real data here")
    return Path(folder)


@pytest.fixture
def token_file(tmp_path):
    """Write token rows (M, N) as a step's output; returns its path."""

    def write(name: str, tokens: np.ndarray, vocabulary_size: int, vocabulary: str = "v", **metadata):
        path = tmp_path / name
        size = {"length": tokens.shape[1], "vocabulary_size": vocabulary_size, "vocabulary": vocabulary}
        rows = pa.table({"tokens": token_column(tokens, vocabulary_size)})
        write_table(path, rows, Metadata(kind="tokens", **size, **metadata))
        return path

    return write


@pytest.fixture(autouse=True)
def leave(monkeypatch):
    """A step that gets a signal in this process ends only itself."""
    monkeypatch.setattr(signals, "leave", lambda number: sys.exit(128 + number))


@pytest.fixture(autouse=True)
def torch_threads():
    """Fails a test that leaves PyTorch another number of threads, on which later tests would stand still."""
    yield
    found = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    assert found == THREADS, f"the test left {found} threads of PyTorch, expected {THREADS}"


@pytest.fixture(scope="session")
def step():
    """Run a step in this process: its name, its files, and its options by their names, True for a flag."""

    def run(name: str, *files: object, **options: object):
        module = "benchmarks.paper.__main__" if name == "paper" else module_of(name)
        step = importlib.import_module(module).main
        with threads_restored():
            result = CliRunner().invoke(step, as_arguments(*files, **options))
        print(result.output)  # pytest shows it where a test fails
        return result

    return run


@pytest.fixture(scope="session")
def done(step):
    """Run a step to its end."""

    def run(name: str, *files: object, **options: object):
        result = step(name, *files, **options)
        assert result.exit_code == 0, result.output
        return result

    return run


@pytest.fixture(scope="session")
def refused():
    """Check that a finished step was refused: exit code 2, and on stderr one line that holds a text."""

    def check(run, step: str, text: str) -> None:
        code = run.exit_code if isinstance(run, Result) else run.returncode
        assert code == 2, run.stderr
        lines = [line for line in run.stderr.splitlines() if line and "%|" not in line]
        usage = lines[0].startswith("Usage: ")  # click's own message for an option has several lines
        assert usage or lines[0].startswith(f"pairflow {step}: error: ")
        assert usage or len(lines) == 1
        assert text in lines[-1]

    return check


@pytest.fixture(scope="session")
def miniature():
    """The configuration of a small experiment on molecules, with some of its keys replaced."""

    def values(**changes: object) -> dict:
        return {
            "description": "a few molecules through every step",
            "scale": "reduced",
            "data": {"source": "small_molecules", "length": 16, "max_heavy_atoms": 5},
            "network": {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16},
            "training": {"batch_size": 8, "iterations": 4, "learning_rate": 1e-3, "validate_every": 2},
            "methods": ["udlm"],
            "evaluations": {"main": {"nfe": [1], "samples": 16, "trials": 2}},
            **changes,
        }

    return values


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The working directory, with the shipped configuration."""
    shutil.copy(REPOSITORY / "workflow_config.yaml", tmp_path)
    shutil.copytree(REPOSITORY / "recipes", tmp_path / "recipes")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def model_files():
    """The options of a training that name the files of a model's folder."""

    def files(folder: object) -> dict[str, str]:
        names = {"model": "model.safetensors", "description": "model.json", "log": "log.parquet"}
        return {option: f"{folder}/{name}" for option, name in names.items()}

    return files


@pytest.fixture
def pairflow_command():
    """Run `python -m pairflow.steps.<step>` in a process of its own; returns the finished process."""

    def run(step: str, *arguments: object, **options):
        command = [sys.executable, "-m", module_of(step), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)

    return run


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """A folder of a name, filled by `make(folder)` once for all processes that share the tests."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, make) -> Path:
        folder, done = base / name / "made", base / name / "done"
        done.parent.mkdir(exist_ok=True)
        with sole_writer(done):
            if not done.exists():
                make(folder)
                done.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def qm9(data_dir, made_once):
    """QM9, prepared as the paper does."""
    from pairflow.kinds import source_of
    from pairflow.kinds.molecules.settings import Molecules

    def make(folder: Path) -> None:
        settings = Molecules(source="qm9", length=32)
        folder.mkdir()
        (folder / "pickle").write_bytes(pickle.dumps(source_of(settings).read(settings, progress=False)))

    return pickle.loads((made_once("qm9", make) / "pickle").read_bytes())


@pytest.fixture(scope="session")
def run_call(step):
    """Run a command of tests/miniatures.py to its end."""

    def run(call: miniatures.Call) -> None:
        done = step(call.name, *call.arguments, **call.options)
        assert done.exit_code == 0, done.output

    return run


@pytest.fixture(scope="session")
def finish(made_once, run_call):
    """The folder with the small experiment on a kind of data, all of whose commands have been run."""

    def finished(kind: str) -> Path:
        def make(folder: Path) -> None:
            folder.mkdir()
            with contextlib.chdir(folder):
                miniatures.make_sources()
                for call in miniatures.calls_of(kind):
                    run_call(call)

        return made_once(f"finished {kind}", make)

    return finished


@pytest.fixture(scope="session")
def forkserver():
    """Starts processes as forks of one that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([module_of(step) for step in (*STEPS, "sample")] + _IMPORTED)
    first = context.Process(target=int)  # waits for the imports, so that no test takes them for its own time
    first.start()
    first.join()
    return context


@pytest.fixture(scope="session")
def fork(forkserver):
    """Start `pairflow` as a process in a folder, forked from one that has imported everything: at once.

    What it says on stderr is appended to the file `errors`; `block` is the work of a block of a pairing.
    """

    def start(arguments: list[str], folder: Path, errors: Path, block: int | None = None):
        given = {"arguments": arguments, "folder": str(folder), "errors": str(errors), "block": block}
        process = forkserver.Process(target=exec, args=(_FORKED, given))
        process.start()
        return process

    return start


@pytest.fixture(scope="session")
def quick_python(forkserver, tmp_path_factory):
    """An environment whose `python -m` starts at once, for Snakemake and what its rules run."""
    folder = tmp_path_factory.mktemp("bin")
    server = forkserver.Process(target=forks.serve, args=(str(folder / "socket"),))
    server.start()
    while not (folder / "socket").exists():
        assert server.is_alive()
        time.sleep(0.01)
    forks.write_command(folder / "python", str(folder / "socket"))
    yield {**os.environ, "PAIRFLOW_DATA_DIR": "", "PATH": os.pathsep.join([str(folder), os.environ["PATH"]])}
    server.terminate()
    server.join()


@pytest.fixture(scope="session")
def snakemake(quick_python):
    """Run Snakemake with this repository's workflow in a folder; returns the finished process."""

    def run(folder: Path, *arguments: str, cores: int = 2) -> subprocess.CompletedProcess:
        workflow = ["--snakefile", str(REPOSITORY / "Snakefile"), "--cores", str(cores)]
        command = ["python", "-m", "snakemake", *workflow, *arguments]
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, env=quick_python
        )

    return run
