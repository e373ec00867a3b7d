"""Settings of images: the raw data, and how samples are compared with them."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from pairflow.errors import InputError
from pairflow.files import Json
from pairflow.limits import MAX_LENGTH
from pairflow.metrics.metric import Metric
from pairflow.metrics.shared import PATH_GROUP, PATHS
from pairflow.settings.check import Seed, Settings, nearest
from pairflow.settings.fields import DataSettings, HeldOut, Share, TrainingRows
from pairflow.settings.flows import FLOWS
from pairflow.settings.sampling import RealDraws

FILES = ("PNG or JPEG", (".png", ".jpg", ".jpeg"))  # what a folder may hold: name in messages, suffixes


class KnownImages(NamedTuple):
    """A data set of images that pairflow knows by name.

    Attributes:
        rows, held_out: the numbers of training and test images.
        levels, shape: grey levels (K), and the shape (C, H, W).
        torchvision: for a set with published test images, the class of torchvision that downloads it.
        url: the address of one file of that download.
        margin: the black pixels that are added on each side of an image.
        folders: for a set that the user prepares, the names that its folder may have.
        classifier: the SHA-256 of the weights of its classifier in pairflow/kinds/images/classifiers, if it
            has one (benchmarks/train_classifier.py makes them).
        in_paper: whether it is in the paper's tables.
    """

    rows: int
    held_out: int
    levels: int
    shape: tuple[int, int, int]
    torchvision: str = ""
    url: str = ""
    margin: int = 0
    folders: tuple[str, ...] = ()
    classifier: str = ""
    in_paper: bool = False


_MNIST_BINARY = KnownImages(
    60_000,
    10_000,
    levels=2,
    shape=(1, 28, 28),
    torchvision="MNIST",
    url="https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz",
    classifier="7c3529eb3870ae431610528b25b3a351a30b4c0bb892391ef6dea627bcd225a5",
    in_paper=True,
)
IMAGES = {
    "digits": KnownImages(
        1_617,
        180,
        levels=2,
        shape=(1, 8, 8),
        classifier="29beb117696e08a958661afd1b9e273cb80ca44ef776d8a250313fe794dcafd7",
    ),
    "mnist_binary": _MNIST_BINARY,
    # MNIST for continuous flows: 256 grey levels, and a black margin that makes the images 32 x 32.
    "mnist": _MNIST_BINARY._replace(
        levels=256,
        shape=(1, 32, 32),
        margin=2,
        classifier="b966a8496cf019f458554b7ad8560c31ba0b5f11f1c8bc4ceb93d211a4633018",
    ),
    "cifar10": KnownImages(
        50_000,
        10_000,
        levels=256,
        shape=(3, 32, 32),
        torchvision="CIFAR10",
        url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        in_paper=True,
    ),
    # Faces at 64 x 64: a folder of that size, or NVIDIA's thumbnails of 128 x 128.
    "ffhq64": KnownImages(
        70_000, 0, levels=256, shape=(3, 64, 64), folders=("ffhq64", "thumbnails128x128"), in_paper=True
    ),
}
CLASSIFIERS = {name: known.classifier for name, known in IMAGES.items() if known.classifier}
if TYPE_CHECKING:
    ImageName = str
else:
    ImageName = Literal[(*IMAGES, "image_folder")]
ExtractorName = Literal["classifier", "inception", "dinov2"]

_by_features = partial(Metric, against="to the {} images", real="real images")
_frechet = partial(
    _by_features,
    best="lowest",
    log=True,
    description="How far samples are from real images by the features of a network. It is called FID if the "
    "network is Inception with its published weights.",
    formula="|m1 - m2|² + trace(C1 + C2 - 2 (C1 C2)^(1/2)), with means m and covariances C of the features "
    "of samples (1) and real images (2)",
    unit="none",
    pitfalls="compare only equal numbers of samples and the same network",
    source="Heusel et al. 2017 (`pairflow/metrics/frechet.py`)",
)
_neighbours = partial(Metric, against="to the nearest {} image", real="real images", group="neighbours")
_nearest = partial(
    _neighbours,
    description="How far a sample is from the nearest training image (`nn_l2`), and how similar it is to "
    "the most similar one (`nn_cosine`).",
    formula="mean over samples of the smallest L2 distance of pixels, or of the largest cosine of features",
    unit="pixel values of 0 to 255; none, at most 1",
    better="neither; samples much nearer than held-out images are nearly copies",
    pitfalls="distances of pixels say little about content; compare cosines only by the same network",
    source="exact search (`pairflow/kinds/images/measures.py`)",
)
METRICS = {
    "fid": _frechet("FID", leads_as="FID"),
    "fd": _frechet("FD", leads_as="FD"),
    "is": _by_features(
        "IS",
        "highest",
        description="Inception Score: high if each sample looks like one class, and all samples together "
        "like many classes.",
        formula="exp(mean over samples x of KL(p(y|x) || p(y))), with the network's class probabilities "
        "p(y|x) and their mean p(y), computed for each of ten parts of the samples and averaged",
        unit="none, 1 to the number of classes",
        pitfalls="it never looks at real data: one perfect image of each class is enough",
        source="Salimans et al. 2016 (`pairflow/kinds/images/measures.py`)",
    ),
    "nn_l2": _nearest("L2", log=True, features=False),
    "nn_cosine": _nearest("cosine"),
    "nn_copies": _neighbours(
        "share of copies",
        against="of {} images",
        chart=False,
        features=False,
        description="Share of samples that equal a training image.",
        unit="share, 0 to 1",
        better="lower",
        pitfalls="a copy with one changed pixel does not count; read it with `nn_l2`",
        source="exact search (`pairflow/kinds/images/measures.py`)",
    ),
    **PATHS,
}
GROUPS = {"neighbours": "Distance to the nearest images", **PATH_GROUP}


class RealImages(NamedTuple):
    """The files of the real images that samples are compared with, and of their statistics."""

    tokens: Annotated[Path, "Training images (Parquet)."]
    validation: Annotated[Path, "Test images (Parquet)."]
    train_reference: Annotated[Path, "Feature statistics of the training images (Parquet)."]
    test_reference: Annotated[
        Path | None, "Feature statistics of the test images (Parquet), if there are test images."
    ] = None


class ExtractorSettings(Settings):
    """The network whose features are used to compare images."""

    extractor: ExtractorName = Field(
        "classifier",
        description="Network that computes the features: a small `classifier`, "
        "`inception` (the network of FID) or `dinov2` (a self-supervised transformer).",
    )
    weights: str | None = Field(
        None,
        description="Weight file of inception or dinov2, or the name of a classifier that comes with "
        "pairflow (digits, mnist_binary or mnist). Default: the published weights, which are downloaded, or "
        "the classifier of the data set.",
    )
    sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description="SHA-256 checksum of the weight file. Without it, only the published weights are "
        "accepted.",
    )

    @model_validator(mode="before")
    @classmethod
    def _know_the_checksum(cls, values: object) -> object:
        """Add the checksum of a classifier that comes with pairflow, so that results depend on it."""
        if isinstance(values, dict) and values.get("extractor", "classifier") == "classifier":
            known = CLASSIFIERS.get(str(values.get("weights")))
            return {**values, "sha256": known} if known and values.get("sha256") is None else values
        return values

    @model_validator(mode="after")
    def _weights_fit(self) -> "ExtractorSettings":
        if self.extractor == "classifier" and self.weights not in (None, *CLASSIFIERS):
            expected = f"{' or '.join(CLASSIFIERS)}, the classifiers that come with pairflow"
            raise ValueError(f"weights: expected {expected}; found '{self.weights}'")
        if self.sha256 is not None and self.weights is None:
            raise ValueError("sha256: expected weights, whose checksum this is; found none")
        return self

    def recorded(self, parameters: Mapping[str, object]) -> Json:
        """Return the name of the extractor that metric files with these settings record: {"extractor": name}.
        The name of a classifier contains a hash of its weights. The name of another extractor may have any
        hash, and is returned as `parameters` have it."""
        if self.extractor == "classifier":
            return {"extractor": f"classifier-{str(self.sha256)[:8]}"}
        name = str(parameters.get("extractor", ""))
        return {"extractor": name if name.partition("-")[0] == self.extractor else self.extractor}


class ComparisonSettings(ExtractorSettings):
    """Settings of the comparison of samples with real images."""

    pixels: bool = Field(
        True, description="Also measure the distance of pixels to the nearest training image."
    )


Extractor = Annotated[  # a name stands for the default settings
    ExtractorSettings,
    BeforeValidator(
        lambda value: {"extractor": value} if isinstance(value, str) else value,
        json_schema_input_type=ExtractorName | ExtractorSettings,
    ),
]
# Error messages name the tags, which are no keys of the configuration: hence the brackets.
Extractors = Annotated[
    Annotated[Extractor, Tag("<one>")]
    | Annotated[tuple[Extractor, ...], Field(min_length=1), Tag("<several>")],
    Discriminator(lambda value: "<several>" if isinstance(value, list | tuple) else "<one>"),
]


class FloorSettings(RealDraws, ComparisonSettings):
    """Settings of the comparison of real images with other real images, which shows what values are usual."""


class ImagesExperiment(Settings):
    """The keys that an experiment has only if its data are images."""

    features: Extractors | None = Field(
        None,
        description="The network whose features are used to compare images, or a list of several: "
        "`classifier`, `inception` or `dinov2`, each by its name or with settings.",
    )


class Images(DataSettings):
    """Images, as rows of N = channels x height x width pixels, each one of K grey levels."""

    kind = "images"
    names = (*IMAGES, "image_folder")
    paper = tuple(name for name, known in IMAGES.items() if known.in_paper)
    flows = tuple(FLOWS)
    experiment_keys = ImagesExperiment
    folder_files = FILES
    metrics, groups = METRICS, GROUPS

    source: ImageName = Field(
        description="Data set: digits (embedded, 8 x 8), mnist_binary, mnist (256 grey levels, with a black "
        "margin that makes it 32 x 32), cifar10, ffhq64, or image_folder (your own)."
    )
    folder: str | None = Field(
        None, min_length=1, description="Folder of PNG and JPEG files; only for image_folder."
    )
    size: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="Side in pixels: the central square of every image is "
        "resized to it; only for image_folder.",
    )
    mode: Literal["L", "RGB"] | None = Field(
        None, description="Convert every image to grey (L) or colour (RGB); only for image_folder."
    )
    ground: str = Field(
        "white",
        pattern=r"^(white|black|#[0-9a-fA-F]{6})$",
        description="Colour behind transparent pixels: white, black or #rrggbb; only for image_folder.",
    )
    levels: int | None = Field(
        None,
        ge=2,
        le=256,
        description="Number of grey levels (K), a divisor of 256. Default: 256. Only for image_folder.",
    )
    split: Literal["random", "folders"] = Field(
        "random",
        description="How test images are chosen from a folder of your own: at `random`, or by its `folders` "
        "train, and valid, test or the like. All images that are not in train are held out.",
    )
    held_out: HeldOut = None
    flips: bool = Field(False, description="Append the mirror image of every training image.")
    training_rows: TrainingRows = None
    validation_fraction: Share = Field(
        0.1,
        description="Share of test images, for a data set without published ones. With 0 there is no "
        "validation loss, and samples are compared with training images only.",
    )
    split_seed: Seed = Field(42, description="Seed of the random split and subset.")

    @property
    def file(self) -> None:
        """Always None: images come from a folder, or from a data set that pairflow knows by name."""

    @field_validator("levels")
    @classmethod
    def _levels_divide(cls, levels: int | None) -> int | None:
        if levels and 256 % levels:
            raise ValueError(f"{levels} does not divide 256; expected 2, 4, 8, 16, 32, 64, 128 or 256")
        return levels

    @model_validator(mode="after")
    def _fits_the_source(self) -> "Images":
        if self.own_split and self.validation_fraction != 0.1:
            raise ValueError("validation_fraction: does not go with test images of your own")
        if self.source == "image_folder":
            if self.folder is None:
                raise ValueError("folder: expected a folder, which the source image_folder needs; found none")
            return self
        if self.own_split:
            raise ValueError(
                f"split, held_out: only the source image_folder has these keys, not {self.source}"
            )
        for key in ("folder", "size", "mode", "levels", "ground"):
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"{key}: only the source image_folder has this key, not {self.source}")
        if IMAGES[self.source].torchvision and self.validation_fraction != 0.1:
            raise ValueError(f"validation_fraction: {self.source} has a published test set")
        return self

    def count_rows(self, rows: int) -> int:
        return super().count_rows(rows) * (2 if self.flips else 1)

    def require_consistency(self, experiment: Any) -> None:
        names = [features.extractor for features in _listed(experiment)]
        if len(set(names)) < len(names):
            raise ValueError(f"features: {names} contains a duplicate")
        if "classifier" in names and self.source not in CLASSIFIERS:
            raise ValueError(
                f"features: pairflow has no classifier (the default) for {self.source}; "
                "set features: {extractor: inception} or {extractor: dinov2}"
            )
        length = (self.size or 1) ** 2 * (3 if self.mode == "RGB" else 1)
        if FLOWS[experiment.flow].tokens and experiment.couplings() and length > MAX_LENGTH:
            raise ValueError(
                f"data.size: {length} pixel values are too many to pair; expected at most {MAX_LENGTH}"
            )


def _listed(experiment: Any) -> tuple[ExtractorSettings, ...]:
    """Return the settings of the extractors in the order of the experiment, or of the default extractor."""
    features = experiment.features or ExtractorSettings()
    return features if isinstance(features, tuple) else (features,)


def extractors(experiment: Any) -> dict[str, ExtractorSettings]:
    """Return the settings of each extractor of an experiment by its name, the main one first.

    A classifier without weights gets those that were trained on this data set. Raises InputError if the data
    are not images.
    """
    if not isinstance(experiment.data, Images):
        raise InputError("features: expected an experiment with images")
    listed: dict[str, ExtractorSettings] = {one.extractor: one for one in _listed(experiment)}
    if "classifier" in listed and listed["classifier"].weights is None:
        listed["classifier"] = ExtractorSettings(weights=experiment.data.source)
    return listed


def extractor_settings(experiment: Any, extractor: str = "") -> ExtractorSettings:
    """Return the settings of an extractor, by default the first. Raises InputError for an unknown name."""
    known = extractors(experiment)
    if extractor and extractor not in known:
        raise InputError(f"features: no extractor '{extractor}'{nearest(extractor, known)}")
    return known[extractor or next(iter(known))]
