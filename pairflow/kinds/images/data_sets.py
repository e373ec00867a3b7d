"""Sources of images, and functions that read their files.

A new data set is an entry of `IMAGES` in the settings; one of torchvision is also an entry of `_TORCHVISION`.
"""

import gzip
import math
import sys
import zlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pairflow.artifacts.rows import named_when_damaged
from pairflow.data.download import DATA_DIR, RawFile, cache, local_copy
from pairflow.data.source import DatasetSize, DataSource, RowFile, files
from pairflow.data.split import held_out_rows, is_held_out
from pairflow.errors import InputError
from pairflow.files import gunzip, require_regular
from pairflow.kinds.images.prepare import PreparedImages, RawImages, prepare
from pairflow.kinds.images.settings import FILES, IMAGES, Images, KnownImages
from pairflow.runtime.progress import bar

LabelledImages = tuple[np.ndarray, np.ndarray]  # images (M, H, W, C) uint8 and labels (M,)


def read_digits() -> RawImages:
    """Read the 1,797 digits that come with the package, as images of the values 0 and 255, with their labels.

    A row of digits.gz has 9 bytes: the 8 x 8 bits, first pixel highest, and the label. A bit is 1 where
    scikit-learn's `load_digits` (BSD licence) has a value of 8 or more. The digits are the test set of E.
    Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998
    (CC BY 4.0).
    """
    packed = gzip.decompress(Path(__file__).with_name("digits.gz").read_bytes())
    rows = np.frombuffer(packed, np.uint8).reshape(-1, 9)
    images = np.unpackbits(rows[:, :8], axis=1).reshape(-1, 8, 8, 1) * np.uint8(255)
    return RawImages(images, rows[:, 8].astype(np.int32))


def read_idx_files(folder: Path) -> list[LabelledImages]:
    """Read training and test images with labels from a folder with MNIST's four files, gzipped or not."""
    return [
        (_read_idx(folder, f"{part}-images", 3)[..., None], _read_idx(folder, f"{part}-labels", 1))
        for part in ("train", "t10k")
    ]


def _read_idx(folder: Path, name: str, dimensions: int) -> np.ndarray:
    """Read the array of bytes `name`, of `dimensions` dimensions, from a folder of files in MNIST's
    format, idx, gzipped or not. In some copies file names have a dot. Raises InputError if the file is
    missing or damaged."""
    names = [f"{name}{joint}idx{dimensions}-ubyte" for joint in "-."]
    paths = (folder / f"{name}{end}" for name in names for end in (".gz", ""))
    if not (path := next(filter(Path.is_file, paths), None)):
        raise InputError(f"{folder / names[0]}: no such file, gzipped or not")
    require_regular(path)
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
    """Read training and test images with labels from a NumPy archive of arrays x_train, y_train, x_test and
    y_test."""
    require_regular(path)
    with (
        named_when_damaged(path, "expected arrays x_train, y_train, x_test, y_test"),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as arrays,
    ):
        return [(arrays[f"x_{name}"], arrays[f"y_{name}"].reshape(-1)) for name in ("train", "test")]


def read_torchvision(
    name: str, root: Path, download: bool, problem: str, advice: str = ""
) -> list[LabelledImages]:
    """Read training and test images with labels by torchvision, which checks the files.

    `name` is the class in torchvision.datasets, and `root` the folder that this class reads. Raises
    InputError with `problem`, torchvision's reason and `advice` if that fails.
    """
    from torchvision import datasets

    dataset = getattr(datasets, name)
    try:
        parts = [dataset(str(root), train=train, download=download) for train in (True, False)]
    except (OSError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise InputError(f"{problem} ({reason}){advice}") from None
    arrays = [(np.asarray(part.data), np.asarray(part.targets)) for part in parts]
    return [(images if images.ndim == 4 else images[..., None], labels) for images, labels in arrays]


def read_batches(folder: Path) -> list[LabelledImages]:
    """Read training and test images with labels from CIFAR-10's files; InputError if they are damaged."""
    return read_torchvision("CIFAR10", folder.parent, download=False, problem=str(folder))


def read_folder(
    folder: str | Path,
    size: int | None = None,
    mode: str | None = None,
    progress: bool = True,
    ground: str = "white",
) -> RawImages:
    """Read all PNG and JPEG files below a folder, sorted by their path, as images without labels.

    With `size` every image is cut to its central square and resized (Lanczos); `mode` L or RGB converts it.
    Transparent pixels are put on the colour `ground`; of a picture with several frames the first is read.
    Raises InputError for a file that cannot be read, or that differs from the first in size or mode.
    """
    left_out: dict[str, str] = {}
    paths = files(folder, *FILES, left_out)
    first, remarks = read_image(paths[0], size, mode, ground)[0], Counter[str]()
    images = np.empty((len(paths), *first.shape), np.uint8)
    for row, path in enumerate(bar(paths, total=len(paths), desc="read", unit=" images", quiet=not progress)):
        pixels, found = read_image(path, size, mode, ground)
        remarks.update(found)
        (height, width, channels), (rows, columns, planes) = pixels.shape, first.shape
        if (height, width) != (rows, columns):
            sizes = f"{width} x {height} pixels, but {paths[0]} has {columns} x {rows}"
            raise InputError(f"{path}: {sizes}; set `size` (--size N)")
        if channels != planes:
            modes = {1: "grey", 3: "colour"}
            raise InputError(
                f"{path}: {modes[channels]}, but {paths[0]} is {modes[planes]}; set `mode` (--mode L or RGB)"
            )
        images[row] = pixels
    notes = []
    for reason, count in sorted(Counter(left_out.values()).items()):
        example = next(name for name, why in left_out.items() if why == reason)
        notes.append(f"files and folders that were left out: {count:,} {reason}, such as {example}")
    notes += [f"{count:,} of {len(paths):,} images {remark}" for remark, count in sorted(remarks.items())]
    return RawImages(images, notes=tuple(f"{folder}: {note}" for note in notes))


def read_image(
    path: Path, size: int | None, mode: str | None, ground: str = "white"
) -> tuple[np.ndarray, list[str]]:
    """Read the pixels (H, W, C) uint8 of one file, turned upright, and remarks on what is not kept of it.
    `size`, `mode` and `ground` are as in `read_folder`: side of a square, L or RGB, and colour behind
    transparent pixels. Raises InputError if it is no readable image."""
    from PIL import Image, ImageOps

    require_regular(path)
    try:
        with Image.open(path, formats=("PNG", "JPEG")) as file:  # decoders of rare formats are less safe
            frames, depth = getattr(file, "n_frames", 1), _bit_depth(path)
            image: Image.Image = ImageOps.exif_transpose(file)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = str(error).removesuffix(f" '{path}'")
        raise InputError(f"{path}: not a readable image: {reason}") from None
    if depth > 8:
        raise InputError(f"{path}: expected 8 bits per channel, found {depth}; convert the image first")
    if mode is None and image.mode not in ("L", "RGB"):
        raise InputError(f"{path}: expected mode L or RGB, found {image.mode}; set `mode` (--mode L or RGB)")
    wanted, remarks = mode or image.mode, ["have several frames; the first is read"] * (frames > 1)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        if (np.asarray(image)[..., 3] < 255).any():
            remarks.append(f"are transparent; their ground is {ground}")
        image = Image.alpha_composite(Image.new("RGBA", image.size, ground), image)
    image = image.convert(wanted)
    if size:
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        square = image.crop((left, top, left + side, top + side))
        image = square.resize((size, size), Image.Resampling.LANCZOS)
    pixels = np.asarray(image)
    return pixels if pixels.ndim == 3 else pixels[..., None], remarks


def _bit_depth(path: Path) -> int:
    """Return the bits per channel of a PNG file, of which Pillow keeps only 8; 8 for any other file."""
    with path.open("rb") as file:
        head = file.read(25)
    return head[24] if head.startswith(b"\x89PNG") else 8


class ImageSource(DataSource):
    """A data set of images that have one shape, with or without labels."""

    @abstractmethod
    def load(self, progress: bool = True) -> RawImages:
        """Read the pixels, downloaded if need be. Raises InputError for missing or damaged files."""

    def read(self, settings: Images, progress: bool = True) -> PreparedImages:
        """Load the images and turn them into token rows. Raises InputError as `load` and `prepare` do."""
        levels = self.size.vocabulary_size if self.size else settings.levels or 256
        return prepare(self.load(progress), levels, settings)


@dataclass(frozen=True, eq=False)
class EmbeddedDigits(ImageSource):
    """The digits that come with the package, without a published test set."""

    name: str
    size: DatasetSize

    def load(self, progress: bool = True) -> RawImages:
        return read_digits()


class Copies(NamedTuple):
    """Where a data set that torchvision can read may lie on this machine.

    Attributes:
        cached: the name of torchvision's folder in the cache.
        words: what error messages call a copy that the user has.
        readers: the names that such a copy may have, each with the function that reads it.
    """

    cached: str
    words: str
    readers: Mapping[str, Callable[[Path], list[LabelledImages]]]


_TORCHVISION = {
    "MNIST": Copies("MNIST", "mnist/*.gz", {"mnist": read_idx_files}),
    "CIFAR10": Copies(
        "cifar-10-batches-py",
        "cifar-10-batches-py",
        {"cifar-10-batches-py": read_batches, "cifar10_subset.npz": read_subset},
    ),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class PublishedImages(ImageSource):
    """Images with a published test set, from a local copy or downloaded by torchvision."""

    name: str
    size: DatasetSize
    known: KnownImages

    @property
    def copies(self) -> Copies:
        return _TORCHVISION[self.known.torchvision]

    def load(self, progress: bool = True) -> RawImages:
        readers, words = self.copies.readers, self.copies.words
        if local := local_copy(readers):
            return self._joined(readers[local.name](local), local.name if local.suffix else None)
        problem = f"cannot download {self.known.torchvision}"
        advice = f"; try again, or put {words} into a folder and set {DATA_DIR} to it"
        return self._joined(read_torchvision(self.known.torchvision, cache(), True, problem, advice))

    def published_files(self) -> list[RawFile]:
        return [RawFile(tuple(self.copies.readers), self.known.url, cached=self.copies.cached)]

    def _joined(self, parts: list[LabelledImages], file: str | None = None) -> RawImages:
        """Join training and test images, each with labels, and add the black margin of the data set.
        `file` is the name of a local copy that is not a folder. Raises InputError for images of another
        shape."""
        assert self.size.shape is not None
        where = file or "the local copy"
        sides = self.known.margin, self.known.margin
        margin = ((0, 0), sides, sides, (0, 0))
        shape = (*(side - sum(sides) for side in self.size.shape[1:]), self.size.shape[0])
        for images, labels in parts:
            if images.shape[1:] != shape or len(images) != len(labels) or images.dtype != np.uint8:
                raise InputError(
                    f"{where}: expected images {shape} uint8 with a label each, found "
                    f"{len(images)} images {images.shape[1:]} {images.dtype} and {len(labels)} labels"
                )
        train, test = (len(labels) for _, labels in parts)
        partial = None
        if (train, test) != (self.size.rows, self.size.validation_rows):
            partial = (
                f"{self.name}: {where} has {train:,} of the {self.size.rows:,} training images "
                f"and {test:,} of the {self.size.validation_rows:,} test images"
            )
        images, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return RawImages(np.pad(images, margin), labels.astype(np.int32), range(train, train + test), partial)


def split_size(total: int, levels: int, shape: tuple[int, ...], settings: Images) -> DatasetSize:
    """Return the size of data from `total` images of a folder, some of which become test images."""
    held_out = math.ceil(total * settings.validation_fraction)
    return DatasetSize.shaped(total - held_out, held_out, levels, shape).limited(settings)


@dataclass(frozen=True, eq=False, kw_only=True)
class PublishedFolder(ImageSource):
    """Published colour images, without labels or a test set, in a folder that the user prepares. The folder
    has one of the names `folders`. Each image is resized to the shape of `size`."""

    name: str
    size: DatasetSize
    folders: tuple[str, ...]

    def load(self, progress: bool = True) -> RawImages:
        assert self.size.shape is not None
        if (folder := local_copy(self.folders)) is None:
            folders = " or ".join(f"{name}/" for name in self.folders)
            needed = f"expected {self.size.total:,} images in {folders}, in the folder that {DATA_DIR} names"
            raise InputError(f"{self.name} is not downloaded: {needed}, found none")
        raw = read_folder(folder, self.size.shape[1], "RGB", progress)
        if (count := len(raw.images)) == self.size.total:
            return raw
        partial = f"{self.name}: {folder.name} has {count:,} of the {self.size.total:,} images"
        return replace(raw, partial=partial)

    def measure(self, settings: Images) -> DatasetSize:
        assert self.size.shape is not None
        folder = local_copy(self.folders)
        total = len(files(folder, *FILES)) if folder else self.size.total
        return split_size(total, self.size.vocabulary_size, self.size.shape, settings)

    guess = measure

    def published_files(self) -> list[RawFile]:
        return [RawFile(self.folders)]


@dataclass(frozen=True)
class ImageFolder(RowFile, ImageSource):
    """A user's folder of images, cut to squares of `side` pixels and converted to `mode` if these are set.
    Transparent pixels get the colour `ground`. Test images are in a second folder `held_out`, or in folders
    whose names say so if `split` is "folders".
    """

    side: int | None = None
    mode: str | None = None
    ground: str = "white"
    split: str = "random"
    held_out: Path | None = None
    name = "image_folder"
    what = "folder"

    def load(self, progress: bool = True) -> RawImages:
        raw = self._read(self.path, progress)
        if self.held_out:
            test = self._read(self.held_out, progress).images
            if test.shape[1:] != raw.images.shape[1:]:
                (height, width, _), (rows, columns, _) = test.shape[1:], raw.images.shape[1:]
                sizes = f"{width} x {height} pixels, but those in {self.path} have {columns} x {rows}"
                advice = "set `size` and `mode` (--size N --mode L)"
                raise InputError(f"{self.held_out}: images of {sizes}, or another mode; {advice}")
            raw = RawImages(np.concatenate([raw.images, test]))
        names = sorted({*self._names()})
        if not self.held_out and self.split == "random" and len({*map(is_held_out, names)} - {None}) == 2:
            keeps = f"has the folders {', '.join(names)}; `split: folders` keeps them apart"
            print(f"pairflow preprocess: note: {self.path}: {keeps}", file=sys.stderr)
        return replace(raw, test_rows=self.test_rows())

    def _read(self, folder: Path, progress: bool) -> RawImages:
        return read_folder(folder, self.side, self.mode, progress, self.ground)

    def _names(self) -> list[str]:
        """Return for each image, in order, the name of the folder directly below `path` that it is in; empty
        for an image in `path` itself."""
        paths = (path.relative_to(self.path).parts for path in files(self.path, *FILES))
        return [name if rest else "" for name, *rest in paths]

    def test_rows(self) -> Sequence[int] | None:
        """Return the row numbers of the test images; None if these are drawn at random."""
        names = self._names()
        if self.held_out:
            return range(len(names), len(names) + len(files(self.held_out, *FILES)))
        return held_out_rows(names, f"{self.path}: folders") if self.split == "folders" else None

    def measure(self, settings: Images) -> DatasetSize:
        paths, test = files(self.path, *FILES), self.test_rows()
        height, width, channels = read_image(paths[0], self.side, self.mode)[0].shape
        levels, shape = settings.levels or 256, (channels, height, width)
        if test is None:
            return split_size(len(paths), levels, shape, settings)
        rows = len(paths) - (0 if self.held_out else len(test))
        return DatasetSize.shaped(rows, len(test), levels, shape).limited(settings)

    def guess(self, settings: Images) -> DatasetSize:
        try:
            return self.measure(settings)
        except InputError:  # which preprocessing reports
            return super().guess(settings)


def _known_source(name: str, known: KnownImages) -> ImageSource:
    size = DatasetSize.shaped(known.rows, known.held_out, known.levels, known.shape)
    if known.torchvision:
        return PublishedImages(name=name, size=size, known=known)
    if known.folders:
        return PublishedFolder(name=name, size=size, folders=known.folders)
    return EmbeddedDigits(name, size)


DATA_SETS = {name: _known_source(name, known) for name, known in IMAGES.items()}
