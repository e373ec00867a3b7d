"""FFHQ's experiment at toy size, step by step: a folder of images, nothing held out, two extractors."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from miniatures import call_of
from PIL import Image

from benchmarks.paper.inputs import read_experiments
from pairflow.artifacts import read_table
from pairflow.config import Experiment, check
from pairflow.config.file import parse
from pairflow.kinds.images import extractors
from pairflow.plan.jobs import jobs

REPOSITORY = Path(__file__).parent.parent.parent
FFHQ = parse((REPOSITORY / "workflow_config.yaml").read_text(), Path("x"))["experiments"]["ffhq64"]
TOY = {
    "seeds": [0],
    "network": {"name": "unet", "channels": 8, "multipliers": [1, 1, 1], "blocks": 1, "attention": []},
    "pairing": {"steps": 2},
    "methods": ["pairflow"],
    "training": {"batch_size": 2, "iterations": 2, "learning_rate": 1e-3},
    "features": ["inception", "dinov2"],
    "evaluations": {"main": {"nfe": [1], "samples": 4, "trials": 1}},
}
ROOT = Path("results/ffhq64")
DIRECTIONS = torch.from_numpy(np.random.default_rng(0).normal(size=(48, 5)).astype(np.float32))


@pytest.fixture
def stand_ins(monkeypatch):
    """Networks in the place of Inception and DINOv2 that need no weights."""

    def network(images):
        return torch.nn.functional.adaptive_avg_pool2d(images, 4).flatten(1) @ DIRECTIONS, None

    made = {
        "inception": extractors.Extractor("inception", 5, network, distance="fid"),
        "dinov2": extractors.Extractor("dinov2-0a", 5, network, all_rows=True),
    }
    monkeypatch.setattr(extractors, "load", lambda settings, *_: made[settings.extractor])


def test_ffhq_needs_no_held_out_images(tmp_path, monkeypatch, run_call, stand_ins):
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(tmp_path))
    (tmp_path / "thumbnails128x128/00000").mkdir(parents=True)
    for number, pixels in enumerate(np.random.default_rng(0).integers(0, 256, (8, 9, 8, 3), np.uint8)):
        face = Image.fromarray(pixels).resize((80, 70))
        face.save(tmp_path / f"thumbnails128x128/00000/{number:05}.png")
    experiment = check(Experiment, FFHQ | TOY, "ffhq64")
    for job in jobs(ROOT, experiment):
        run_call(call_of(ROOT, job, "images"))
    rows, metadata = read_table(ROOT / "data/train.parquet", "tokens")
    assert (len(rows), metadata.shape, metadata.vocabulary_size) == (2 * 8, [3, 64, 64], 256)
    assert len(read_table(ROOT / "data/validation.parquet", "tokens")[0]) == 0
    log = read_table(ROOT / "seed0/models/pairflow/log.parquet")[0].to_pandas()
    assert log["validation_nll"].isna().all()
    metrics, text = pd.read_parquet(ROOT / "metrics.parquet"), (ROOT / "report.html").read_text()
    finished, *_ = read_experiments(ROOT.parent, {"ffhq64": experiment})
    assert finished["ffhq64"].reduced  # whatever its label says: images are missing
    assert set(metrics["reference"].dropna()) == {"train"}
    by_extractor = metrics[metrics["evaluation"] == "main"].groupby("extractor")["metric"].apply(set)
    assert by_extractor["inception"] == {"fid", "nn_l2", "nn_copies", "rank_deficient"}
    assert by_extractor["dinov2-0a"] == {"fd", "nn_cosine", "rank_deficient"}
    for words in (
        "thumbnails128x128 has 8 of the 70,000 images",
        "none, so no NLL is measured",
        "No NLL was measured, because no rows are held out.",
        "FID by the features of Inception, from 4 samples",
        "FD by the features of DINOv2 0a, from 4 samples",
    ):
        assert words in text
    for words in ("validation NLL", "Validation draws", "to the test images"):
        assert words not in text
