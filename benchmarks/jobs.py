"""What Snakemake itself takes before the first job, for a workflow of so many jobs.

    python benchmarks/jobs.py --jobs 10 100 1000 10000 --out record.json

A pairing is split into that many jobs, and Snakemake plans them without running any (a dry run). Measured
are its seconds and its memory.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from pairing import commit, machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, nargs="+", default=[10, 100, 1000, 10_000])
    parser.add_argument("--out", type=Path, help="the JSON record")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        project = [sys.executable, "-m", "pairflow", "init", work]
        subprocess.run(project, check=True, stdout=subprocess.DEVNULL)
        plans = {jobs: planned(work, jobs) for jobs in options.jobs}
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "plans": plans,
    }
    print(json.dumps(record, indent=1))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


TARGET = "results/demo/seed0/pairs/pairflow.parquet"
# A small process starts Snakemake, because a child at first has the memory of its parent.
START = """
import json, resource, subprocess, sys, time
started = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(json.dumps({"seconds": round(time.perf_counter() - started, 1), "peak_memory_mb": round(peak)}))
"""


def planned(work: str, jobs: int) -> dict[str, float]:
    """Seconds and MB of memory of a dry run of the pairs of `demo` in so many jobs."""
    arguments = ["-n", "--quiet", "all", "--cores", "1", "--config", f"pair_shards={jobs}"]
    snakemake = [sys.executable, "-m", "snakemake", *arguments, "--", TARGET]
    run = subprocess.run(
        [sys.executable, "-c", START, *snakemake], cwd=work, check=True, capture_output=True, text=True
    )
    return json.loads(run.stdout)


if __name__ == "__main__":
    main()
