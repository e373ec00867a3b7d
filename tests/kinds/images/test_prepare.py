"""Images: pixels to tokens and back, exactly; where they come from, and what is said when they do not."""

import gzip
import hashlib
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from pairflow.data.source import DatasetSize
from pairflow.data.status import Condition, Finding
from pairflow.errors import InputError
from pairflow.kinds import source_of
from pairflow.kinds.images.data_sets import DATA_SETS as IMAGES
from pairflow.kinds.images.data_sets import read_digits, read_folder
from pairflow.kinds.images.prepare import to_images, to_tokens
from pairflow.kinds.images.settings import Images

pytestmark = pytest.mark.usefixtures("cache")
TWO = np.arange(2 * 3 * 4 * 3, dtype=np.uint8).reshape(2, 3, 4, 3)  # (B, H, W, C)


def prepare(source, **options):
    settings = Images(source=source, **options)
    return source_of(settings).read(settings, progress=False)


@pytest.fixture
def folder(tmp_path):
    """Writes images as files of a folder; returns it."""

    def write(**files):
        for name, pixels in files.items():
            name = name.replace("__", "/").replace("_png", ".png").replace("_jpg", ".JPG")
            path = tmp_path / "images" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.asarray(pixels, np.uint8)).save(path)
        return tmp_path / "images"

    return write


def test_tokens_are_in_channel_height_width_order():
    tokens = to_tokens(TWO, 256)
    assert tokens.shape == (2, 36)
    assert tokens[0].tolist() == [*range(0, 36, 3), *range(1, 36, 3), *range(2, 36, 3)]
    assert tokens[1, 12 + 4 * 2 + 3] == TWO[1, 2, 3, 1]


@pytest.mark.parametrize("levels", [2, 4, 8, 16, 32, 64, 128, 256])
def test_tokens_survive_the_way_to_an_image_and_back(levels):
    tokens = np.tile(np.arange(levels, dtype=np.uint8), 12)[None]
    shape = (3, 4, levels)
    shown = to_images(tokens, shape, levels)
    assert shown.shape == (1, 4, levels, 3)
    assert shown.dtype == np.uint8
    assert (shown.min(), shown.max()) == (0, 255)
    assert np.array_equal(to_tokens(shown, levels), tokens)
    thresholds = np.array([[[[0], [127], [128], [255]]]], np.uint8)  # a white token is a value of 128 or more
    assert to_tokens(thresholds, 2).tolist() == [[0, 0, 1, 1]]


def test_digits_are_1797_pictures_and_the_same_bytes_everywhere():
    raw = read_digits()
    assert raw.images.shape == (1797, 8, 8, 1)
    assert np.bincount(raw.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert raw.labels[:4].tolist() == [0, 1, 2, 3]
    expected = "2df74158ebda24249d98754b098814e76b8778c0c5f465298007030dbda18d94"  # on every machine
    assert hashlib.sha256(raw.images.tobytes() + raw.labels.tobytes()).hexdigest() == expected


def test_digits_split_once_and_for_all():
    one, other = prepare("digits"), prepare("digits", split_seed=1)
    assert (one.train.shape, one.test.shape, one.shape, one.levels) == ((1617, 64), (180, 64), (1, 8, 8), 2)
    assert (len(one.train_labels), len(one.test_labels)) == (1617, 180)
    assert one.partial is None
    assert not np.array_equal(one.test, other.test)
    both = np.concatenate([one.train, one.test])
    assert sorted(map(bytes, both)) == sorted(map(bytes, to_tokens(read_digits().images, 2)))


def test_training_rows_are_a_random_subset_in_data_order():
    every, some = prepare("digits"), prepare("digits", training_rows=100)
    assert np.array_equal(some.test, every.test)
    rows = iter(zip(map(bytes, every.train), every.train_labels, strict=True))
    wanted = zip(map(bytes, some.train), some.train_labels, strict=True)
    assert len(some.train) == 100
    assert all(row in rows for row in wanted)  # a subsequence
    with pytest.raises(InputError, match=r"^training_rows: expected 1 to 1617 .* found 1618$"):
        prepare("digits", training_rows=1618)


def test_flips_append_the_mirror_images_of_the_training_rows():
    plain, both = prepare("digits", training_rows=5), prepare("digits", training_rows=5, flips=True)
    assert len(both.train) == 10
    assert np.array_equal(both.train[:5], plain.train)
    assert np.array_equal(both.train[5:].reshape(5, 8, 8), plain.train.reshape(5, 8, 8)[:, :, ::-1])
    assert both.train_labels.tolist() == plain.train_labels.tolist() * 2
    assert np.array_equal(both.test, plain.test)


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">I{values.ndim}I", 0x800 + values.ndim, *values.shape) + values.tobytes()


def small_mnist(folder, pack=gzip.compress, suffix=".gz"):
    """Three training and two test images; the first pixel is 100 times the row's number."""
    folder.mkdir(parents=True)
    for part, count in (("train", 3), ("t10k", 2)):
        pixels = np.zeros((count, 28, 28), np.uint8)
        pixels[:, 0, 0] = np.arange(count) * 100
        (folder / f"{part}-images-idx3-ubyte{suffix}").write_bytes(pack(idx(pixels)))
        labels = np.arange(count, dtype=np.uint8)
        (folder / f"{part}-labels-idx1-ubyte{suffix}").write_bytes(pack(idx(labels)))


@pytest.mark.parametrize(
    ("folder", "pack", "suffix"),
    [("mnist", gzip.compress, ".gz"), ("mnist", bytes, ""), ("cache/MNIST/raw", bytes, "")],
)
def test_mnist_comes_from_the_data_folder_or_else_from_the_cache(copies, folder, pack, suffix):
    small_mnist(copies / folder, pack, suffix)
    made = prepare("mnist_binary")
    assert (made.shape, made.levels) == ((1, 28, 28), 2)
    assert made.train[:, 0].tolist() == [0, 0, 1]
    assert made.test.shape == (2, 784)
    assert (made.train_labels.tolist(), made.test_labels.tolist()) == ([0, 1, 2], [0, 1])
    counts = "3 of the 60,000 training images and 2 of the 10,000 test images"
    assert made.partial == f"mnist_binary: the local copy has {counts}"


def test_a_broken_mnist_file_is_named(copies):
    small_mnist(copies / "mnist")
    labels = copies / "mnist" / "train-labels-idx1-ubyte.gz"
    for content, message in (
        (gzip.compress(bytes(2**25)), r"ubyte\.gz: expected a file that unpacks to at most 100 times"),
        (gzip.compress(idx(np.zeros(2, np.uint8))), "expected images .* with a label each, .* and 2 labels"),
    ):
        labels.write_bytes(content)
        with pytest.raises(InputError, match=message):
            prepare("mnist_binary")


def test_a_subset_of_cifar10_says_what_it_lacks(copies):
    pixels = np.arange(2 * 3072, dtype=np.int64).reshape(2, 32, 32, 3).astype(np.uint8)
    arrays = {"x_train": pixels, "y_train": [[3], [5]], "x_test": pixels[:1], "y_test": [7]}
    np.savez(copies / "cifar10_subset.npz", **arrays)
    made = prepare("cifar10", flips=True)
    assert (made.shape, made.levels, made.train.shape) == ((3, 32, 32), 256, (4, 3072))
    assert np.array_equal(to_images(made.train, made.shape, made.levels)[:2], pixels)
    assert np.array_equal(to_images(made.train, made.shape, made.levels)[2:], pixels[:, :, ::-1])
    assert made.train_labels.tolist() == [3, 5, 3, 5]
    counts = "2 of the 50,000 training images and 1 of the 10,000 test images"
    assert made.partial == f"cifar10: cifar10_subset.npz has {counts}"
    (copies / "cifar10_subset.npz").write_bytes(b"no zip")
    with pytest.raises(InputError, match=r"cifar10_subset\.npz: expected arrays x_train, y_train, x_test"):
        prepare("cifar10")


def test_ffhq_is_a_folder_that_the_user_provides(copies, folder):
    names = "ffhq64/ or thumbnails128x128/"
    needed = f"expected 70,000 images in {names}, in the folder that PAIRFLOW_DATA_DIR names"
    with pytest.raises(InputError, match=f"^ffhq64 is not downloaded: {needed}, found none$"):
        prepare("ffhq64")
    source = IMAGES["ffhq64"]
    assert source.status().condition is Condition.OPTIONAL
    whole, half = (Images(source="ffhq64", flips=True, validation_fraction=part) for part in (0, 0.5))
    assert source.measure(whole) == DatasetSize(140_000, 0, 256, 12_288, (3, 64, 64))
    pixels = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), np.uint8)
    files = folder(**{f"00000__{row}_png": image for row, image in enumerate(pixels)})
    files.rename(copies / "ffhq64")
    assert source.status() == Finding.ok(str(copies / "ffhq64"))
    assert source.measure(half) == DatasetSize(2, 2, 256, 12_288, (3, 64, 64))
    made = prepare("ffhq64", validation_fraction=0)
    assert np.array_equal(to_images(made.train, made.shape, made.levels), pixels)
    assert (made.test.shape, made.train_labels) == ((0, 12_288), None)
    assert made.partial == "ffhq64: ffhq64 has 3 of the 70,000 images"


def test_a_folder_is_read_recursively_in_order_of_names(folder):
    grey = [np.full((2, 3), value) for value in (10, 20, 30)]
    root = folder(b_png=grey[1], a__z_png=grey[0], c_png=grey[2])
    (root / "notes.txt").write_text("no image")
    raw = read_folder(root, progress=False)
    assert raw.images.shape == (3, 2, 3, 1)
    assert raw.images[:, 0, 0, 0].tolist() == [10, 20, 30]
    assert raw.labels is None
    made = prepare("image_folder", folder=str(root), levels=16, validation_fraction=0.4)
    assert (made.shape, made.levels, made.train.shape, made.test.shape) == ((1, 2, 3), 16, (1, 6), (2, 6))
    assert made.train_labels is None
    assert sorted([*made.train[:, 0], *made.test[:, 0]]) == [0, 1, 1]
    left_out = "files and folders that were left out: 1 not PNG or JPEG, such as notes.txt"
    assert raw.notes == (f"{root}: {left_out}",)


def test_hidden_files_and_folders_are_left_out(folder):
    root = folder(a_png=np.full((2, 3), 10), _ipynb_checkpoints__b_png=np.zeros((2, 3)))
    (root / "_ipynb_checkpoints").rename(root / ".ipynb_checkpoints")
    (root / "._a.png").write_bytes(b"Mac OS X")
    (root / "__MACOSX").mkdir()
    (root / "__MACOSX" / "c.png").write_bytes(b"Mac OS X")
    raw = read_folder(root, progress=False)
    assert raw.images[:, 0, 0, 0].tolist() == [10]
    assert raw.notes == (f"{root}: files and folders that were left out: 3 hidden, such as ._a.png",)
    (root / "more").symlink_to(root)
    assert read_folder(root, progress=False).notes[0].endswith("1 a link to a folder, such as more")
    hidden = root.rename(root.with_name(".images"))  # the user chose this one
    assert len(read_folder(hidden, progress=False).images) == 1


@pytest.mark.parametrize(
    ("ground", "mode", "colour"),
    [("white", "L", [255]), ("black", "L", [0]), ("#0a6414", "RGB", [10, 100, 20])],
)
def test_transparent_images_are_put_on_a_ground(folder, ground, mode, colour):
    """A black mark on nothing, half of a grey that is seen through, and an opaque image."""
    pixels = np.zeros((1, 3, 4))
    pixels[0, 1:] = (0, 0, 0, 255), (100, 100, 100, 51)
    root = folder(a_png=pixels, b_png=np.full((1, 3, 4), 255))
    raw = read_folder(root, mode=mode, progress=False, ground=ground)
    seen = [round(0.8 * value + 0.2 * 100) for value in colour]
    assert raw.images[0, 0].tolist() == [colour, [0] * len(colour), seen]
    assert (raw.images[1] == 255).all()
    assert raw.notes == (f"{root}: 1 of 2 images are transparent; their ground is {ground}",)


def test_a_transparent_colour_of_a_grey_image_is_one_too(folder):
    root = folder(a_png=np.array([[0, 7, 9]]))
    Image.open(root / "a.png").save(root / "a.png", transparency=7)
    assert read_folder(root, progress=False).images[0, 0, :, 0].tolist() == [0, 255, 9]


def test_size_cuts_the_central_square_and_resizes(folder):
    wide = np.zeros((2, 6, 3))
    wide[:, 2:4] = (10, 20, 30)
    root = folder(wide_png=wide, tall_jpg=np.full((40, 20), 100))
    raw = read_folder(root, size=1, mode="RGB", progress=False)
    assert raw.images.shape == (2, 1, 1, 3)
    assert raw.images[:, 0, 0].tolist() == [[100, 100, 100], [10, 20, 30]]
    assert read_folder(root, size=7, mode="L", progress=False).images.shape == (2, 7, 7, 1)
    square = np.random.default_rng(0).integers(0, 256, (5, 5, 3))  # of the size: left as it is
    (root / "wide.png").unlink()
    (root / "tall.JPG").unlink()
    assert np.array_equal(read_folder(folder(a_png=square), size=5, progress=False).images[0], square)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (np.zeros((4, 3)), r"b\.png: 3 x 4 pixels, but .*a\.png has 3 x 2; set `size` \(--size N\)$"),
        (np.zeros((2, 3, 3)), r"b\.png: colour, but .*a\.png is grey; set `mode` \(--mode L or RGB\)$"),
        (np.zeros((2, 3, 4)), r"b\.png: expected mode L or RGB, found RGBA; set `mode` \(--mode L or RGB\)$"),
    ],
)
def test_mixed_images_are_refused_by_name(folder, other, message):
    root = folder(a_png=np.zeros((2, 3)), b_png=other)
    with pytest.raises(InputError, match=message):
        read_folder(root, progress=False)
    assert read_folder(root, size=2, mode="L", progress=False).images.shape == (2, 2, 2, 1)


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n"


def test_a_file_that_is_not_an_image_is_named(folder):
    root = folder(a_png=np.zeros((9, 9)))
    half, unknown = (root / "a.png").read_bytes()[:40], "cannot identify image file"
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(root / "b.gif")
    # Pillow would hand PostScript to Ghostscript, which runs it.
    contents = {b"no image": unknown, POSTSCRIPT: unknown, (root / "b.gif").read_bytes(): unknown, half: ""}
    for content, reason in contents.items():
        (root / "b.png").write_bytes(content)
        with pytest.raises(InputError, match=rf"images/b\.png: not a readable image: {reason}"):
            read_folder(root, progress=False)


@pytest.mark.parametrize(("colour", "channels"), [(0, 1), (2, 3), (4, 2), (6, 4)])
def test_images_of_16_bits_are_refused(folder, colour, channels):
    """Pillow keeps the high bytes of all but grey ones."""
    root = folder(a_png=np.zeros((9, 9)))
    size = struct.pack(">IIBBBBB", 2, 1, 16, colour, 0, 0, 0)
    parts = {b"IHDR": size, b"IDAT": zlib.compress(bytes(1 + 4 * channels)), b"IEND": b""}
    content = b"".join(
        struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(name + part))
        for name, part in parts.items()
    )
    (root / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n" + content)
    with pytest.raises(InputError, match=r"images/b\.png: expected 8 bits per channel, found 16; convert"):
        read_folder(root, size=1, mode="L", progress=False)


def test_further_frames_are_counted(folder):
    root = folder(a_png=np.zeros((2, 3)), a_jpg=np.zeros((2, 3)), b_png=np.zeros((2, 3)))
    first, second = (Image.fromarray(np.full((2, 3), value, np.uint8)) for value in (7, 9))
    first.save(root / "b.png", save_all=True, append_images=[second])
    raw = read_folder(root, progress=False)
    assert raw.images[:, 0, 0, 0].tolist() == [0, 0, 7]
    assert raw.notes == (f"{root}: 1 of 3 images have several frames; the first is read",)


def test_an_absent_or_empty_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere: no such folder$"):
        read_folder(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r": no PNG or JPEG files below it$"):
        read_folder(tmp_path)


@pytest.mark.data
def test_mnist_in_full(data_dir, monkeypatch):
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(data_dir))
    made = prepare("mnist_binary")
    assert made.partial is None
    assert (made.train.shape, made.test.shape) == ((60_000, 784), (10_000, 784))
    assert made.train_labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert made.test_labels[:5].tolist() == [7, 2, 1, 0, 4]
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(made.train_labels).tolist() == counts


@pytest.mark.data
def test_cifar10_begins_with_known_pixels_and_labels(data_dir, monkeypatch):
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(data_dir))
    made = prepare("cifar10")
    assert made.train[0, [0, 1024, 2048]].tolist() == [59, 62, 63]  # red, green and blue of the first pixel
    assert made.train_labels[:3].tolist() == [6, 9, 9]  # frog, truck, truck
    assert (made.partial is None) == (len(made.train) == 50_000)
