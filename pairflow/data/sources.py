"""Every data set as one object, which fetches it, reads it, knows its size and says whether it is here.

A new data set is one more entry of `MOLECULES`, `IMAGES` or `TEXTS`, and its name in pairflow.config.data: in
`MOLECULE_SOURCES` or `TEXT_SOURCES`, or among the sources of `Images`.
"""

from pathlib import Path

from pairflow.config import DataSettings, Images, Molecules, Text, Tokens, Vectors
from pairflow.data import image_files
from pairflow.data.download import RawFile
from pairflow.data.image_sources import (
    EmbeddedDigits,
    ImageFolder,
    ImageSource,
    PublishedFolder,
    PublishedImages,
)
from pairflow.data.lm1b import Lm1b
from pairflow.data.molecule_sources import MoleculeFile, MoleculeSource, MoleculeTable
from pairflow.data.source import DatasetSize
from pairflow.data.text_sources import EmbeddedText, OwnText, Text8, TextSource
from pairflow.data.token_rows import TokenFile
from pairflow.data.vectors import TwoMoons, VectorFile, VectorSource

_GITHUB = "https://raw.githubusercontent.com"
_QM9 = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/molnet_publish/qm9.csv"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz"
_CIFAR = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
_LM1B = "1-billion-word-language-modeling-benchmark-r13output.tar.gz"
_ZINC = "250k_rndm_zinc_drugs_clean_3.csv"

_TABLES = (
    # All small molecules of C, N, O and F, made by pairflow.data.enumerate_molecules.
    MoleculeTable("small_molecules", RawFile(("small_molecules.csv.gz",)), DatasetSize(7_561, 398, 24)),
    # QM9, molecules of up to 9 heavy atoms, as DeepChem publishes it.
    MoleculeTable("qm9", RawFile(("qm9.csv.gz", "qm9.csv"), _QM9), DatasetSize(127_190, 6_695, 40)),
    # ZINC-250k, drug-like molecules, with the validation split that GDSS publishes.
    MoleculeTable(
        "zinc250k",
        RawFile(
            ("zinc250k.csv.gz", "zinc250k.csv", _ZINC),
            f"{_GITHUB}/aspuru-guzik-group/chemical_vae/HEAD/models/zinc_properties/{_ZINC}",
            "d31726bf929d35cb52fa109db90411c90a000dfe",
        ),
        DatasetSize(224_568, 24_887, 72),
        validation=RawFile(
            ("valid_idx_zinc250k.json",),
            f"{_GITHUB}/harryjo97/GDSS/HEAD/data/valid_idx_zinc250k.json",
            "b4b45d15971cb9115efeb8044195bf3440eb02f8",
        ),
    ),
)
_IMAGES: tuple[ImageSource, ...] = (
    EmbeddedDigits("digits", DatasetSize.for_images(1_617, 180, 2, (1, 8, 8))),
    PublishedImages(
        name="mnist_binary",
        size=DatasetSize.for_images(60_000, 10_000, 2, (1, 28, 28)),
        torchvision="MNIST",
        cached="MNIST",
        url=_MNIST,
        copies="mnist/*.gz",
        readers={"mnist": image_files.read_idx_files},
    ),
    # The same with 256 grey levels, in a black rim that makes them 32 x 32: for continuous flows.
    PublishedImages(
        name="mnist",
        size=DatasetSize.for_images(60_000, 10_000, 256, (1, 32, 32)),
        torchvision="MNIST",
        cached="MNIST",
        url=_MNIST,
        copies="mnist/*.gz",
        readers={"mnist": image_files.read_idx_files},
        rim=2,
    ),
    PublishedImages(
        name="cifar10",
        size=DatasetSize.for_images(50_000, 10_000, 256, (3, 32, 32)),
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
        size=DatasetSize.for_images(70_000, 0, 256, (3, 64, 64)),
        folders=("ffhq64", "thumbnails128x128"),
    ),
)
_TEXTS: tuple[TextSource, ...] = (
    # Tiny Shakespeare, 40,000 lines of his plays, in the public domain.
    EmbeddedText(
        "shakespeare",
        RawFile(("shakespeare.txt.xz",)),
        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    ),
    Text8(
        "text8",
        RawFile(
            ("text8.zip",),
            "http://mattmahoney.net/dc/text8.zip",
            sha256="a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
        ),
    ),
    Lm1b(
        "lm1b",
        RawFile(
            (_LM1B,),
            f"https://www.statmt.org/lm-benchmark/{_LM1B}",
            sha256="01ba60381110baf7f189dfd2b8374de371e8c9a340835793f190bdae9e90a34e",
        ),
    ),
)
MOLECULES: dict[str, MoleculeTable] = {table.name: table for table in _TABLES}
IMAGES: dict[str, ImageSource] = {images.name: images for images in _IMAGES}
TEXTS: dict[str, TextSource] = {text.name: text for text in _TEXTS}


def molecule_source(settings: Molecules, folder: Path = Path()) -> MoleculeSource:
    """The source of an experiment on molecules; a relative path of an own file is one below `folder`."""
    return MOLECULES.get(settings.source) or MoleculeFile(folder / settings.source)


def image_source(settings: Images, folder: Path = Path()) -> ImageSource:
    """The source of an experiment on images; a relative path of an own folder is one below `folder`."""
    own = ImageFolder(folder / (settings.folder or ""), settings.size, settings.mode)
    return IMAGES.get(settings.source, own)


def text_source(settings: Text, folder: Path = Path()) -> TextSource:
    """The source of an experiment on text; a relative path of an own file or folder is one below `folder`."""
    return TEXTS.get(settings.source) or OwnText(folder / settings.source)


def vector_source(settings: Vectors, folder: Path = Path()) -> VectorSource:
    """The source of an experiment on vectors; a relative path of an own file is one below `folder`."""
    return VectorFile(folder / settings.file) if settings.file else TwoMoons()


def source_of(
    settings: DataSettings, folder: Path = Path()
) -> MoleculeSource | ImageSource | TextSource | TokenFile | VectorSource:
    """The source that the data settings of an experiment name; relative paths are those below `folder`."""
    if isinstance(settings, Tokens):
        return TokenFile(folder / settings.file)
    if isinstance(settings, Text):
        return text_source(settings, folder)
    if isinstance(settings, Vectors):
        return vector_source(settings, folder)
    if isinstance(settings, Molecules):
        return molecule_source(settings, folder)
    return image_source(settings, folder)
