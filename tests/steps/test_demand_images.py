"""Images on demand, from the model of digits that comes with pairflow."""

import re

import numpy as np
import pytest
from miniatures import root_of
from PIL import Image

from pairflow.kinds.images import on_demand
from pairflow.pixels import ROOM, enlarge, tile


@pytest.fixture
def sample(step, tmp_path):
    def sample(out: str, **options):
        options = {"model": "digits", "count": 10, "threads": 1, "device": "cpu", "quiet": True, **options}
        return step("sample", out=tmp_path / out, **options)

    return sample


def test_a_picture_has_the_images_of_the_array(sample, tmp_path):
    run = sample("many.npy")
    assert run.exit_code == 0
    assert re.search("^10 images, seed 0 -> .*many.npy$", run.stderr, re.MULTILINE)
    images = np.load(tmp_path / "many.npy")
    assert (images.dtype, images.shape) == (np.uint8, (10, 8, 8, 1))
    assert {*np.unique(images)} == {0, 255}
    assert 0.2 < (images > 0).mean() < 0.5
    assert sample("many.png").exit_code == 0
    pixels = tile(images, 4).squeeze(2)
    factor = enlarge(ROOM, pixels.shape[1])
    assert factor == 8
    with Image.open(tmp_path / "many.png") as picture:
        found = np.asarray(picture)
    np.testing.assert_array_equal(found, pixels.repeat(factor, 0).repeat(factor, 1))
    run = sample("few.npy", count=3)
    assert "digits: takes --nfe 4 --sampler euler, unless you give other values" in run.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "few.npy"), images[:3])


def test_unique_images_differ(sample, tmp_path):
    assert sample("unique.npy", count=100, nfe=1, unique=True).exit_code == 0
    images = np.load(tmp_path / "unique.npy")
    assert len(np.unique(images.reshape(100, -1), axis=0)) == 100


def test_what_images_do_not_support_is_said(sample, step, finish, refused, tmp_path, monkeypatch):
    refused(sample("x.csv", nfe=1), "sample", "x.csv: unknown suffix '.csv'; expected .png or .npy for")
    refused(sample("x.png", nfe=1, prefix="C"), "sample", "--prefix is for molecules or text; this model")
    monkeypatch.setattr(on_demand, "MOST_PICTURED", 9)
    refused(sample("x.png", nfe=1), "sample", "x.png: a picture has at most 9 images; write a .npy file")
    (tmp_path / "x.txt").touch()
    run = step("score", tmp_path / "x.txt", model="digits", out=tmp_path / "x.csv")
    refused(run, "score", "digits: scores are for molecules and text; this makes images")
    root = finish("images") / root_of("images")
    for folder in (root, root / "seed0/models/condot"):
        run = sample("x.png", model=folder, nfe=1)
        refused(run, "sample", "this one is of a continuous flow: use --solver euler --samples 100")
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]
