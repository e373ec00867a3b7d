"""The workflow on a real SLURM of one node, through its profile: one job is cancelled, one preempted.

SLURM runs in its own namespaces (mounts, processes, network, host name) under one process that dies with its
parent; the kernel then ends the others. The test touches no SLURM of the machine and leaves nothing behind.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import yaml
from in_ci import IN_CI

import pairflow
from pairflow.artifacts import read_table, token_array

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1200)]
REPOSITORY = Path(__file__).parent.parent
NEEDED = ("setpriv", "unshare", "nsenter", "ip", "munged", "slurmctld", "slurmd")
PROFILE = ("--profile", str(REPOSITORY / "profiles/slurm"))
# Snakemake asks for the states of its jobs every second. By itself it would ask ever more rarely. While it
# asks, it knows of no job that it could cancel, so a cancellation waits until it has asked, or for a
# minute: Snakemake may have failed before it had any job.
ASK = """
import time
from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor
Executor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, seconds: None)
cancel = Executor.cancel
def cancel_when_jobs_are_known(executor):
    until = time.monotonic() + 60
    while not executor.active_jobs and time.monotonic() < until:
        time.sleep(0.01)
    cancel(executor)
Executor.cancel = cancel_when_jobs_are_known
main()
"""
SNAKEMAKE = (sys.executable, "-c", ASK, "--snakefile", str(REPOSITORY / "Snakefile"), *PROFILE)
SPACES = ("--mount", "--pid", "--net", "--uts")
SAMPLES = "samples/pairflow/main/nfe1.parquet"
ITERATIONS = 6_000  # enough for the tests to meet a training while it runs

SLURM = """
ClusterName=pairflow
SlurmctldHost=localhost
SlurmUser=root
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MinJobAge=3600
# These limits give a slow machine time to answer, to start jobs and to save their states.
MessageTimeout=60
BatchStartTimeout=60
KillWait=120
GresTypes=gpu
# The node claims more cores than it has, so that jobs run side by side. Its GPUs are fictitious.
SlurmdParameters=config_overrides
NodeName=localhost CPUs=64 RealMemory=256000 Gres=gpu:2
PartitionName=research Nodes=localhost Default=YES PriorityTier=1
PartitionName=urgent Nodes=localhost PriorityTier=2
"""
GPUS = "Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n"

# munged needs --force, as only root can enter the folder. The C library cannot resolve with 127.0.0.1 only.
START = """
set -e
mount --bind "$1" /etc/slurm
hostname localhost
ip address add 127.0.0.2/8 dev lo
ip link set lo up
munged --force --key-file="$1/munge.key" --socket="$1/munge.socket" --pid-file="$1/munge.pid" \
  --log-file="$1/munge.log" --seed-file="$1/munge.seed"
slurmctld
slurmd
until sinfo --noheader --format=%t | grep -q idle; do sleep 0.1; done
echo ready
sleep infinity & wait  # as the first process, the shell adopts orphans
"""


class Cluster:
    """SLURM on one node, with its files in `folder`."""

    def __init__(self, folder: Path):
        for name in ("state", "spool"):
            (folder / name).mkdir()
        (folder / "slurm.conf").write_text(SLURM.format(folder=folder))
        (folder / "gres.conf").write_text(GPUS)
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o400)
        unshare = ("setpriv", "--pdeathsig", "KILL", "unshare", *SPACES)
        start = ("--fork", "--kill-child", "--mount-proc", "bash", "-c", START, "start", str(folder))
        with (folder / "start.log").open("w") as log:
            self.process = subprocess.Popen([*unshare, *start], stdout=subprocess.PIPE, stderr=log, text=True)
        if self.process.stdout.readline() != "ready\n":
            self.stop()
            raise RuntimeError((folder / "start.log").read_text())
        init = str(child(self.process.pid))
        self.namespace = Path(f"/proc/{init}/ns/pid").readlink()
        self.enter = ["nsenter", "--target", init, *SPACES]

    def command(self, *command: str) -> str:
        """The output of a SLURM command."""
        return subprocess.run([*self.enter, *command], check=True, capture_output=True, text=True).stdout

    def jobs(self) -> dict[str, list[dict[str, str]]]:
        """Rule and wildcards -> its jobs in order of submission, with the fields that `scontrol` shows."""
        jobs: dict[str, list[dict[str, str]]] = {}
        for line in self.command("scontrol", "show", "job", "--oneliner").splitlines():
            job = dict(field.split("=", 1) for field in line.split() if "=" in field)
            jobs.setdefault(job.get("Comment", "").removeprefix("rule_"), []).append(job)
        return {name: sorted(group, key=lambda job: int(job["JobId"])) for name, group in jobs.items()}

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


def processes(namespace: Path) -> list[str]:
    """The command lines of the processes in a namespace."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "ns/pid").readlink() == namespace:
                commands.append((process / "cmdline").read_text().replace("\0", " "))
    return commands


def child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())


def wait_until(condition):
    """The first true value that `condition` returns; the test's time limit bounds the wait."""
    while not (value := condition()):
        time.sleep(0.1)
    return value


def require_slurm() -> None:
    """Skip the test with a reason where there is no SLURM; in CI, fail."""
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing or not Path("/etc/slurm").is_dir():
        reason = f"no SLURM here: apt-get install slurm-wlm munge iproute2 ({', '.join(missing)} not found)"
        pytest.fail(reason) if IN_CI else pytest.skip(reason)
    if subprocess.run(["unshare", *SPACES, "--fork", "true"], capture_output=True).returncode:
        pytest.skip("only root may create the namespaces that SLURM runs in")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    require_slurm()
    before = sorted(Path("/etc/slurm").iterdir())
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    yield cluster
    cluster.stop()
    wait_until(lambda: not processes(cluster.namespace))
    assert sorted(Path("/etc/slurm").iterdir()) == before


class Run:
    """A run of Snakemake in a folder, with the profile, on the cluster."""

    def __init__(self, cluster: Cluster, folder: Path, *targets: str):
        inside = [*cluster.enter, f"--wd={folder}", "env", "--default-signal=INT", "PAIRFLOW_DATA_DIR="]
        shards = ["--config", "pair_shards=2"]
        with (folder / "output").open("w") as output:
            self.process = subprocess.Popen(
                [*inside, *SNAKEMAKE, *shards, "--", *targets], stdout=output, stderr=subprocess.STDOUT
            )
        self.output = folder / "output"

    def wait_until(self, condition):
        """The first true value that `condition` returns; fails if Snakemake ends before."""
        wait_until(lambda: condition() or self.process.poll() is not None)
        assert self.process.poll() is None, self.output.read_text()
        return condition()

    def interrupt(self) -> int:
        """Send Ctrl-C; return the exit code."""
        os.kill(child(self.process.pid), signal.SIGINT)
        return self.process.wait()

    def finish(self) -> None:
        assert self.process.wait() == 0, self.output.read_text()


@pytest.fixture
def folder(tmp_path, miniature):
    """A folder with the configuration of a miniature that trains for long enough."""
    training = {"batch_size": 32, "learning_rate": 1e-3, "iterations": ITERATIONS}
    training["validate_every"] = ITERATIONS
    main = {"nfe": [1], "samples": 16, "trials": 2, "methods": ["pairflow"]}
    steps = {"pairing": {"steps": 5}, "training": training, "evaluations": {"main": main}}
    mini = miniature(methods=["udlm", "pairflow"], **steps)
    (tmp_path / "workflow_config.yaml").write_text(yaml.safe_dump({"experiments": {"mini": mini}}))
    return tmp_path


@pytest.fixture
def start(cluster, folder):
    """A function that starts a `Run` in a folder with the miniature's configuration."""
    runs: list[Run] = []

    def start(*targets: str) -> Run:
        runs.append(Run(cluster, folder, *targets))
        return runs[-1]

    yield start
    for run in runs:  # the cluster ends what these processes have started
        run.process.kill()
        run.process.wait()


class Training:
    """The progress of a training, read from the files of its run."""

    def __init__(self, root: Path, method: str):
        self.log, self.states = root / f"logs/seed0/train-{method}.log", root / "seed0/resume/train"
        self.method = method

    def iterations(self) -> list[int]:
        """The iterations that the progress bar in the log has shown."""
        text = self.log.read_text() if self.log.exists() else ""
        return [int(number) for number in re.findall(rf"\| (\d+)/{ITERATIONS} ", text)]

    def beyond(self, iteration: int) -> bool:
        return any(done > iteration for done in self.iterations())

    def saved(self) -> int:
        """The iteration of the newest saved state; 0 without one."""
        states = self.states.glob(f"{self.method}-*/[0-9]*.state")
        return max((int(state.stem) for state in states), default=0)


def test_the_profile_sets_the_gpus_of_every_rule_that_can_use_one():
    rules = "\n".join(path.read_text() for path in (REPOSITORY / "rules").glob("*.smk"))
    start = r"^ *(?:use )?rule (?:\w+ as )?"
    blocks = re.findall(rf"{start}(\w+)(?: with)?:\n(.*?)(?=^\S|{start}|\Z)", rules, re.M | re.S)
    with_gpu = {name for name, block in blocks if re.search(r"^ +gpu=", block, re.M)}
    with_gpu |= {"evaluate_images", "evaluate_text", "floor_images", "floor_text"}  # of those of each kind
    used = re.findall(r"^ *use rule (\w+) as (\w+)", rules, re.M)
    with_gpu |= {new for old, new in used if old in with_gpu}
    profile = yaml.safe_load((REPOSITORY / "profiles/slurm/config.yaml").read_text())
    assert {name for name, given in profile["set-resources"].items() if "gpu" in given} == with_gpu


def test_jobs_ask_for_their_gpus_their_memory_and_their_time(snakemake, folder):
    """On a GPU a job asks for the number of its rule, on a CPU for the memory of its estimate."""
    limits = ["--set-resources", "train:gpu=2", "sample:gpu=0", "--resources", "runtime=600"]
    run = snakemake(folder, *PROFILE, "--dry-run", *limits, "--", f"results/mini/seed0/{SAMPLES}")
    plan = run.stdout + run.stderr
    assert run.returncode == 0, plan
    train = r"[^\n]*mem_mb=6000,[^\n]* gpu=2,[^\n]* runtime=600\n"
    assert re.search(rf"rule train:.*?resources: {train}", plan, re.S)
    assert re.search(r"rule sample:.*?resources: [^\n]*mem_mb=1000,[^\n]* gpu=0, runtime=\d+\n", plan, re.S)


def test_the_plain_script_of_the_documentation_pairs_in_an_array_of_jobs(cluster, tmp_path):
    page = (REPOSITORY / "docs/cluster.md").read_text()
    [script] = re.findall(r"^(#!/bin/bash\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "pair.sh").write_text(script)
    rows = np.random.default_rng(0).integers(0, 27, (100, 6))
    np.save(tmp_path / "rows.npy", rows)
    cluster.command(f"--wd={tmp_path}", "sbatch", "--wait", "pair.sh")
    [gather] = re.findall(r"`(pairflow gather [^`]+)`", page)
    subprocess.run(gather, shell=True, check=True, cwd=tmp_path)
    table, _ = read_table(tmp_path / "pairs.parquet", "pairs")
    sources = pairflow.pair(rows, vocabulary_size=27, progress=False)
    np.testing.assert_array_equal(token_array(table["x0"]), sources)


def test_the_workflow_finishes_though_trainings_are_stopped_cancelled_and_preempted(cluster, start, tmp_path):
    root = tmp_path / "results/mini"
    udlm, pairflow = Training(root, "udlm"), Training(root, "pairflow")

    model, samples = (f"results/mini/seed0/{path}" for path in ("models/udlm/model.safetensors", SAMPLES))
    run = start(model)
    run.wait_until(lambda: udlm.beyond(0))
    assert run.interrupt() == 1
    stopped_at = wait_until(udlm.saved)

    run = start(model, samples)
    run.wait_until(lambda: pairflow.beyond(0))
    # Until the log is that of the second training, not of the first.
    run.wait_until(lambda: udlm.iterations()[:1] >= [stopped_at])
    jobs = cluster.jobs()
    [job] = jobs["train_wildcards_mini_0_pairflow"]
    shards = [jobs[f"pair_shard_wildcards_mini_0_pairflow_{shard}_2"][0] for shard in (1, 2)]
    together = [*shards, jobs["train_wildcards_mini_0_udlm"][1]]
    assert max(job["StartTime"] for job in together) < min(job["EndTime"] for job in shards)
    cluster.command("scancel", job["JobId"])
    cancelled_at = run.wait_until(pairflow.saved)
    run.wait_until(lambda: pairflow.beyond(cancelled_at))
    options = ("--partition=urgent", "--gpus=2", "--mem=100", "--output=/dev/null")
    cluster.command("sbatch", *options, "--wrap=true")
    preempted_at = run.wait_until(lambda: pairflow.saved() > cancelled_at and pairflow.saved())
    run.finish()

    assert (tmp_path / model).exists()
    assert (tmp_path / samples).exists()
    assert pairflow.iterations()[0] == preempted_at
    assert not pairflow.states.exists()
    first, second = cluster.jobs()["train_wildcards_mini_0_pairflow"]
    assert (first["JobState"], second["JobState"], second["Restarts"]) == ("CANCELLED", "COMPLETED", "1")
    assert (first["MinMemoryNode"], second["MinMemoryNode"]) == ("6000M", "12000M")
    # No attempt asks for more than the limit.
    assert first["TimeLimit"] == second["TimeLimit"] == "2-00:00:00"
    assert second["TresPerJob"] == "gres:gpu:1"
