"""Provenance of a file: when, where, by which commit and command it was made, and at what cost.

It is written to `<file>.provenance.json`, so that the file itself has the same bytes on every machine.
"""

import importlib.metadata
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pairflow.artifacts.atomic import atomic
from pairflow.errors import InputError
from pairflow.files import Json, read_object

_PACKAGES = ["pairflow", "torch", "numpy", "numba", "pyarrow", "rdkit", "snakemake"]
_PACKAGES += ["cupy-cuda13x", "cupy-cuda12x"]


@dataclass
class Provenance:
    """Measures the costs of a step from when it is made, and writes them next to the step's files.

    It records wall time (`seconds`) and `device_seconds`. On a CPU the latter are the user and system time of
    all threads of this process. On a GPU they are the wall time again, during which the step held the GPU;
    how busy its kernels kept it is not measured. For several `devices` they are this process's times the
    number of devices. `threads` are the CPU threads of the step's network, None for another step or on a GPU.
    `samples` is the number of training rows that were used, None without training, and
    `earlier` has the costs of interrupted runs or shards.
    """

    device: str = "cpu"
    threads: int | None = None
    devices: int = 1  # equal devices, each with a process that works as long as this one
    samples: int | None = None
    device_memory_mb: Callable[[], float] | None = None  # measures it where torch's allocator cannot
    started: float = field(default_factory=time.perf_counter)
    processor_started: float = field(default_factory=time.process_time)
    earlier: list[Json] = field(default_factory=list)

    def add(self, facts: Json) -> None:
        """Add the costs of an earlier, interrupted run or of a shard: `facts`, its provenance file."""
        self.earlier.append(facts)

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Do not count the seconds of a block, such as compilation or loading a model."""
        wall, processor = time.perf_counter(), time.process_time()
        yield
        self.started += time.perf_counter() - wall
        self.processor_started += time.process_time() - processor

    def write(self, *paths: Path) -> None:
        """Write `<file>.provenance.json` next to each of `paths`: the costs so far, the machine, date,
        commit, command and versions."""
        facts = {
            **self._costs(),
            "samples_seen": self.samples,
            "device": self.device,
            "devices": self.devices,
            "threads": self.threads,
            "machine": machine(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": checkout(Path(__file__).parent),
            "command": _command(),
            "versions": _versions(),
        }
        for path in paths:
            with atomic(provenance_path(path)) as [temporary]:
                temporary.write_text(json.dumps(facts, indent=1) + "\n")

    def _costs(self) -> dict[str, float | None]:
        """Return `seconds`, `device_seconds` and the peak memory in MiB, each with earlier runs. A time is
        None if an earlier one is unknown."""
        wall = time.perf_counter() - self.started
        busy = time.process_time() - self.processor_started if self.device == "cpu" else wall
        times: dict[str, float | None] = {}
        for key, seconds in {"seconds": wall, "device_seconds": busy * self.devices}.items():
            earlier = [facts.get(key) for facts in self.earlier]
            known = [value for value in earlier if value is not None]
            times[key] = round(seconds + sum(known), 3) if len(known) == len(earlier) else None
        peak = self.device_memory_mb() if self.device_memory_mb else peak_memory_mb(self.device)
        peaks = [peak, *(facts.get("peak_memory_mb") or 0 for facts in self.earlier)]
        return {**times, "peak_memory_mb": round(max(peaks), 1)}


def peak_memory_mb(device: str) -> float:
    """Return the peak memory in MiB: of this process on a CPU, of torch's allocator on a GPU."""
    if device == "cpu":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    import torch

    return torch.cuda.max_memory_allocated() / 2**20


def _command() -> list[str]:
    """Return the command line, without the folders of this machine: files are shared with their provenance.

    Paths below the installation or the working directory begin with ./, and paths below the home with ~/.
    """
    home = os.path.expanduser("~")  # noqa: PTH111 (Path.home() raises an error for a user without a home)
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    for folder, start in ((Path(__file__).parents[2], "./"), (Path.cwd(), "./"), (home, "~/")):
        path = re.compile(rf"(?<![\w.~/-]){re.escape(str(folder))}(?:/|(?![\w.-]))")
        words = [path.sub(start, word) for word in words]
    return words


def machine() -> str:
    """Return the name of this machine that tables of timings show."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def provenance_path(path: Path) -> Path:
    """Return the path of a file's provenance: `<file>.provenance.json`."""
    return path.with_name(path.name + ".provenance.json")


def read_provenance(path: Path) -> Json:
    """Return the provenance of a file; empty if there is none, InputError if it is damaged."""
    file = provenance_path(Path(path))
    try:
        return read_object(file) if file.is_file() else {}
    except ValueError as error:
        wrong = f"not a record of a step ({error}); remove the file to continue without these times"
        raise InputError(f"{file}: {wrong}") from error


def checkout(folder: Path) -> str | None:
    """Return the first 10 digits of the commit that `folder` is at, with `+` if tracked files differ from it;
    None outside of git.

    Git is called without its lock, because a step that is killed during the call would leave the lock behind.
    """
    command = ["git", "--no-optional-locks", "-C", str(folder), "status"]
    command += ["--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    commits = re.findall("^# branch.oid (.{10})", run.stdout, re.MULTILINE)
    changes = re.findall("^[^#]", run.stdout, re.MULTILINE)
    return commits[0] + "+" * bool(changes) if commits else None


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions
