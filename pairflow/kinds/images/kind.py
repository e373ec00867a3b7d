"""Images as a kind of data."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pairflow.config import DemandSettings, Experiment
from pairflow.kinds.images.settings import (
    ComparisonSettings,
    ExtractorSettings,
    FloorSettings,
    Images,
    RealImages,
    extractor_settings,
    extractors,
)
from pairflow.kinds.kind import Costs, Floor, Kind, Needs, OnDemand, Pace, Preprocessing, Reference
from pairflow.plan import paths
from pairflow.plan.job import Job

if TYPE_CHECKING:
    from pairflow.kinds.images.data_sets import ImageSource
    from pairflow.kinds.images.on_demand import ImageDelivery
    from pairflow.kinds.images.page.page import ImagesPage
    from pairflow.metrics.measured import Machine, Measurement
    from pairflow.training.model import DiscreteModel


def references(root: Path, experiment: Experiment, comparison: str) -> dict[str, Path]:
    """Return the file of statistics of each split: of `train`, and of `test` if there are test images."""
    end = f"-{comparison}.parquet" if comparison else ".parquet"
    splits = ("train", "test") if getattr(experiment.data, "validation_fraction", 0) > 0 else ("train",)
    return {split: paths.reference(root, split + end) for split in splits}


class ImageCosts(Costs):
    pace = Pace(sample=7e-4, compare=2e-11, row=7e-4)

    def preparing(self, raw_mb: float) -> Needs:
        return Needs(memory_mb=8000)

    def measuring(self, experiment: Experiment) -> Needs:
        return Needs(minutes=480, gpu=True)

    def is_timed(self, job: Job) -> bool:
        return getattr(job.settings, "extractor", "classifier") == "classifier"  # not Inception or DINOv2


class ImageReference(Reference[ComparisonSettings, RealImages]):
    settings, files = ComparisonSettings, RealImages

    def jobs(self, root: Path, experiment: Experiment) -> Iterator[Job]:
        for comparison in self.comparisons(experiment):
            settings = self.extractor_settings(experiment, comparison)
            for split, path in references(root, experiment, comparison).items():
                inputs = {"tokens": paths.real_rows(root, split)}
                yield Job("reference", inputs, {"reference": path}, settings, gpu=True)

    def extractor_settings(self, experiment: Experiment, comparison: str) -> ExtractorSettings:
        return extractor_settings(experiment, comparison)

    def comparisons(self, experiment: Experiment) -> list[str]:
        """Return a comparison for each extractor, called by its name; the name of the first is empty."""
        return ["", *[*extractors(experiment)][1:]]

    def list_files(self, root: Path, experiment: Experiment, comparison: str = "") -> dict[str, Path]:
        statistics = references(root, experiment, comparison)
        named = {f"{split}_reference": path for split, path in statistics.items()}
        return paths.real_files(root) | named

    def settings_of(self, experiment: Experiment, comparison: str = "") -> ComparisonSettings:
        """Return the settings of one extractor's comparison; only the first extractor's includes pixels."""
        settings = extractor_settings(experiment, comparison)
        pixels = settings.extractor == next(iter(extractors(experiment)))
        return ComparisonSettings(**settings.model_dump(), pixels=pixels)

    def measure(
        self, settings: ComparisonSettings, samples: Path, real: RealImages, machine: "Machine"
    ) -> "Measurement":
        """Compare each trial's images with training and test images by Fréchet distance (`fid` or `fd`),
        Inception Score (`is`) and nearest images. Of a continuous flow, also average the energy and the
        straightness of its paths."""
        from pairflow.kinds.images.measure import measure_samples

        return measure_samples(settings, samples, real, machine)


class ImageFloor(Floor[FloorSettings, RealImages]):
    settings, files = FloorSettings, RealImages

    def measure(self, settings: FloorSettings, real: RealImages, machine: "Machine") -> "Measurement":
        """Compute the noise floor: the same distances as for samples, between two sets of real images.

        Each trial draws images from one half of the training images, and compares them with the other half
        (train) and with all test images (test). The distance to the nearest training image is measured on
        test images. Without test images only `train` is measured.
        """
        from pairflow.kinds.images.measure import measure_floor

        return measure_floor(settings, real, machine)


def _deliver(model: "DiscreteModel", settings: DemandSettings) -> "ImageDelivery":
    from pairflow.kinds.images.on_demand import ImageDelivery

    return ImageDelivery(model, settings)


class ImagesKind(Kind[Images]):
    name, settings, rows = "images", Images, "images"
    shows_pairs, steps = True, {"reference": ""}
    costs, reference = ImageCosts(), ImageReference()
    floor = ImageFloor(reference)
    delivery = OnDemand(_deliver, ("fid", "fd"))

    def source(self, settings: Images, folder: Path = Path()) -> "ImageSource":
        from pairflow.kinds.images.data_sets import DATA_SETS, ImageFolder

        held_out = folder / settings.held_out if settings.held_out else None
        shape = settings.size, settings.mode, settings.ground
        own = ImageFolder(folder / (settings.folder or ""), *shape, settings.split, held_out)
        return DATA_SETS.get(settings.source, own)

    def prepare(self, settings: Images, task: Preprocessing) -> None:
        """Turn images into token rows, in channel-height-width order.

        The images come with the package, from your own folder or from a published data set. A published data
        set is taken from the folder that PAIRFLOW_DATA_DIR names, or downloaded and verified.
        """
        from pairflow.kinds.images.prepare import store

        store(self.source(settings).read(settings, task.progress), settings, task.files)

    def is_made_by(self, description: Mapping[str, object], symbols: str) -> bool:
        return symbols == "image" or description.get("shape") is not None

    def page(self) -> "ImagesPage":
        from pairflow.kinds.images.page.page import ImagesPage

        return ImagesPage()


KIND = ImagesKind()
