"""One real step and more with all that docs/extending.md adds, in the working folder; for test_extending.py.

Two experiments go from raw data to a report: the quick one, and one on molecules, which takes the network,
the base method, the distillation, the sampler, the data set and the metric of molecules.
The data set of every other kind is prepared, and its metric is measured on real data. Models are trained
with noise by frequency and with the coupling inside a batch.
"""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import yaml
from miniatures import call_of
from PIL import Image

from pairflow.artifacts import read_table
from pairflow.cli import main
from pairflow.config import Experiment, check
from pairflow.plan.jobs import jobs

RUN = {"batch_size": 2, "iterations": 2, "learning_rate": 1e-3}
MAIN = {"nfe": [2], "samples": 8, "trials": 2}
MLP = {"name": "mlp", "width": 8}


def described(data, **changes):
    """A checked experiment, with little training."""
    sections = {"description": "a recipe", "scale": "reduced", "data": data, "training": RUN}
    sections |= {"network": MLP, "methods": ["udlm"], "evaluations": {"main": MAIN}}
    return check(Experiment, sections | changes, "recipes")


def run(root, experiment, *rules):
    """Run the commands of the plan, those of some rules or all."""
    for job in jobs(root, experiment):
        if job.rule in rules or not rules:
            main(call_of(root, job, experiment.data.kind).words(), standalone_mode=False)


def floor(root, experiment):
    """Prepare the data; the metrics of real data by name."""
    run(root, experiment, "preprocess", "reference", "floor")
    rows = read_table(root / "reference/floor-main.parquet", "metrics")[0].to_pandas()
    return rows.groupby("metric").value.mean()


def try_molecules(root):
    Path("alkanes.csv").write_text("smiles\nC\nCC\nCCC\n")
    protocol = {"nfe": [2], "samples": 4, "trials": 2, "sampler": "sharpened"}
    experiment = described(
        {"source": "alkanes", "length": 8, "validation_fraction": 0.4},
        network={"name": "recurrent", "width": 8},
        distillation={"more": RUN},
        methods=["shifted+more"],
        evaluations={"main": protocol},
    )
    run(root, experiment)
    samples = read_table(root / "seed0/samples/shifted+more/main/nfe2.parquet", "samples")[1]
    assert samples.parameters["sampler"] == "sharpened"
    measured = read_table(root / "metrics.parquet", "metrics")[0].to_pandas()
    assert set(measured[measured.metric == "fluorinated"].value) == {0.0}, measured
    page = (root / "report.html").read_text()
    assert "<dd>number of valid strings whose canonical SMILES has an F</dd>" in page
    description = json.loads((root / "seed0/models/shifted+more/model.json").read_text())
    assert (description["network"]["name"], description["method"]) == ("recurrent", "shifted+more")


def try_images(root):
    """The data set has no labels, so that the metric is measured on digits, which are part of the package."""
    Path("icons").mkdir()
    for number in range(10):
        Image.fromarray(np.full((4, 4, 3), 25 * number, np.uint8)).save(f"icons/{number}.png")
    icons = described({"source": "icons"}, features={"extractor": "inception"})
    run(root / "icons", icons, "preprocess")
    assert pq.read_metadata(root / "icons/data/train.parquet").num_rows == 9
    assert floor(root, described({"source": "digits"}))["flat"] == 0


def try_text(root):
    Path("fables.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 100)
    data = {"source": "fables", "tokeniser": "characters", "normalisation": "letters", "length": 8}
    fables = described(data, methods=["udlm", "ot"], noise="frequencies")
    assert floor(root, fables)["flat"] == 0
    run(root, fables, "train", "sample", "evaluate")


def try_tokens(root):
    np.save("dice.npy", np.arange(240).reshape(60, 4) % 6)
    dice = described({"source": "tokens", "file": "dice.npy", "vocabulary_size": 6})
    assert floor(root, dice)["flat"] == 0


def try_vectors(root):
    moons = described(
        {"source": "two_moons", "dims": 2, "training_rows": 90, "validation_rows": 10},
        flow="continuous",
        training=RUN | {"loss": "velocity"},
        methods=["ranked"],
    )
    assert floor(root, moons)["flat"] == 0
    run(root, moons, "train")


def try_quick(_root):
    page = yaml.safe_load((Path(__file__).parents[2] / "experiments/quick.yaml").read_text())
    run(Path("results/quick"), check(Experiment, page["experiments"]["quick"], "quick"))


os.environ["PAIRFLOW_DATA_DIR"] = "."
for attempt in (try_quick, try_molecules, try_images, try_text, try_tokens, try_vectors):
    attempt(Path("results", attempt.__name__))
