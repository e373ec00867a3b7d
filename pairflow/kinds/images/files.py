"""Files of images: one reader per format, each of which gives pixels and, where there are some, labels."""

import gzip
import hashlib
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pairflow.artifacts.rows import named_when_damaged
from pairflow.data.source import files
from pairflow.data.unpack import gunzip
from pairflow.errors import InputError
from pairflow.kinds.images.settings import FILES
from pairflow.runtime.progress import bar

Shape = tuple[int, int, int]
LabelledImages = tuple[np.ndarray, np.ndarray]


class TorchvisionError(Exception):
    """torchvision could not download or read a data set."""


@dataclass(frozen=True)
class RawImages:
    """Images (M, H, W, C) uint8 with labels (M,), and the rows of the published test set if there is one.

    `partial` says in words which part of the published data set is missing here.
    """

    images: np.ndarray
    labels: np.ndarray | None = None
    test_rows: range | None = None
    partial: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of pixels and labels, whatever the files that they came from."""
        content = hashlib.sha256(np.ascontiguousarray(self.images).data)
        if self.labels is not None:
            content.update(self.labels.astype("<i4").data)
        return content.hexdigest()


def read_digits() -> RawImages:
    """The embedded digits, binarised, as images of 0 and 255.

    Each of the 1,797 rows of digits.gz is 9 bytes: the 8 x 8 bits, first pixel highest, and the label. A bit
    says whether a value of scikit-learn's `load_digits` (BSD licence) is 8 or more. That is a copy of the
    test set of E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
    Repository, 1998 (CC BY 4.0).
    """
    packed = gzip.decompress(Path(__file__).with_name("digits.gz").read_bytes())
    rows = np.frombuffer(packed, np.uint8).reshape(-1, 9)
    images = np.unpackbits(rows[:, :8], axis=1).reshape(-1, 8, 8, 1) * np.uint8(255)
    return RawImages(images, rows[:, 8].astype(np.int32))


def read_idx_files(folder: Path) -> list[LabelledImages]:
    """Training and test images and labels of a folder with the four files of MNIST, gzipped or not."""
    return [
        (_read_idx(folder, f"{part}-images", 3)[..., None], _read_idx(folder, f"{part}-labels", 1))
        for part in ("train", "t10k")
    ]


def _read_idx(folder: Path, name: str, dimensions: int) -> np.ndarray:
    """An array of bytes in the idx format, gzipped or not."""
    name = f"{name}-idx{dimensions}-ubyte"
    path = next((path for path in (folder / f"{name}.gz", folder / name) if path.is_file()), None)
    if path is None:
        raise InputError(f"{folder / name}: no such file, gzipped or not")
    try:
        content = gunzip(path) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not readable: {error}") from None
    start = 4 * (1 + dimensions)
    shape = np.frombuffer(content[4:start], ">u4").tolist()
    if content[:4] != bytes([0, 0, 8, dimensions]) or len(content) != start + math.prod(shape):
        raise InputError(f"{path}: not an idx file of bytes in {dimensions} dimension(s)")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_subset(path: Path) -> list[LabelledImages]:
    """Training and test images and labels of a NumPy archive."""
    with (
        named_when_damaged(path, "expected arrays x_train, y_train, x_test, y_test"),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as arrays,
    ):
        return [(arrays[f"x_{name}"], arrays[f"y_{name}"].reshape(-1)) for name in ("train", "test")]


def read_torchvision(name: str, root: Path, download: bool) -> list[LabelledImages]:
    """Training and test images and labels of a class of torchvision, which checks them; TorchvisionError."""
    from torchvision import datasets

    dataset = getattr(datasets, name)
    try:
        parts = [dataset(str(root), train=train, download=download) for train in (True, False)]
    except (OSError, RuntimeError) as error:
        raise TorchvisionError(f"{type(error).__name__}: {' '.join(str(error).split())}") from None
    arrays = [(np.asarray(part.data), np.asarray(part.targets)) for part in parts]
    return [(images if images.ndim == 4 else images[..., None], labels) for images, labels in arrays]


def read_batches(folder: Path) -> list[LabelledImages]:
    """Training and test images and labels of CIFAR-10's own files; InputError if they are damaged."""
    try:
        return read_torchvision("CIFAR10", folder.parent, download=False)
    except TorchvisionError as error:
        raise InputError(f"{folder} ({error})") from None


def read_folder(
    folder: str | Path, size: int | None = None, mode: str | None = None, progress: bool = True
) -> RawImages:
    """All PNG and JPEG files below a folder, sorted by their path in it; without labels.

    With `size` every image is cut to its central square and resized (Lanczos); `mode` L or RGB converts it.
    InputError names the first file that cannot be read, or without them has another size or mode.
    """
    paths = files(folder, *FILES)
    first = read_image(paths[0], size, mode)
    images = np.empty((len(paths), *first.shape), np.uint8)
    for row, path in enumerate(bar(paths, total=len(paths), desc="read", unit=" images", quiet=not progress)):
        pixels = read_image(path, size, mode)
        (height, width, channels), (rows, columns, planes) = pixels.shape, first.shape
        if (height, width) != (rows, columns):
            sizes = f"{width} x {height} pixels, but {paths[0]} has {columns} x {rows}"
            raise InputError(f"{path}: {sizes}; set `size`")
        if channels != planes:
            modes = {1: "grey", 3: "colour"}
            raise InputError(f"{path}: {modes[channels]}, but {paths[0]} is {modes[planes]}; set `mode`")
        images[row] = pixels
    return RawImages(images)


def read_image(path: Path, size: int | None, mode: str | None) -> np.ndarray:
    """Pixels (H, W, C) uint8 of one file, upright; InputError that names the file if it is none."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path, formats=("PNG", "JPEG")) as file:  # no other decoder
            image: Image.Image = ImageOps.exif_transpose(file)
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
