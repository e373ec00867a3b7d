"""One real step and more with all that docs/extending.md adds, in the working folder; for test_extending.py.

An experiment on molecules goes from raw data to metrics: it takes the network, the base method, the
distillation, the sampler with its setting, the data set and the metric of molecules. The data set of every
other kind is prepared, and its metric is measured on real data. The coupling inside a batch is trained with.
"""

import contextlib
import json
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from PIL import Image

from pairflow.artifacts import read_table
from pairflow.cli import main
from pairflow.config import Experiment, check
from pairflow.errors import InputError
from pairflow.kinds import kind_of
from pairflow.plan import paths

RUN = {"batch_size": 2, "iterations": 2, "learning_rate": 1e-3}
MAIN = {"nfe": [2], "samples": 8, "trials": 2}
MLP = {"name": "mlp", "width": 8}


def described(data, **changes):
    """A checked experiment, with little training."""
    sections = {"description": "a recipe", "scale": "reduced", "data": data, "training": RUN}
    sections |= {"network": MLP, "methods": ["udlm"], "evaluations": {"main": MAIN}}
    return check(Experiment, sections | changes, "recipes")


def step(*names, settings=None, **options):
    """Run a command with these settings and options."""
    values = {"settings": settings.model_dump_json(), **options} if settings else options
    arguments = [part for key, value in values.items() for part in ("--" + key.replace("_", "-"), str(value))]
    main([*names, *arguments, "--quiet"], standalone_mode=False)


def prepare(root, experiment):
    """The files that preprocessing writes."""
    files = paths.data_files(root, experiment)
    step("preprocess", experiment.data.kind, settings=experiment.data, **files)
    return files


def floor(root, experiment):
    """The metrics of real data by name."""
    kind, out = kind_of(experiment.data), root / "floor.parquet"
    settings, real = kind.floor_settings(experiment, "main"), kind.real_files(root, experiment)
    step("floor", kind.name, settings=settings, evaluation="main", out=out, **real)
    rows = read_table(out, "metrics")[0].to_pandas()
    return rows.groupby("metric").value.mean()


def model(folder):
    names = {"model": "model.safetensors", "description": "model.json", "log": "log.parquet"}
    return {option: folder / name for option, name in names.items()}


def try_molecules(root):
    Path("alkanes.csv").write_text("smiles\nC\nCC\nCCC\n")
    protocol = {"nfe": [2], "samples": 4, "trials": 2, "sampler": "sharpened", "sharpness": 3.0}
    experiment = described(
        {"source": "alkanes", "length": 8, "validation_fraction": 0.4},
        network={"name": "recurrent", "width": 8},
        distillation={"more": RUN},
        methods=["udlm", "shifted+more"],
        evaluations={"main": protocol},
    )
    with contextlib.suppress(InputError):
        described(experiment.data, evaluations={"main": protocol | {"sampler": "ancestral"}})
        raise AssertionError("another sampler takes the sharpness")
    files = prepare(root, experiment)
    pairs, shifted, more = root / "pairs.parquet", root / "shifted", root / "more"
    step("pair", settings=experiment.pair_settings("shifted", 0), tokens=files["train"], out=pairs)
    rows = {"validation": files["validation"], "threads": 1}
    step("train", settings=experiment.train_settings("shifted", 0), data=pairs, **rows, **model(shifted))
    distilled = experiment.distill_settings("shifted+more", 0)
    step("distill", settings=distilled, parent=shifted, data=files["train"], **rows, **model(more))
    samples, metrics = root / "samples.parquet", root / "metrics.parquet"
    sampling = experiment.sample_settings("main", 2, 0)
    step("sample", settings=sampling, model=more, out=samples, threads=1)
    assert read_table(samples, "samples")[1].parameters["sharpness"] == 3.0
    kind = kind_of(experiment.data)
    real = kind.real_files(root, experiment)
    step("describe_molecules", smiles=real["smiles"], out=real["molecules"])
    chemistry = kind.comparison_settings(experiment)
    out = {"samples": samples, "out": metrics, "properties": root / "properties.parquet"}
    step("evaluate", "molecules", settings=chemistry, evaluation="main", **real, **out)
    measured = read_table(metrics, "metrics")[0].to_pandas()
    assert set(measured[measured.metric == "fluorinated"].value) == {0.0}, measured
    description = json.loads((more / "model.json").read_text())
    assert (description["network"]["name"], description["method"]) == ("recurrent", "shifted+more")


def try_images(root):
    """The data set has no labels, so that the metric is measured on digits, which are part of the package."""
    Path("icons").mkdir()
    for number in range(10):
        Image.fromarray(np.full((4, 4, 3), 25 * number, np.uint8)).save(f"icons/{number}.png")
    icons = described({"source": "icons"}, features={"extractor": "inception"})
    assert pq.read_metadata(prepare(root / "icons", icons)["train"]).num_rows == 9
    digits = described({"source": "digits"})
    prepare(root, digits)
    for job in kind_of(digits.data).jobs(root, digits):
        step("reference", settings=job.settings, tokens=job.inputs["tokens"], out=job.outputs["reference"])
    assert floor(root, digits)["flat"] == 0


def try_text(root):
    Path("fables.txt").write_text("the fox and the grapes\n" * 100)
    fables = described({"source": "fables", "tokeniser": "characters", "length": 8})
    prepare(root, fables)
    assert floor(root, fables)["flat"] == 0


def try_tokens(root):
    np.save("dice.npy", np.arange(240).reshape(60, 4) % 6)
    dice = described({"source": "dice", "vocabulary_size": 6})
    prepare(root, dice)
    assert floor(root, dice)["flat"] == 0


def try_vectors(root):
    rings = described(
        {"source": "rings", "dims": 2, "training_rows": 90, "validation_rows": 10},
        flow="continuous",
        training=RUN | {"loss": "velocity"},
        methods=["ranked"],
    )
    files = prepare(root, rings)
    assert floor(root, rings)["flat"] == 0
    rows = {"data": files["train"], "validation": files["validation"], "threads": 1}
    step("train", settings=rings.train_settings("ranked", 0), **rows, **model(root / "ranked"))


os.environ["PAIRFLOW_DATA_DIR"] = "."
for attempt in (try_molecules, try_images, try_text, try_tokens, try_vectors):
    attempt(Path("results", attempt.__name__))
