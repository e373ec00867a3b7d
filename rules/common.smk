# The configuration, checked before any rule, and the helpers that hand each step just the values it depends on.
import json
import os
import re
import shutil
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from pairflow.plan import paths
from pairflow.artifacts import digest
from pairflow.config import DISTILLATIONS, Configuration, check, nearest, parse_method
from pairflow.errors import InputError

try:
    CONFIGURATION = check(Configuration, config, "configuration")
except InputError as error:
    raise WorkflowError(str(error)) from None
EXPERIMENTS = CONFIGURATION.experiments

# Steps run in the Python that runs Snakemake (or in the conda environment that it activates), from this checkout.
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), os.getenv("PATH", "")]),
    PYTHONPATH=os.pathsep.join([str(workflow.basedir), os.getenv("PYTHONPATH", "")]),
)
# The step takes the shell's place: a scheduler signals every process, and a shell that died of it would end the job
# while the step still saves its state.
shell.prefix("set -euo pipefail; exec ")

# Threads of a step that uses all there are. A cluster's profile sets them, as its nodes have other numbers.
CORES = workflow.resource_settings.cores or 8

# On one machine jobs on the GPU take turns, unless `--resources gpu=2` gives it more; on a cluster each has its own.
if workflow.is_main_process and workflow.nodes is None and workflow.global_resources.get("gpu").value is None:
    workflow.register_resource("gpu", 1)


wildcard_constraints:
    experiment=r"[A-Za-z0-9_-]+",
    seed=r"[0-9]+",
    base=r"[a-z0-9-]+",
    coupling=r"[a-z0-9+-]+",
    parent=r"[a-z0-9+-]+",
    distillation="|".join(DISTILLATIONS),
    method=r"[a-z0-9+-]+",
    evaluation=r"[A-Za-z0-9_]+",
    nfe=r"[0-9]+",


def only(modality):
    """What the wildcard `experiment` may be in a rule for one modality; unknown names pass for molecules."""
    named = (
        "|".join(re.escape(name) for name, each in EXPERIMENTS.items() if each.modality == "images") or "(?!)"
    )
    return named if modality == "images" else rf"(?!(?:{named})/)[A-Za-z0-9_-]+"


def experiment_of(wildcards):
    name = wildcards.experiment
    if name not in EXPERIMENTS:
        raise WorkflowError(
            f"unknown experiment '{name}'{nearest(name, EXPERIMENTS)}: see workflow_config.yaml"
        )
    return EXPERIMENTS[name]


def as_json(settings):
    """One line, keys in order: an equal value is an equal parameter, however the configuration is written."""
    return json.dumps(settings.model_dump(mode="json"), sort_keys=True)


def data_settings(wildcards):
    return as_json(experiment_of(wildcards).data)


def raw_file(wildcards):
    """The user's own file of molecules; nothing where the workflow knows the source by name."""
    return experiment_of(wildcards).data.file or []


def settings_of(method, *names):
    """A rule's parameter: what this method of an experiment gives for its wildcards of these names."""

    def settings(wildcards):
        values = [int(wildcards[name]) if name in ("seed", "nfe") else wildcards[name] for name in names]
        return as_json(getattr(experiment_of(wildcards), method)(*values))

    return settings


def teach_settings(wildcards):
    return as_json(experiment_of(wildcards).teach_settings(distilled(wildcards), int(wildcards.seed)))


def distill_settings(wildcards):
    return as_json(experiment_of(wildcards).distill_settings(distilled(wildcards), int(wildcards.seed)))


def chemnet_statistics(wildcards):
    """Of the training molecules, where the experiment asks for distances between them."""
    root = Path("results", wildcards.experiment)
    return {"chemnet": paths.chemnet(root)} if experiment_of(wildcards).chemistry_settings().fcd else {}


def extractor_files(wildcards):
    return paths.extractor_files(Path("results", wildcards.experiment), experiment_of(wildcards))


def training_data(wildcards):
    """Pairs where the method keeps a source per data point, else the bare token rows."""
    root = Path("results", wildcards.experiment)
    coupling = parse_method(wildcards.base).coupling
    if coupling is None:
        return paths.data(root, "train.parquet")
    return paths.pairs(root, int(wildcards.seed), coupling)


def distilled(wildcards):
    return f"{wildcards.parent}+{wildcards.distillation}"


def distillation_data(wildcards):
    """The parent's own pairs, or the data."""
    root = Path("results", wildcards.experiment)
    if DISTILLATIONS[wildcards.distillation].on_pairs:
        return paths.pairs(root, int(wildcards.seed), distilled(wildcards))
    return paths.data(root, "train.parquet")


def report_inputs(wildcards):
    return paths.report_inputs(Path("results", wildcards.experiment), experiment_of(wildcards))


def finished_experiments(wildcards):
    """Digests of the metrics that there are: the page is made anew where one changes, and nothing else is."""
    found = paths.finished(Path("results"), CONFIGURATION.paper_settings().experiments)
    return {name: digest(path) for name, path in found.items()}


def grown(amount):
    """A job that is tried again gets more memory and time; `resources` of a profile bound both."""
    return lambda wildcards, attempt: amount * attempt


def gpu(wildcards):
    """1 where the step will use a GPU: CPU trainings are not serialised by --resources gpu=1. Profiles may set it."""
    return int(shutil.which("nvidia-smi") is not None)
