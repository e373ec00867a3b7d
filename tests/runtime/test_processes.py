"""Work in several processes gives results in order, and reads only a little ahead."""

import os
import subprocess
import sys
from itertools import count, islice

import pytest

from pairflow.runtime.processes import map_chunks


def double(number):
    if number == 13:
        raise ValueError("thirteen")
    return 2 * number, os.getpid()


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_order_from_so_many_processes(processes):
    results = list(map_chunks(double, range(12), processes))
    assert [number for number, _ in results] == [2 * number for number in range(12)]
    workers = {process for _, process in results}
    assert len(workers) <= processes
    assert (os.getpid() in workers) == (processes == 1)


def test_an_endless_source_is_read_only_a_little_ahead():
    taken = []
    source = (taken.append(number) or number for number in count())
    assert [number for number, _ in islice(map_chunks(double, source, 2), 5)] == [0, 2, 4, 6, 8]
    assert len(taken) < 20


def test_errors_reach_the_caller():
    with pytest.raises(ValueError, match="thirteen"):
        list(map_chunks(double, range(20), 2))
    broken = (1 // (3 - number) for number in count())
    with pytest.raises(ZeroDivisionError):
        list(map_chunks(double, broken, 2))


def test_a_script_without_a_guard_runs_once(tmp_path):
    script = tmp_path / "script.py"
    lines = ("import math", "from pairflow.runtime.processes import map_chunks", "print('here')")
    script.write_text("\n".join([*lines, "print(list(map_chunks(math.sqrt, [1, 4], 2)))"]))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "here\n[1.0, 2.0]\n", done.stderr
