"""What the workflow asks of a kind of data: one class, of which each kind has a subclass in its own folder.

A subclass loads the modules of its folder inside its methods, so that RDKit, torchvision and tokenizers are
imported for their own kind only.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from pairflow.config import DEMANDED, DataSettings, DemandSettings, Experiment, RealDraws, Settings
from pairflow.data.source import listing
from pairflow.errors import InputError
from pairflow.kinds import KINDS, load_kind
from pairflow.metrics.metric import Metric
from pairflow.plan import paths
from pairflow.plan.job import Job

if TYPE_CHECKING:
    from pairflow.data.delivery import Delivery, Scored
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.metrics.measured import Machine, Measurement
    from pairflow.training.model import Model

ROWS = {  # what every preprocessing writes, and the help of its option
    "train.parquet": "Rows for training (Parquet).",
    "validation.parquet": "Held-out rows (Parquet).",
    "vocabulary.json": "What models and rows must agree on (JSON).",
    "known.parquet": "Hashes of molecules (Parquet): an empty table for other data.",
}


Files = Mapping[str, Path]  # by the stems of the names in `Kind.prepared`


class Needs(NamedTuple):
    """What a job asks of the machine, besides a core."""

    memory_mb: int = 4000
    minutes: int = 60
    gpu: bool = False  # whether it uses a GPU if there is one


class Pace(NamedTuple):
    """Seconds of one core for jobs on data and samples (AMD EPYC, 2026-11-21).

    `prepare`: for a token of the data; `sample`: for a sample that is measured, and `compare` for each token
    of the training rows besides; `row`: for a training row in the kind's own steps, if these are known.
    """

    prepare: float = 5e-8
    sample: float = 5e-5
    compare: float = 1.1e-10
    row: float | None = None


class RowFiles(NamedTuple):
    """Real rows in two files, which samples are compared with."""

    tokens: Annotated[Path, "Training rows (Parquet)."]
    validation: Annotated[Path, "Held-out rows (Parquet)."]


class Kind(ABC):
    """A kind of data. `name` is that of its folder, `settings` the class of the section `data`."""

    name: ClassVar[str]
    settings: ClassVar[type[DataSettings]]

    def load(self, module: str) -> Any:
        """A module of the kind's folder."""
        return import_module(f"pairflow.kinds.{self.name}.{module}")

    # Raw data

    prepared: ClassVar[Mapping[str, str]] = ROWS  # the files that preprocessing writes, and their help
    keeps_symbols: ClassVar[bool] = False  # whether a parent's symbols come first in its own vocabulary

    def source(self, settings: Any, folder: Path = Path()) -> Any:
        """The source that the settings name; relative paths are those below `folder`. Asked by all that read,
        check or measure raw data."""
        return self.load("data_sets").source_of(settings, folder)

    @abstractmethod
    def prepare(self, settings: Any, files: Files, parent: Path | None, progress: bool) -> None:
        """Turn raw data into the files of `prepared`, by their stems. `parent` is the vocabulary of the model
        that a training will start from. Asked by `pairflow preprocess`."""

    def own_raw(self, settings: Any) -> dict[str, str | None]:
        """The user's own raw data, by the key that names them. Asked before a run."""
        key = next(key for key in ("file", "folder", "source") if key in self.settings.model_fields)
        return {f"data.{key}": settings.file or getattr(settings, "folder", None)}

    def folder_digest(self, settings: Any) -> str:
        """A digest of the user's own folder of raw data, empty without one. Asked by the rule that
        preprocesses, which runs again if it changes."""
        folder = getattr(settings, "folder", None)
        return listing(folder, *self.load("settings").FILES) if folder else ""

    def preparing(self, raw_mb: float) -> Needs:
        """What preprocessing asks of the machine, for `raw_mb` MB of the user's own. Asked by its rule."""
        return Needs(memory_mb=int(2000 + 4 * raw_mb))

    # Jobs on real data

    steps: ClassVar[tuple[str, ...]] = ()  # its own steps of the workflow, modules of its folder `steps`
    commands: ClassVar[tuple[str, ...]] = ()  # its own commands beside the workflow, there as well
    floor: ClassVar[type[Settings] | None] = RealDraws  # settings of floors; None for a kind without any
    shows_pairs: ClassVar[bool] = False  # whether the page shows pairs, which the report then waits for

    def jobs(self, root: Path, experiment: Experiment) -> Iterable[Job]:
        """The jobs between preprocessing and the floors, each after those that make its inputs. Asked by
        `plan.jobs`; the kind's rules in rules/kinds have the same."""
        return ()

    def comparisons(self, experiment: Experiment) -> list[str]:
        """The ways in which samples are compared with real data. Each has metric files of its own, which end
        in its name; the name of the first is empty. Asked by `plan.jobs`."""
        return [""]

    def real_files(self, root: Path, experiment: Experiment, comparison: str = "") -> dict[str, Path]:
        """What samples are compared with, by the names of `real`. Asked by `plan.jobs` and by the rules."""
        return paths.real_files(root)

    def has_floor(self, experiment: Experiment) -> bool:
        """Whether real data are measured in the place of samples. Asked by `plan.jobs`."""
        return self.floor is not None

    def floor_settings(self, experiment: Experiment, evaluation: str, comparison: str = "") -> Settings:
        """The settings of a floor, of the class `floor`. Asked by `plan.jobs` and by the rule."""
        assert self.floor is not None
        compared = self.comparison_settings(experiment, comparison)
        return self.floor(**compared.model_dump(), **experiment.real_draws(evaluation).model_dump())

    # Metrics of samples

    real: ClassVar[type] = RowFiles  # what samples are compared with: a NamedTuple of files with their help
    comparison: ClassVar[type[Settings]] = Settings  # settings of the comparison
    measured: ClassVar[Mapping[str, str]] = {"metrics": "Output file for the metric rows (Parquet)."}

    def comparison_settings(self, experiment: Experiment, comparison: str = "") -> Settings:
        """The settings of a comparison, of the class `comparison`. Asked by `plan.jobs` and by the rule."""
        return Settings()

    def measuring(self, experiment: Experiment) -> Needs:
        """What comparisons and floors ask of the machine. Asked by `plan.jobs` and by the rules."""
        return Needs()

    @abstractmethod
    def measure(self, settings: Any, samples: Path, real: Any, machine: "Machine") -> "Measurement":
        """The metric rows of samples, against `real`. Asked by `pairflow evaluate`."""

    measure_floor: Callable[[Any, Any, "Machine"], "Measurement"]
    """(settings, real, machine) -> the metric rows of real data in the place of samples; only a kind with a
    `floor` has it. Asked by `pairflow floor`."""

    # The page. What it draws and writes is in the kind's folder `page`, where there is one (`kinds.page_of`).

    metrics: ClassVar[Mapping[str, Metric]]  # in the order of the page
    groups: ClassVar[Mapping[str, str]] = {}  # group of metrics -> the title of its tables

    def list_metrics(self, settings: Any) -> Mapping[str, Metric]:
        """The metrics as they read with these settings. Asked by all pages and by the end of `run`."""
        return self.metrics

    def is_partial(self, settings: Any) -> bool:
        """Whether the settings leave out a part of the data set. Asked by pages, whose numbers then do not
        compare with the paper's."""
        return settings.training_rows is not None

    # On demand

    rows: ClassVar[str]  # what messages call its rows

    def is_made_by(self, description: Mapping[str, Any], symbols: str) -> bool:
        """Whether a model makes rows of this kind, by its model.json and by what its vocabulary.json calls
        them; either may be unknown, and is then empty. Asked before a model is used, kind after kind."""
        return symbols == self.name

    def draft(self, request: "DraftRequest") -> "Draft | None":
        """The experiment to suggest on a user's own file, and what the file holds; None for a file of another
        kind. Asked by `new`, in the order of KINDS from the end."""
        return None

    # Costs

    packages: ClassVar[tuple[str, ...]] = ()  # packages, as `doctor` calls them, that it cannot do without

    pace: ClassVar[Pace] = Pace()  # how fast its jobs are, for the estimate

    def is_timed(self, job: Job) -> bool:
        """Whether anybody has timed such a job. Asked by the estimate."""
        return True


class OnDemandKind(Kind):
    """A kind of data whose samples `sample --count` delivers, and whose rows `score` scores.

    Its module `on_demand` has the classes that do so, as DELIVERY and SCORED.
    """

    demanded: ClassVar[frozenset[str]] = DEMANDED  # the settings of `sample --count` that it knows
    chosen_by: ClassVar[tuple[str, ...]]  # metrics by which `sample` chooses a model, best first

    def require_deliverable(self, folder: Path, settings: DemandSettings) -> None:
        """InputError for settings that mean nothing to this kind. Asked by `sample --count` for a folder."""
        fields = type(settings).model_fields.items()
        given = (name for name, field in fields if getattr(settings, name) != field.default)
        if name := next((name for name in given if name not in self.demanded), ""):
            users = " or ".join(sorted(kind.rows for kind in on_demand_kinds() if name in kind.demanded))
            option = "--" + name.replace("_", "-").replace("three-d", "3d")
            raise InputError(f"{folder}: {option} is for {users}; this model makes {self.rows}")

    def delivery(self, model: "Model", settings: DemandSettings) -> "Delivery":
        """How the model's samples leave on demand. Asked by `sample --count`."""
        return self.load("on_demand").DELIVERY(model, settings)

    def scored(self, model: "Model") -> "Scored":
        """How a file becomes rows that the model can score. Asked by `score`."""
        return self.load("on_demand").SCORED(model)


def on_demand_kinds() -> list[OnDemandKind]:
    """The kinds whose samples leave on demand."""
    return [kind for kind in map(load_kind, KINDS) if isinstance(kind, OnDemandKind)]
