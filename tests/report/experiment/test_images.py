"""Pictures of images: every pixel is where and what it was."""

import base64
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from pairflow.kinds.images.page import page as images


def decoded(png: images.Png) -> np.ndarray:
    kind, _, data = png.uri.partition(",")
    assert kind == "data:image/png;base64"
    pixels = np.asarray(Image.open(BytesIO(base64.b64decode(data))))
    return pixels if pixels.ndim == 3 else pixels[..., None]


def pictures(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_grid_holds_the_pixels_in_order_in_a_grey_frame(channels):
    samples = pictures(11, 5, 4, channels)
    found = decoded(images.draw_grid(samples, "udlm")).copy()
    assert found.shape == (2 * 6 + 1, 8 * 5 + 1, channels)
    for n, sample in enumerate(samples):
        row, column = divmod(n, 8)
        tile = found[6 * row + 1 : 6 * row + 6, 5 * column + 1 : 5 * column + 5]
        assert (tile == sample).all()
        tile[:] = 128
    assert (found == 128).all()


GRIDS = [(8, 5, 64), (28, 2, 60), (32, 2, 60), (64, 1, 20), (256, 1, 1), (600, 1, 1)]  # at least one image


@pytest.mark.parametrize(("side", "factor", "shown"), GRIDS)
def test_grids_grow_by_whole_factors_that_fit_and_show_fewer_large_images(side, factor, shown):
    png = images.draw_grid(pictures(70, side, side, 3), "udlm at 1 sampling step")
    assert png.factor == factor
    assert png.width * factor <= max(365, side + 2)
    assert png.alt.startswith(f"{shown} sample")


def test_pairs_are_rows_from_data_to_source():
    x1, x0, between = pictures(2, 3, 3, 1), pictures(2, 3, 3, 1) // 2, pictures(2, 3, 3, 3, 1)
    found = images.draw_pairs(x1, between, x0, "pairflow")
    assert found["times"] == [1, 0.75, 0.5, 0.25, 0]
    pixels = decoded(found["png"])
    assert pixels.shape == (2 * 4 + 1, 5 * 4 + 1, 1)
    assert (pixels[5:8, 1:4] == x1[1]).all()
    assert (pixels[1:4, 9:12] == between[0, 1]).all()
    assert (pixels[5:8, 17:20] == x0[1]).all()
    assert found["png"].alt.startswith("2 pairs of pairflow, ")


def test_a_sample_stands_above_its_neighbour():
    samples, nearest = pictures(2, 4, 4, 1), pictures(2, 4, 4, 1) // 3
    first, second = images.draw_neighbours(samples, nearest, np.array([1000.4, 0.0]))
    pixels = decoded(first["png"])
    assert pixels.shape == (11, 6, 1)
    assert (pixels[1:5, 1:5] == samples[0]).all()
    assert (pixels[6:10, 1:5] == nearest[0]).all()
    assert first["png"].alt.endswith(", at 1,000")
    assert (first["distance"], second["distance"]) == (1000.4, 0.0)
