# The configuration, checked before any rule, and the helpers that pass each step only the values it depends on.
import json
import os
import re
import shutil
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from snakemake.exceptions import WorkflowError

from pairflow import published
from pairflow.plan import own_files, paths
from pairflow.plan import jobs as graph
from pairflow.config.file import complete, load, read_text
from pairflow.config import DISTILLATIONS, FLOWS, Settings, nearest
from pairflow.config.methods import PAIRINGS
from pairflow.errors import InputError
from pairflow.estimate.costs import memory_requests
from pairflow.plan.sizes import about
from pairflow.kinds import KINDS, kind_of, load_kind
from pairflow.runtime.memory import usable_memory

try:
    for path in workflow.configfiles:
        load(read_text(Path(path)), path)
    CONFIGURATION = complete(config, Path("workflow_config.yaml"), "configuration")
    if workflow.is_main_process:
        CONFIGURATION.note_mistakes()
except InputError as error:
    raise WorkflowError(str(error)) from None
EXPERIMENTS = CONFIGURATION.experiments
config["experiments"] = {
    name: {"description": each.description} for name, each in EXPERIMENTS.items()
}  # for captions

# The folder of Snakefile and rules/; `workflow.basedir` is that of workflow/Snakefile where the workflow starts there.
REPOSITORY = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parent

# Steps run in the Python that runs Snakemake (or in the conda environment that it activates), from this checkout.
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), os.getenv("PATH", "")]),
    PYTHONPATH=os.pathsep.join([str(REPOSITORY), os.getenv("PYTHONPATH", "")]),
)
# The step replaces the shell: a scheduler signals every process, and a shell that dies of the signal would end the job
# while the step is still saving its state.
shell.prefix("set -euo pipefail; exec ")

# Threads of a step that uses every core. A cluster's profile sets them, because its nodes have other numbers.
CORES = workflow.resource_settings.cores or 8

# On one machine jobs take turns on the GPU, unless `--resources gpu=2` says that it has two, and run together only if
# their memory fits; on a cluster each job gets its own.
if workflow.is_main_process and workflow.nodes is None:
    for name, amount in {"gpu": 1, "mem_mb": usable_memory() // 2**20}.items():
        if workflow.global_resources.get(name).value is None:
            workflow.register_resource(name, amount)


wildcard_constraints:
    experiment=r"[A-Za-z0-9_-]+",
    seed=r"0|[1-9][0-9]*",
    base=r"[a-z0-9-]+",
    coupling=r"[a-z0-9+-]+",
    parent=r"[a-z0-9+-]+",
    distillation="|".join(DISTILLATIONS),
    method=r"[a-z0-9+-]+",
    evaluation=r"[A-Za-z0-9_]+",
    nfe=r"[0-9]+",
    comparison=r"|-[a-z0-9]+",


def only(kind):
    """The pattern of experiments on a kind of data; a name that is not configured counts as the last kind."""
    others = kind == KINDS[-1]
    names = [
        re.escape(name) for name, settings in EXPERIMENTS.items() if (settings.data.kind == kind) != others
    ]
    pattern = "|".join(names) or "(?!)"
    return rf"(?!(?:{pattern})/)[A-Za-z0-9_-]+" if others else pattern


def experiment_of(wildcards):
    name = wildcards.experiment
    if name in CONFIGURATION.mistakes:
        raise WorkflowError(CONFIGURATION.mistakes[name])
    if name not in EXPERIMENTS:
        raise WorkflowError(
            f"unknown experiment '{name}'{nearest(name, EXPERIMENTS)}: see workflow_config.yaml, recipes/ and experiments/"
        )
    return EXPERIMENTS[name]


def options(files, names=None):
    """Files of a job as options of its step, all of them or those with a name."""
    return [
        f"--{key.replace('_', '-')}={path}" for key, path in files.items() if names is None or key in names
    ]


def as_json(settings):
    """One line with sorted keys: the order of keys in the configuration changes no parameter."""
    return json.dumps(settings.model_dump(mode="json"), sort_keys=True)


def job_of(wildcards):
    """What a job's wildcards name, and the experiment, its folder and its kind of data."""
    experiment, names = experiment_of(wildcards), dict(wildcards.items())
    names |= {name: int(names[name]) for name in ("seed", "nfe") if name in names}
    # The name of a comparison: files of the first have none, those of others end in `-<name>`.
    names["comparison"] = names.get("comparison", "").removeprefix("-")
    names["distilled"] = f"{names.get('parent')}+{names.get('distillation')}"
    root, kind = Path("results", wildcards.experiment), kind_of(experiment.data)
    return SimpleNamespace(**names | {"root": root, "experiment": experiment, "kind": kind})


def asked(say):
    """A function of wildcards, for inputs, parameters and resources: `say` of the `job_of` them, in JSON if settings."""

    def answer(wildcards):
        said = say(job_of(wildcards))
        return as_json(said) if isinstance(said, Settings) else said

    return answer


def preparing(need):
    """A resource of preprocessing: what the kind of data needs, times the attempt."""
    return lambda wildcards, input, attempt: attempt * getattr(
        job_of(wildcards).kind.costs.preparing(input.size_mb), need
    )


def measuring(need):
    """A resource of measuring: what the kind of data needs, times the attempt."""
    needs = asked(lambda job: job.kind.costs.measuring(job.experiment))
    return lambda wildcards, attempt: attempt * getattr(needs(wildcards), need)


def memory(rule, uses_gpu=None, otherwise=4000, name=None):
    """The memory of a job by the estimate, times the attempt. On a GPU, or if it is unknown, it is another number of MB.
    `name` is the rule's own name, if that is not the estimate's."""

    def megabytes(wildcards, attempt):
        job = job_of(wildcards)  # an unknown experiment is named in one line
        prepared = paths.data(job.root, "validation.parquet").exists()
        needed = memory_of(wildcards.experiment, prepared).get(rule)
        if needed is None or (uses_gpu and set_for(name or rule, "gpu", uses_gpu(wildcards))):
            needed = otherwise(wildcards, 1) if callable(otherwise) else otherwise
        return attempt * needed

    return megabytes


@cache
def memory_of(name, prepared):
    """What the jobs of each rule need; once the data are `prepared`, their sizes are known."""
    root, experiment = Path("results", name), EXPERIMENTS[name]
    return memory_requests(root, experiment, about(root, experiment))


def set_for(rule, name, default):
    """A resource of a rule that the profile or the command line sets."""
    given = workflow.resource_settings.overwrite_resources.get(rule, {})
    # Older versions of Snakemake give a number.
    return getattr(given[name], "value", given[name]) if name in given else default


potentials_gpu = asked(lambda job: 0 if FLOWS[job.experiment.flow].tokens else gpu(job))
measuring_gpu = asked(lambda job: gpu(job) if job.kind.costs.measuring(job.experiment).gpu else 0)
parent_files = asked(lambda job: dated(paths.parent_files(job.root, job.experiment)))


def start_model(wildcards):
    """The weights and the description of the model that trainings start from."""
    files = parent_files(wildcards)
    return {"model": files["parent"], "description": files["parent_description"]}


def dated(files):
    """Files of a model; of one that comes with pairflow an installation changes the dates, but nothing else."""
    return {
        key: ancient(str(path)) if published.name_of(path.parent) else path for key, path in files.items()
    }


def starts_from(option, files):
    """A rule's parameter: the option and its file or folder, if the experiment starts from a model."""

    def parameter(wildcards, input):
        path = input.get(files)
        return [option, str(Path(path).parent) if files == "parent" else path] if path else []

    return parameter


def grown(amount):
    """Every retry of a job gets more memory and time, up to the bounds in the `resources` of a profile."""
    return lambda wildcards, attempt: amount * attempt


def share(rule, uses_gpu=None):
    """Threads of a job on this machine: its share of the cores, if all jobs of the rule run at once. On a GPU, and on a
    cluster unless its profile sets another number, it takes one."""

    def threads(wildcards):
        if workflow.nodes is not None or (uses_gpu or gpu)(wildcards):
            return 1
        experiment_of(wildcards)  # an unknown one is named in one line
        return shares_of(wildcards.experiment).get(rule, 1)  # the report may need no job of this rule

    return threads


@cache
def shares_of(name):
    root, experiment = Path("results", name), EXPERIMENTS[name]
    return graph.divide_cores(experiment, graph.jobs(root, experiment), CORES)


def gpu(wildcards):
    """1 if the machine has a GPU, so that --resources gpu=1 never serialises CPU trainings. Profiles may set it."""
    return int(shutil.which("nvidia-smi") is not None)
