# The configuration, checked before any rule, and the helpers that hand each step just the values it depends on.
import json
import os
import re
import shutil
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from pairflow import layout
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
    images = [re.escape(name) for name, each in EXPERIMENTS.items() if each.modality == "images"]
    named = "|".join(images) or "(?!)"
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
    file = experiment_of(wildcards).data.file
    return [] if file is None else file


def pair_settings(wildcards):
    return as_json(experiment_of(wildcards).pair_settings(wildcards.base, int(wildcards.seed)))


def cover_settings(wildcards):
    return as_json(experiment_of(wildcards).cover_settings(int(wildcards.seed)))


def train_settings(wildcards):
    return as_json(experiment_of(wildcards).train_settings(wildcards.base, int(wildcards.seed)))


def teach_settings(wildcards):
    return as_json(experiment_of(wildcards).teach_settings(f"{wildcards.parent}+redi", int(wildcards.seed)))


def distill_settings(wildcards):
    return as_json(experiment_of(wildcards).distill_settings(distilled(wildcards), int(wildcards.seed)))


def sample_settings(wildcards):
    experiment = experiment_of(wildcards)
    return as_json(experiment.sample_settings(wildcards.evaluation, int(wildcards.nfe), int(wildcards.seed)))


def correlate_settings(wildcards):
    return as_json(experiment_of(wildcards).correlate_settings(int(wildcards.seed)))


def classify_settings(wildcards):
    return as_json(experiment_of(wildcards).classify_settings())


def extractor_settings(wildcards):
    return as_json(experiment_of(wildcards).extractor_settings())


def chemistry_settings(wildcards):
    return as_json(experiment_of(wildcards).chemistry_settings())


def chemnet_statistics(wildcards):
    """Of the training molecules, where the experiment asks for distances between them."""
    root = Path("results", wildcards.experiment)
    return {"chemnet": layout.chemnet(root)} if experiment_of(wildcards).chemistry_settings().fcd else {}


def floor_settings(wildcards):
    return as_json(experiment_of(wildcards).floor_settings(wildcards.evaluation))


def extractor_files(wildcards):
    return layout.extractor_files(Path("results", wildcards.experiment), experiment_of(wildcards))


def experiment_settings(wildcards):
    return as_json(experiment_of(wildcards))


def training_data(wildcards):
    """Pairs where the method keeps a source per data point, else the bare token rows."""
    root = Path("results", wildcards.experiment)
    coupling = parse_method(wildcards.base).coupling
    if coupling is None:
        return layout.data(root, "train.parquet")
    return layout.pairs(root, int(wildcards.seed), coupling)


def distilled(wildcards):
    return f"{wildcards.parent}+{wildcards.distillation}"


def distillation_data(wildcards):
    """The parent's own pairs, or the data."""
    root = Path("results", wildcards.experiment)
    if DISTILLATIONS[wildcards.distillation].on_pairs:
        return layout.pairs(root, int(wildcards.seed), distilled(wildcards))
    return layout.data(root, "train.parquet")


def report_inputs(wildcards):
    return layout.report_inputs(Path("results", wildcards.experiment), experiment_of(wildcards))


def paper_settings(wildcards):
    return as_json(CONFIGURATION.paper_settings())


def finished_experiments(wildcards):
    """Digests of the metrics that there are: the page is made anew where one changes, and nothing else is."""
    found = layout.finished(Path("results"), CONFIGURATION.paper_settings().experiments)
    return {name: digest(path) for name, path in found.items()}


HAS_GPU = shutil.which("nvidia-smi") is not None


def gpu(wildcards):
    """1 where the step will use a GPU: CPU trainings are not serialised by --resources gpu=1. Profiles may set it."""
    return int(HAS_GPU)
