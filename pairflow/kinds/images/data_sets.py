"""The data sets of images. A new one is an entry here, and its name in the settings `Images.source`."""

from pathlib import Path

from pairflow.data.source import DatasetSize
from pairflow.kinds.images import files as image_files
from pairflow.kinds.images.settings import Images
from pairflow.kinds.images.sources import (
    EmbeddedDigits,
    ImageFolder,
    ImageSource,
    PublishedFolder,
    PublishedImages,
)

_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz"
_CIFAR = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"

_IMAGES: tuple[ImageSource, ...] = (
    EmbeddedDigits("digits", DatasetSize.shaped(1_617, 180, 2, (1, 8, 8))),
    PublishedImages(
        name="mnist_binary",
        size=DatasetSize.shaped(60_000, 10_000, 2, (1, 28, 28)),
        torchvision="MNIST",
        cached="MNIST",
        url=_MNIST,
        copies="mnist/*.gz",
        readers={"mnist": image_files.read_idx_files},
    ),
    # The same with 256 grey levels, in a black rim that makes them 32 x 32: for continuous flows.
    PublishedImages(
        name="mnist",
        size=DatasetSize.shaped(60_000, 10_000, 256, (1, 32, 32)),
        torchvision="MNIST",
        cached="MNIST",
        url=_MNIST,
        copies="mnist/*.gz",
        readers={"mnist": image_files.read_idx_files},
        rim=2,
    ),
    PublishedImages(
        name="cifar10",
        size=DatasetSize.shaped(50_000, 10_000, 256, (3, 32, 32)),
        torchvision="CIFAR10",
        cached="cifar-10-batches-py",
        url=_CIFAR,
        copies="cifar-10-batches-py",
        readers={
            "cifar-10-batches-py": image_files.read_batches,
            "cifar10_subset.npz": image_files.read_subset,
        },
    ),
    # Faces at 64 x 64: a folder of that size, or NVIDIA's thumbnails of 128 x 128.
    PublishedFolder(
        name="ffhq64",
        size=DatasetSize.shaped(70_000, 0, 256, (3, 64, 64)),
        folders=("ffhq64", "thumbnails128x128"),
    ),
)
DATA_SETS: dict[str, ImageSource] = {images.name: images for images in _IMAGES}


def source_of(settings: Images, folder: Path = Path()) -> ImageSource:
    """The source that the settings name; a relative path of an own folder is one below `folder`."""
    own = ImageFolder(folder / (settings.folder or ""), settings.size, settings.mode)
    return DATA_SETS.get(settings.source, own)
