"""Disk, memory and cores."""

import os
import shlex
import shutil
import tempfile
from pathlib import Path

from pairflow.data.status import Finding

LEAST_DISK = 2 * 2**30  # bytes; `demo` leaves 0.13 GB, the paper's protocol some tens of GB
LEAST_MEMORY = 2 * 2**30  # bytes; a small training takes 0.9 GB


def results(folder: Path) -> Finding:
    """Whether the workflow can write to `folder`/results, or to the parent folder that exists."""
    path = folder / "results"
    existing = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    if not existing.is_dir():
        return Finding.attention(f"{path} is a file", f"rm {shlex.quote(str(path))}")
    if reason := _refusal(existing):
        elsewhere = f"mkdir $HOME/results && ln -s $HOME/results {shlex.quote(str(path))}"
        return Finding.attention(f"{existing} cannot be written to: {reason}", elsewhere)
    free = shutil.disk_usage(existing).free
    text = f"{path.absolute()}, writable, {free / 2**30:,.1f} GB free"
    if free < LEAST_DISK:
        return Finding.attention(text, f"df -h {shlex.quote(str(existing))}")
    return Finding.ok(text)


def scratch() -> Finding:
    """Whether Snakemake can write to the folders for temporary files and for caches."""
    folders = {"TMPDIR": "/tmp", "XDG_CACHE_HOME": os.path.expanduser("~/.cache")}  # noqa: PTH111
    for variable, usual in folders.items():
        path = Path(os.environ.get(variable) or usual)
        existing = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
        if reason := _refusal(existing):
            advice = f"mkdir -p $PWD/{variable.lower()} && export {variable}=$PWD/{variable.lower()}"
            return Finding.attention(f"{variable} {path} cannot be written to: {reason}", advice)
    return Finding.ok("writable")


def _refusal(folder: Path) -> str | None:
    """The system's reason for not writing to a folder; None where it writes."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        return error.strerror
    return None


def memory() -> Finding:
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _limit() or installed
    usable, available = min(installed, limit), _available()
    text = f"{usable / 2**30:,.1f} GB"
    if limit < installed:
        text += f", limited from this machine's {installed / 2**30:,.1f} GB"
    if available:
        text += f", {min(available, limit) / 2**30:,.1f} GB of it free now"
    if usable < LEAST_MEMORY:
        return Finding.attention(f"{text}; a small training takes 0.9 GB", "snakemake --cores 1")
    return Finding.ok(text)


def cores() -> Finding:
    from pairflow.runtime.threads import available_cpus

    usable, installed = available_cpus(), os.cpu_count() or 1
    text = f"{usable}" if usable == installed else f"{usable} of {installed} may be used"
    return Finding.ok(f"{text}, load {os.getloadavg()[0]:.1f}")


def _limit() -> int | None:
    """The bytes that a control group grants, that of a container or a SLURM job."""
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
