"""No command and no function uses more threads than there are CPUs, whatever it is asked for."""

import importlib

import click
import numpy as np
import pytest
import torch
from torch_threads import threads_restored

import pairflow
from pairflow.cli import COMMANDS, STEPS, module_of
from pairflow.pairing import forward
from pairflow.runtime import threads
from pairflow.runtime.device import choose

TOKENS = np.random.default_rng(0).integers(0, 4, (300, 6))


@pytest.fixture(params=[1, 2])
def cpus(request, monkeypatch):
    """So many CPUs, of which nothing has been said."""
    monkeypatch.setattr(threads, "available_cpus", lambda: request.param)
    monkeypatch.setattr(threads, "SAID", set())
    return request.param


@pytest.fixture
def pools(monkeypatch):
    """The sizes of the pools of threads that were made."""
    sizes = []
    pool = threads.ThreadPoolExecutor
    monkeypatch.setattr(threads, "ThreadPoolExecutor", lambda size: sizes.append(size) or pool(size))
    return sizes


def test_more_threads_than_cpus_are_cut_and_it_is_said_once(cpus, capsys):
    assert [threads.useful_threads(asked) for asked in (None, 0, 1, cpus)] == [cpus, cpus, 1, cpus]
    assert capsys.readouterr().err == ""
    assert [threads.useful_threads(asked) for asked in (1000, 1000)] == [cpus, cpus]
    text = {1: "1 in place of 1000, because this process may use 1 CPU"}
    text[2] = "2 in place of 1000, because this process may use 2 CPUs"
    assert capsys.readouterr().err == f"pairflow: note: threads: {text[cpus]}\n"


def commands():
    """Every command that has the option --threads, with that option."""
    for name in sorted({*COMMANDS, *STEPS}):
        main = importlib.import_module(module_of(name)).main
        of_kinds = [*main.commands.values()] if isinstance(main, click.Group) else []
        for command in of_kinds or [main]:
            yield from ((command, option) for option in command.params if option.name == "threads")


def test_every_command_uses_at_most_a_thread_per_cpu(cpus):
    found = [option.process_value(click.Context(command), "4096") for command, option in commands()]
    assert len(found) > 10
    assert set(found) == {cpus}


HOW = {"vocabulary_size": 4, "progress": False}
CALLS = {
    "pair": lambda count: pairflow.pair(TOKENS, backend="cpu", threads=count, **HOW),
    "transport": lambda count: pairflow.transport(TOKENS, tau=1.0, threads=count, **HOW).sources(count),
    "forward": lambda count: forward.sample(TOKENS, 70, steps=3, seed=0, threads=count, **HOW),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_function_uses_at_most_a_thread_per_cpu_for_the_same_result(cpus, pools, name, capsys):
    one = CALLS[name](1)
    assert np.array_equal(CALLS[name](4096), one)
    assert all(size <= cpus for size in pools)
    assert capsys.readouterr().err.count(f"threads: {cpus} in place of 4096") == 1


def test_torch_uses_at_most_a_thread_per_cpu(cpus):
    with threads_restored():
        choose("cpu", 4096)
        assert torch.get_num_threads() == cpus


def test_a_job_of_snakemake_has_the_threads_that_it_was_granted(cpus, monkeypatch):
    for value, expected in (("1", 1), ("3", cpus), ("", cpus), ("0", cpus), ("x", cpus)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert threads.granted_threads() == expected
