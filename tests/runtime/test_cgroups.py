"""Limits of control groups, as containers and clusters set them, count for CPUs and memory."""

import os

import pytest

from pairflow import checkup
from pairflow.runtime import cgroups, threads
from pairflow.runtime.memory import installed_memory, usable_memory
from pairflow.steps.run import snakemake_arguments


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A function that sets this process's control groups, and the files below /sys/fs/cgroup."""

    def write(own: str, **files: str) -> None:
        (tmp_path / "own").write_text(own)
        for name, text in files.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")

    monkeypatch.setattr(cgroups, "OWN", tmp_path / "own")
    monkeypatch.setattr(cgroups, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(64))
    monkeypatch.setattr(threads, "SAID", set())
    return write


PERIOD = {"cpu/cpu.cfs_period_us": "100000"}


@pytest.mark.parametrize(
    ("own", "files", "cpus"),
    [
        ("0::/\n", {}, 64),
        ("0::/\n", {"cpu.max": "max 100000"}, 64),
        ("0::/\n", {"cpu.max": "250000 100000"}, 2),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000"}, 3),
        ("0::/a\n", {"b/cpu.max": "100000 100000"}, 64),
        ("0::/../host\n", {"cpu.max": "200000 100000"}, 2),
        ("3:memory:/x\n2:cpu,cpuacct:/docker/5d\n0::/\n", PERIOD | {"cpu/cpu.cfs_quota_us": "200000"}, 2),
        ("2:cpu:/\n", PERIOD | {"cpu/cpu.cfs_quota_us": "-1"}, 64),
    ],
)
def test_a_quota_bounds_the_cpus(groups, own, files, cpus, capsys):
    groups(own, **files)
    assert threads.available_cpus() == cpus
    assert checkup.cores().text.startswith(f"{cpus} of ")
    assert snakemake_arguments("demo", None, None, ())[:2] == ["--cores", "all" if cpus == 64 else str(cpus)]
    assert threads.useful_threads(1000) == cpus
    assert f"{cpus} in place of 1000" in capsys.readouterr().err


def test_without_control_groups_there_is_no_limit(groups, tmp_path):
    assert threads.available_cpus() == 64  # there is no /proc/self/cgroup
    assert usable_memory() == installed_memory()


def test_the_smallest_limit_up_the_tree_bounds_the_memory(groups):
    groups("0::/job/step\n", **{"job/memory.max": str(2**30), "job/step/memory.max": "max"})
    assert usable_memory() == 2**30
    groups("4:memory:/job\n", **{"memory/memory.limit_in_bytes": str(2**29)})
    assert usable_memory() == 2**29
