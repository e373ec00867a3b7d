"""One experiment with all that docs/extending.md adds, from raw data to metrics; for test_extending.py."""

import importlib
import json
import os
from pathlib import Path

from pairflow.artifacts import read_table
from pairflow.config import Experiment, check
from pairflow.kinds.molecules.settings import chemistry_settings

run = {"batch_size": 2, "iterations": 2, "learning_rate": 1e-3}
experiment = check(
    Experiment,
    {
        "description": "all that the page adds",
        "scale": "reduced",
        "data": {"source": "alkanes", "length": 8, "validation_fraction": 0.4},
        "network": {"name": "recurrent", "width": 8},
        "training": run,
        "distillation": {"more": run},
        "methods": ["udlm", "shifted+more"],
        "evaluations": {"main": {"nfe": [2], "samples": 4, "trials": 2, "sampler": "sharpened"}},
    },
    "recipes",
)


def step(name, settings=None, **options):
    values = {"settings": settings.model_dump_json(), **options} if settings else options
    arguments = [part for key, value in values.items() for part in ("--" + key.replace("_", "-"), str(value))]
    importlib.import_module(f"pairflow.steps.{name}").main([*arguments, "--quiet"], standalone_mode=False)


def model(folder):
    names = {"model": "model.safetensors", "description": "model.json", "log": "log.parquet"}
    return {option: f"{folder}/{name}" for option, name in names.items()}


Path("alkanes.csv").write_text("smiles\nC\nCC\nCCC\n")
os.environ["PAIRFLOW_DATA_DIR"] = "."
tables = {name: f"{name}.parquet" for name in ("train", "validation", "smiles", "known", "rejected")}
step("preprocess", "molecules", experiment.data, vocabulary="vocabulary.json", **tables)
step("pair", experiment.pair_settings("shifted", 0), tokens="train.parquet", out="pairs.parquet")
rows = {"validation": "validation.parquet", "threads": 1}
step("train", experiment.train_settings("shifted", 0), data="pairs.parquet", **rows, **model("shifted"))
more = experiment.distill_settings("shifted+more", 0)
step("distill", more, parent="shifted", data="train.parquet", **rows, **model("more"))
step("sample", experiment.sample_settings("main", 2, 0), model="more", out="samples.parquet", threads=1)
step("describe_molecules", smiles="smiles.parquet", out="molecules.parquet")
molecules = {"vocabulary": "vocabulary.json", "smiles": "smiles.parquet", "molecules": "molecules.parquet"}
files = {"samples": "samples.parquet", "out": "metrics.parquet", "properties": "properties.parquet"}
step("evaluate", "molecules", chemistry_settings(experiment), evaluation="main", **molecules, **files)
metrics = read_table("metrics.parquet", "metrics")[0].to_pandas()
assert set(metrics[metrics.metric == "fluorinated"].value) == {0.0}, metrics
description = json.loads(Path("more/model.json").read_text())
assert (description["network"]["name"], description["method"]) == ("recurrent", "shifted+more")
