"""Snakemake's jobs as JSON: `python snakemake_jobs.py CORES EXPERIMENT...`, in a folder with a configuration.

Run as a process of its own, because the Snakefile changes the environment. Nothing is executed.
"""

import json
import sys
from pathlib import Path

from snakemake.api import SnakemakeApi
from snakemake.settings.types import DAGSettings, OutputSettings, ResourceSettings

SNAKEFILE = Path(__file__).parent.parent.parent / "Snakefile"


def files(named) -> dict[str, list[str]]:
    """The files of Snakemake's inputs or outputs by their names; unnamed files are under an empty name."""
    groups = {name: [value] if isinstance(value, str) else list(value) for name, value in named.items()}
    groups[""] = sorted(set(named) - {path for group in groups.values() for path in group})
    return {name: [str(path) for path in group] for name, group in groups.items() if group}


def main(cores: str, *experiments: str) -> None:
    targets = {f"results/{name}/report.html" for name in experiments}
    with SnakemakeApi(OutputSettings(dryrun=True)) as api:
        # The public interface counts and prints jobs, without their inputs' names.
        workflow = api.workflow(ResourceSettings(cores=int(cores)), snakefile=SNAKEFILE)._workflow
        workflow.dag_settings = DAGSettings(targets=targets, forceall=True)
        workflow._prepare_dag(forceall=True, ignore_incomplete=True, lock_warn_only=True, nolock=True)
        workflow._build_dag()
        facts = [
            {
                "rule": job.rule.name,
                "inputs": files(job.input),
                "outputs": files(job.output),
                "settings": job.params.get("settings"),
                "threads": job.threads,
                "gpu": job.resources.get("gpu", 0),
                "priority": job.rule.priority,
                "mem_mb": job.resources["mem_mb"],
            }
            for job in workflow.dag.jobs
        ]
    json.dump(facts, sys.stdout)


main(*sys.argv[1:])
