"""Images: pixels to rows of tokens and back.

The contract of a data set is its shape (C, H, W) and its grey levels K, which divide 256. A row of tokens
holds N = C H W pixels in channel-height-width order, and

    token = value // (256 / K)        value = token * 255 // (K - 1)

So black is 0 and white 255 at every K, K = 256 leaves values as they are, and tokens survive the way to an
image and back.
"""

import gzip
import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from pairflow.artifacts import token_dtype
from pairflow.config import IMAGE_SOURCES, nearest
from pairflow.data.sources import DATA_DIR, cache, data_folder
from pairflow.data.split import split_rows
from pairflow.errors import InputError

Shape = tuple[int, int, int]
_SUFFIXES = {".png", ".jpg", ".jpeg"}


def to_tokens(images: np.ndarray, levels: int) -> np.ndarray:
    """Images (B, H, W, C) uint8 as token rows (B, N), in the smallest dtype that holds K = `levels`."""
    if not 2 <= levels <= 256 or 256 % levels:
        raise InputError(f"levels: {levels} does not divide 256; 2, 4, 8, ... 256 do")
    planes = np.moveaxis(images // np.uint8(256 // levels) if levels < 256 else images, 3, 1)
    return np.ascontiguousarray(planes, token_dtype(levels)).reshape(len(images), -1)


def to_images(tokens: np.ndarray, shape: Shape, levels: int) -> np.ndarray:
    """Token rows (B, N) as images (B, H, W, C) uint8: the way back from `to_tokens`."""
    channels, height, width = shape
    if tokens.ndim != 2 or tokens.shape[1] != channels * height * width:
        raise InputError(f"tokens: expected (B, {channels * height * width}), found {tokens.shape}")
    values = np.arange(levels) * 255 // (levels - 1)
    planes = values.astype(np.uint8)[tokens].reshape(-1, channels, height, width)
    return np.ascontiguousarray(np.moveaxis(planes, 1, 3))


def contract(shape: Shape, levels: int) -> str:
    """The vocabulary.json of images: the shape and the levels, which token rows and models must agree on."""
    facts = {"kind": "image", "shape": list(map(int, shape)), "levels": int(levels)}
    return json.dumps(facts, separators=(",", ":"))


def contract_hash(shape: Shape, levels: int) -> str:
    """SHA-256 (hex) of the contract."""
    return hashlib.sha256(contract(shape, levels).encode()).hexdigest()


@dataclass(frozen=True)
class Raw:
    """Images (M, H, W, C) uint8 with labels (M,), and which of them are the published test set, if one is.

    `partial` says, in words, what of the published data set is missing here.
    """

    images: np.ndarray
    labels: np.ndarray | None = None
    test_rows: range | None = None
    partial: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of pixels and labels, however they were packed."""
        content = hashlib.sha256(np.ascontiguousarray(self.images))
        if self.labels is not None:
            content.update(self.labels.astype("<i4"))
        return content.hexdigest()


@dataclass(frozen=True)
class Prepared:
    """A data set of images, ready for pairing and training.

    `train` (M, N) and `test` (V, N) are token rows in data order, mirror images after all others; labels
    (M,) and (V,), or None where there are none. `source` is the digest of the raw images, `partial` as in
    `Raw`.
    """

    train: np.ndarray
    test: np.ndarray
    train_labels: np.ndarray | None
    test_labels: np.ndarray | None
    shape: Shape
    levels: int
    source: str
    partial: str | None

    @property
    def hash(self) -> str:
        return contract_hash(self.shape, self.levels)


def prepare(
    source: str,
    *,
    folder: str | Path | None = None,
    size: int | None = None,
    mode: str | None = None,
    levels: int | None = None,
    flips: bool = False,
    training_rows: int | None = None,
    validation_fraction: float = 0.1,
    split_seed: int = 42,
    data_dir: str | Path | None = None,
    progress: bool = True,
) -> Prepared:
    """Read a source (digits, mnist_binary, cifar10, image_folder) and split it into training and test rows.

    `folder`, `size`, `mode` and `levels` are those of an image folder (`read_folder`; K = 256 unless given).
    The test rows are the published ones, else a random share `validation_fraction`; `training_rows` keeps a
    random subset of the others, and `flips` appends their mirror images. `data_dir` overrides the environment
    variable PAIRFLOW_DATA_DIR; what is not there is downloaded into the user's cache.

    Raises InputError for an unknown source, for files that are missing or not what they should be, for
    levels that do not divide 256, and where fewer than `training_rows` are there.
    """
    if source not in IMAGE_SOURCES:
        near, known = nearest(source, IMAGE_SOURCES), ", ".join(IMAGE_SOURCES)
        raise InputError(f"unknown image source {source!r}{near}: known are {known}")
    if source == "image_folder":
        raw, levels = read_folder(folder, size, mode, progress), levels or 256
    else:
        read, levels = _PUBLISHED[source]
        raw = read(data_folder(data_dir))
    rows = range(len(raw.images))
    split = split_rows(rows, validation_fraction, raw.test_rows, split_seed, training_rows)
    train, train_labels = _chosen(raw, split == "train")
    test, test_labels = _chosen(raw, split == "validation")
    if flips:
        train = np.concatenate([train, train[:, :, ::-1]])
        train_labels = None if train_labels is None else np.tile(train_labels, 2)
    height, width, channels = raw.images.shape[1:]
    return Prepared(
        train=to_tokens(train, levels),
        test=to_tokens(test, levels),
        train_labels=train_labels,
        test_labels=test_labels,
        shape=(channels, height, width),
        levels=levels,
        source=raw.digest,
        partial=raw.partial and f"{source}: {raw.partial}",
    )


def _chosen(raw, rows):
    return raw.images[rows], None if raw.labels is None else raw.labels[rows]


# ---- embedded


def read_digits(data_dir: Path | None = None) -> Raw:
    """The embedded digits, binarised, as images of 0 and 255.

    Each of the 1,797 rows of digits.gz is 9 bytes: the 8 x 8 bits, first pixel highest, and the label.
    `pack_digits` made it from scikit-learn's `load_digits` (BSD licence), a copy of the test set of
    E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository,
    1998 (CC BY 4.0).
    """
    packed = gzip.decompress(Path(__file__).with_name("digits.gz").read_bytes())
    rows = np.frombuffer(packed, np.uint8).reshape(-1, 9)
    images = np.unpackbits(rows[:, :8], axis=1).reshape(-1, 8, 8, 1) * np.uint8(255)
    return Raw(images, rows[:, 8].astype(np.int32))


def pack_digits(values: np.ndarray, labels: np.ndarray) -> bytes:
    """The content of digits.gz, from values (M, 64) of 0..16 and labels (M,): a bit is a value >= 8.

    from sklearn.datasets import load_digits; digits = load_digits()
    Path("digits.gz").write_bytes(pack_digits(digits.data, digits.target))
    """
    bits = np.packbits(np.asarray(values) >= 8, axis=1)
    rows = np.column_stack([bits, np.asarray(labels, np.uint8)])
    return gzip.compress(rows.tobytes(), 9, mtime=0)


# ---- published


TORCHVISION = {"mnist_binary": "MNIST", "cifar10": "CIFAR10"}  # source -> the class that fetches it
_LOCAL = {"mnist_binary": ("mnist",), "cifar10": ("cifar-10-batches-py", "cifar10_subset.npz")}


def local_copy(source: str, data_dir: Path | None) -> Path | None:
    """What the folder of local copies has of a published source; None where it has nothing."""
    names = _LOCAL[source] if data_dir else ()
    paths = (data_dir / name for name in names)
    return next((path for path in paths if (path.is_file() if path.suffix else path.is_dir())), None)


def read_mnist(data_dir: Path | None) -> Raw:
    """MNIST: from idx files in `data_dir`/mnist, packed or not, else through torchvision."""
    folder = local_copy("mnist_binary", data_dir)
    if folder:
        parts = [
            (_read_idx(folder, f"{part}-images", 3), _read_idx(folder, f"{part}-labels", 1))
            for part in ("train", "t10k")
        ]
    else:
        parts = [(set_.data.numpy(), set_.targets.numpy()) for set_ in _torchvision("MNIST", "mnist/*.gz")]
    return _joined([(images[..., None], labels) for images, labels in parts], (28, 28, 1), (60_000, 10_000))


def read_cifar10(data_dir: Path | None) -> Raw:
    """CIFAR-10: cifar-10-batches-py or cifar10_subset.npz in `data_dir`, else through torchvision."""
    local = local_copy("cifar10", data_dir)
    if local and local.is_file():
        return _joined(_read_subset(local), (32, 32, 3), (50_000, 10_000), local.name)
    parts = _torchvision("CIFAR10", "cifar-10-batches-py", local and data_dir)
    parts = [(part.data, np.asarray(part.targets)) for part in parts]
    return _joined(parts, (32, 32, 3), (50_000, 10_000))


_PUBLISHED: dict[str, tuple[Callable[[Path | None], Raw], int]] = {
    "digits": (read_digits, 2),
    "mnist_binary": (read_mnist, 2),
    "cifar10": (read_cifar10, 256),
}


def _joined(parts, shape, published, found_in="the local copy"):
    """Training and test images in one, the test set last; says what of the published rows is missing."""
    (train, train_labels), (test, test_labels) = parts
    for images, labels in parts:
        if images.shape[1:] != shape or len(images) != len(labels) or images.dtype != np.uint8:
            raise InputError(
                f"{found_in}: expected images {shape} uint8 with a label each, found {len(images)} images "
                f"{images.shape[1:]} {images.dtype} and {len(labels)} labels"
            )
    partial = None
    if (len(train), len(test)) != published:
        partial = (
            f"{found_in} has {len(train):,} of the {published[0]:,} training images "
            f"and {len(test):,} of the {published[1]:,} test images"
        )
    images = np.concatenate([train, test])
    labels = np.concatenate([train_labels, test_labels]).astype(np.int32)
    return Raw(images, labels, range(len(train), len(images)), partial)


def _read_idx(folder, name, dimensions):
    """An array of bytes in the idx format, gzipped or not."""
    name = f"{name}-idx{dimensions}-ubyte"
    path = next((folder / each for each in (f"{name}.gz", name) if (folder / each).is_file()), None)
    if path is None:
        raise InputError(f"{folder / name}: no such file, gzipped or not")
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not readable: {error}") from None
    start = 4 * (1 + dimensions)
    shape = tuple(np.frombuffer(content[4:start], ">u4").astype(int))
    if content[:4] != bytes([0, 0, 8, dimensions]) or len(content) != start + np.prod(shape):
        raise InputError(f"{path}: not an idx file of bytes in {dimensions} dimension(s)")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _read_subset(path):
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return [(arrays[f"x_{name}"], arrays[f"y_{name}"].reshape(-1)) for name in ("train", "test")]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: expected arrays x_train, y_train, x_test, y_test: {error}") from None


def _torchvision(name, local, root=None):
    """The training and the test set of torchvision, which checks them; downloaded unless `root` is given."""
    from torchvision import datasets

    load = getattr(datasets, name)
    try:
        return [load(str(root or cache()), train=train, download=root is None) for train in (True, False)]
    except (OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        where = root / local if root else f"cannot download {name}"
        hint = "" if root else f"; or put {local} into a folder and set {DATA_DIR} to it"
        raise InputError(f"{where} ({type(error).__name__}: {reason}){hint}") from None


# ---- a folder


def read_folder(
    folder: str | Path | None, size: int | None = None, mode: str | None = None, progress: bool = True
) -> Raw:
    """All PNG and JPEG files below a folder, sorted by their path in it; without labels.

    With `size` every image is cut to its central square and resized (Lanczos); `mode` L or RGB converts it.
    Without them all images must be alike. Raises InputError that names the file, where one is not.
    """
    paths = files(folder)
    first = read_image(paths[0], size, mode)
    images = np.empty((len(paths), *first.shape), np.uint8)
    bar = tqdm(paths, desc="read", unit=" images", mininterval=0.5, disable=not progress)
    for row, path in enumerate(bar):
        pixels = read_image(path, size, mode)
        _check_alike(pixels.shape, path, first.shape, paths[0])
        images[row] = pixels
    return Raw(images)


def files(folder: str | Path | None) -> list[Path]:
    """The PNG and JPEG files below a folder, sorted by their path in it; InputError if there are none."""
    root = Path(folder or "")
    if folder is None or not root.is_dir():
        raise InputError(f"{folder}: no such folder")
    paths = [path for path in root.rglob("*") if path.suffix.lower() in _SUFFIXES and path.is_file()]
    paths.sort(key=lambda path: path.relative_to(root).as_posix())
    if not paths:
        raise InputError(f"{folder}: no PNG or JPEG files below it")
    return paths


def _check_alike(found, path, expected, first):
    if found[:2] != expected[:2]:
        sizes = f"{found[1]} x {found[0]} pixels, but {first} has {expected[1]} x {expected[0]}"
        raise InputError(f"{path}: {sizes}; set `size`")
    if found != expected:
        modes = {1: "grey", 3: "colour"}
        raise InputError(f"{path}: {modes[found[2]]}, but {first} is {modes[expected[2]]}; set `mode`")


def read_image(path, size, mode):
    """Pixels (H, W, C) uint8 of one file, upright; InputError that names it where it is no such image."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as image:
            image = ImageOps.exif_transpose(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = str(error).removesuffix(f" '{path}'")
        raise InputError(f"{path}: not a readable image: {reason}") from None
    if image.mode.startswith(("I", "F")):
        raise InputError(f"{path}: expected 8 bits per channel, found mode {image.mode}")
    if mode is None and image.mode not in ("L", "RGB"):
        raise InputError(f"{path}: expected mode L or RGB, found {image.mode}; set `mode`")
    image = image.convert(mode) if mode else image
    if size:
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        square = image.crop((left, top, left + side, top + side))
        image = square.resize((size, size), Image.Resampling.LANCZOS)
    pixels = np.asarray(image)
    return pixels if pixels.ndim == 3 else pixels[..., None]
