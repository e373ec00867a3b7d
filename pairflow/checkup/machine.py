"""Checks of the GPU's driver, the disk, the memory, the CPU cores, and the command snakemake."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pairflow.checkup.packages import run
from pairflow.data.status import Finding

LEAST_DISK = 2 * 2**30  # bytes; `demo` leaves 0.13 GB, the paper's protocol some tens of GB
LEAST_MEMORY = 2 * 2**30  # bytes; a small training takes 0.9 GB
DRIVER_SECONDS = 10.0


def driver() -> tuple[Finding, list[str]]:
    """Ask nvidia-smi about the NVIDIA driver. Returns a finding, and the names of the GPUs."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    if shutil.which(query[0]) is None:
        return Finding.optional("no nvidia-smi; no NVIDIA GPU here: every step runs on the CPU"), []
    try:
        finished = run(query, DRIVER_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return Finding.attention(f"nvidia-smi gives no answer within {DRIVER_SECONDS:g} s", "nvidia-smi"), []
    rows = [row.strip() for row in finished.stdout.splitlines() if row.strip()]
    if finished.returncode or not rows:
        output = " ".join((finished.stdout + finished.stderr).split())[:200]
        return Finding.attention(f"nvidia-smi fails: {output or 'it prints nothing'}", "nvidia-smi"), []
    return Finding.ok("; ".join(rows)), [row.partition(",")[0] for row in rows]


def snakemake() -> Finding:
    """Check whether the shell finds the command snakemake."""
    if path := shutil.which("snakemake"):
        return Finding.ok(path)
    activate = shlex.quote(str(Path(sys.prefix) / "bin" / "activate"))
    return Finding.attention("there is no command snakemake on the PATH", f"source {activate}")


def writable(path: Path, remedy: str) -> Finding:
    """Check whether a folder, or its nearest existing parent, can be written to and has enough free space.

    `remedy` is the command that the finding suggests for a folder that cannot be written to.
    """
    path = path.absolute()
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"x")
    except OSError as error:
        return Finding.attention(f"{existing} cannot be written to: {error.strerror}", remedy)
    free = shutil.disk_usage(existing).free
    text = f"{path}, writable, {free / 2**30:,.1f} GB free"
    return Finding.ok(text) if free >= LEAST_DISK else Finding.attention(text, f"df -h {existing}")


def memory() -> Finding:
    from pairflow.runtime.memory import installed_memory, usable_memory

    lines = Path("/proc/meminfo").read_text().splitlines()
    facts = {line.partition(":")[0]: line.split()[1] for line in lines}
    installed, usable, free = installed_memory(), usable_memory(), 1024 * int(facts["MemAvailable"])
    text = f"{usable / 2**30:,.1f} GB, {min(free, usable) / 2**30:,.1f} GB of it free now"
    if usable < installed:
        text += f", limited from this machine's {installed / 2**30:,.1f} GB"
    if usable < LEAST_MEMORY:
        return Finding.attention(f"{text}; a small training takes 0.9 GB", "snakemake --cores 1")
    return Finding.ok(text)


def cores() -> Finding:
    from pairflow.runtime.threads import available_cpus

    return Finding.ok(f"{available_cpus()} of {os.cpu_count()}, load {os.getloadavg()[0]:.1f}")
