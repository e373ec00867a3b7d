"""Disk, memory and cores."""

import os
import shlex
import shutil
import tempfile
from pathlib import Path

from pairflow.checkup.line import Line, State

LEAST_DISK = 2 * 2**30  # bytes; `demo` leaves 0.13 GB, the paper's protocol tens
LEAST_MEMORY = 2 * 2**30  # bytes; a small training takes 0.9 GB


def results(folder: Path) -> Line:
    """Where the workflow writes: as much as is there of `folder`/results."""
    path = folder / "results"
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not there.is_dir():
        return Line("results folder", State.ATTENTION, f"{path} is a file", f"rm {shlex.quote(str(path))}")
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"x")
    except OSError as error:
        elsewhere = f"mkdir $HOME/results && ln -s $HOME/results {shlex.quote(str(path))}"
        found = f"{there} cannot be written to: {error.strerror}"
        return Line("results folder", State.ATTENTION, found, elsewhere)
    free = shutil.disk_usage(there).free
    found = f"{path.absolute()}, writable, {free / 2**30:,.1f} GB free"
    if free < LEAST_DISK:
        return Line("results folder", State.ATTENTION, found, f"df -h {shlex.quote(str(there))}")
    return Line("results folder", State.OK, found)


def memory() -> Line:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _limit()
    found = f"{min(total, limit or total) / 2**30:,.1f} GB"
    if limit and limit < total:
        found += f", by a limit on this machine's {total / 2**30:,.1f} GB"
    if available := _available():
        found += f", {min(available, limit or available) / 2**30:,.1f} GB of them free now"
    if min(total, limit or total) < LEAST_MEMORY:
        return Line(
            "memory", State.ATTENTION, f"{found}; a small training takes 0.9 GB", "snakemake --cores 1"
        )
    return Line("memory", State.OK, found)


def cores() -> Line:
    from pairflow.runtime.threads import available_cpus

    usable, all_of_them = available_cpus(), os.cpu_count() or 1
    found = f"{usable}" if usable == all_of_them else f"{usable} of {all_of_them} may be used"
    return Line("cores", State.OK, f"{found}, load {os.getloadavg()[0]:.1f}")


def _limit() -> int | None:
    """What a control group grants, in bytes: of a container or a SLURM job."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        return int(text) if text.isdigit() else None
    return None


def _available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
