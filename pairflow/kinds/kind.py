"""Defines the interface of a kind of data: the class `Kind`, of which each kind's folder has a subclass.

Methods import the modules of the kind's folder only when they are called, so that RDKit, torchvision and
tokenizers are imported only when they are needed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar

from pairflow.config import DataSettings, DemandSettings, Experiment, RealDraws, Settings
from pairflow.plan import paths
from pairflow.plan.job import Job
from pairflow.settings.fields import NewSettings
from pairflow.settings.sampling import DEMANDED

if TYPE_CHECKING:
    from pairflow.data.delivery import Delivery, Scored
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.data.source import DataSource
    from pairflow.flow.grammar import Grammar
    from pairflow.metrics.measured import Machine, Measurement
    from pairflow.report.kind_page import KindPage
    from pairflow.runtime.resume import LongWork
    from pairflow.training.model import DiscreteModel

D = TypeVar("D", bound=DataSettings)  # the section `data` of an experiment
S = TypeVar("S", bound=Settings)  # settings of a comparison
R = TypeVar("R", bound=tuple)  # files of real rows: a NamedTuple whose annotations are help texts
F = TypeVar("F", bound=RealDraws)  # settings of a floor


class Preprocessing(NamedTuple):
    """What preprocessing gets besides its settings.

    Attributes:
        files: the path of each file of `DataSettings.prepared`, by its name without suffix.
        parent: the vocabulary.json of the model from which a training will start, if there is one.
        progress: whether to show progress bars.
        work: the processes and the saved state of a long preprocessing.
    """

    files: Mapping[str, Path]
    parent: Path | None
    progress: bool
    work: "LongWork"


class Needs(NamedTuple):
    """The memory and time that a job asks for, and whether it uses a GPU if there is one."""

    memory_mb: int = 4000
    minutes: int = 60
    gpu: bool = False


class Pace(NamedTuple):
    """Seconds that one core takes for jobs on data and samples (measured on an AMD EPYC, 2026-11-21).

    Attributes:
        prepare: preprocessing, per token of the data.
        sample: measuring, per sample.
        compare: measuring, per sample and per token of the training rows.
        row: the steps that only this kind has, per training row; None if unknown.
        token: the same steps, per token of the training rows; their time is `row` and `token` together.
        most: the largest number of training rows that these steps, and measuring, look at.
    """

    prepare: float = 5e-8
    sample: float = 5e-5
    compare: float = 1.1e-10
    row: float | None = None
    token: float = 0.0
    most: int = 10**12


class Costs:
    """What the jobs of a kind ask of the machine.

    Attributes:
        pace: the speed of the jobs, for the estimate.
        packages: the packages that the kind needs, by their names in `pairflow doctor`.
        takes_long: whether preprocessing uses several processes, and resumes after an interruption.
    """

    pace: ClassVar[Pace] = Pace()
    packages: ClassVar[tuple[str, ...]] = ()
    takes_long: ClassVar[bool] = False

    def preparing(self, raw_mb: float) -> Needs:
        """Return the memory and time to ask for to preprocess a user's raw data of `raw_mb` MB."""
        return Needs(memory_mb=int(2000 + 4 * raw_mb))

    def seconds_to_prepare(self, data: DataSettings) -> float:
        """Return the seconds that one core takes to preprocess a token."""
        return self.pace.prepare

    def measuring(self, experiment: Experiment) -> Needs:
        """Return the memory and time to ask for to measure samples (comparisons) or real data (floors)."""
        return Needs()

    def is_timed(self, job: Job) -> bool:
        """Return whether the time of `job` can be estimated. A few kinds of job have never been timed."""
        return True


class Reference(ABC, Generic[S, R]):
    """What samples are compared with, and how.

    Attributes:
        settings: the class of the settings of a comparison.
        files: a NamedTuple class with a field for each file that samples are compared with.
        outputs: the help text of each file that a comparison writes, by the name of its option.
    """

    settings: type[S]
    files: type[R]
    outputs: ClassVar[Mapping[str, str]] = {"metrics": "Output file for the metric rows (Parquet)."}

    def jobs(self, root: Path, experiment: Experiment) -> Iterable[Job]:
        """Return the jobs that make those `files` that preprocessing does not make, in the results folder
        `root`.

        The jobs run between preprocessing and the floors, each after the jobs that make its inputs. They must
        agree with the kind's file in the folder `rules`.
        """
        return ()

    def comparisons(self, experiment: Experiment) -> list[str]:
        """Return a name for each way to compare samples with real data; the first name is empty. A file of
        metrics has the name of its comparison at the end of its own."""
        return [""]

    def list_files(self, root: Path, experiment: Experiment, comparison: str = "") -> dict[str, Path]:
        """Map the fields of `files` to the paths of these files in the results folder `root`, for one of
        `comparisons`. Optional files that the experiment does not need are left out."""
        return paths.real_files(root)

    def settings_of(self, experiment: Experiment, comparison: str = "") -> S:
        """Return the experiment's settings of one of `comparisons`."""
        return self.settings()

    @abstractmethod
    def measure(self, settings: S, samples: Path, real: R, machine: "Machine") -> "Measurement":
        """Compare the samples in the file `samples` with the real data in the files `real`. Returns metric
        rows, each with the value of one metric on the samples of one trial."""


class Floor(ABC, Generic[F, R]):
    """Measures real data as if they were samples: which values perfect samples would have.

    Attributes:
        settings: the class of the settings of a floor, such as the number of trials.
        files: a NamedTuple class with a field for each file that a floor reads.
    """

    settings: type[F]
    files: type[R]

    def __init__(self, reference: "AnyReference"):
        self.reference = reference

    def is_measured(self, experiment: Experiment) -> bool:
        """Return whether an experiment has a floor."""
        return True

    def jobs(self, root: Path, experiment: Experiment) -> Iterable[Job]:
        """Return the jobs that make the files that only floors read, in the results folder `root`."""
        return ()

    def list_files(
        self, root: Path, experiment: Experiment, evaluation: str, comparison: str = ""
    ) -> dict[str, Path]:
        """Map the fields of `files` to the paths of these files in the results folder `root`, for the floor
        of an evaluation and a comparison."""
        return self.reference.list_files(root, experiment, comparison)

    def settings_of(self, experiment: Experiment, evaluation: str, comparison: str = "") -> F:
        """Return the settings of the floor of an evaluation and a comparison: the comparison's settings, and
        how many real rows are drawn."""
        compared = self.reference.settings_of(experiment, comparison)
        return self.settings(**compared.model_dump(), **experiment.real_draws(evaluation).model_dump())

    @abstractmethod
    def measure(self, settings: F, real: R, machine: "Machine") -> "Measurement":
        """Measure the real data in the files `real` as if they were samples. Returns metric rows."""


class RowFiles(NamedTuple):
    """The files of the real rows that samples are compared with."""

    tokens: Annotated[Path, "Training rows (Parquet)."]
    validation: Annotated[Path, "Held-out rows (Parquet)."]


class RowReference(Reference[Settings, RowFiles]):
    """The comparison of samples with training rows and held-out rows."""

    settings, files = Settings, RowFiles


class RowFloor(Floor[RealDraws, RowFiles]):
    """Measures real rows as `RowReference` measures samples."""

    settings, files = RealDraws, RowFiles


@dataclass(frozen=True)
class OnDemand:
    """How `sample --count` delivers samples of a kind of data.

    Attributes:
        deliver: makes the object that decodes, selects and writes a model's samples.
        chosen_by: the metrics by which `sample` chooses a model; the first that was measured decides.
        supports: the names of the settings that the kind supports.
        grammar: returns a model's grammar, the rows that it may make (such as whole molecules); None if there
            is none.
    """

    deliver: "Callable[[DiscreteModel, DemandSettings], Delivery]"
    chosen_by: tuple[str, ...]
    supports: frozenset[str] = DEMANDED
    grammar: "Callable[[DiscreteModel], Grammar | None]" = lambda model: None


@dataclass(frozen=True)
class Scoring:
    """How `score` reads rows of a kind: `reader` makes the object that reads them for a model."""

    reader: "Callable[[DiscreteModel], Scored]"


@dataclass(frozen=True)
class Drafting:
    """How `pairflow new` suggests an experiment on a user's file.

    Attributes:
        settings: the class of the settings of `new` that this kind of data has.
        draft: summarises the file and suggests an experiment; returns None for a file of another kind.
    """

    settings: type[NewSettings]
    draft: "Callable[[DraftRequest], Draft | None]"


class Kind(ABC, Generic[D]):
    """A kind of data: how its rows are prepared, compared with samples, delivered and shown.

    Attributes:
        name: the name of its folder.
        settings: the class of the section `data` of an experiment.
        rows: what messages call its rows, such as "molecules".
        steps: a dict from each module of its folder `steps` to the heading of that step in `pairflow --help`;
            the heading is empty for a step of the workflow.
        shows_pairs: whether report pages show pairs, so that the report reads the files of pairs.
        costs: what its jobs ask of the machine.
        reference: what samples are compared with.
        floor: how real data are measured as if they were samples, or None.
        drafting: how `new` suggests an experiment on a user's file, or None.
        delivery: how `sample --count` delivers samples, or None.
        scoring: how `score` reads the rows of a file, or None.
    """

    name: ClassVar[str]
    settings: type[D]
    rows: ClassVar[str]
    steps: ClassVar[Mapping[str, str]] = {}
    shows_pairs: ClassVar[bool] = False
    costs: ClassVar[Costs] = Costs()
    reference: ClassVar["AnyReference"]
    floor: ClassVar["AnyFloor | None"] = None
    drafting: ClassVar[Drafting | None] = None
    delivery: ClassVar[OnDemand | None] = None
    scoring: ClassVar[Scoring | None] = None

    @abstractmethod
    def source(self, settings: D, folder: Path = Path()) -> "DataSource":
        """Return the data source that `settings` names; relative paths start at `folder`."""

    @abstractmethod
    def prepare(self, settings: D, task: Preprocessing) -> None:
        """Turn raw data into the files of `DataSettings.prepared`, for `pairflow preprocess`."""

    def is_made_by(self, description: Mapping[str, object], symbols: str) -> bool:
        """Return whether a model makes rows of this kind; for the arguments see `kinds.kind_of_model`."""
        return symbols == self.name

    def page(self) -> "KindPage | None":
        """Return the object that says what report pages show of this kind, from its folder `page`; None for
        rows of numbers, for which `KindPage` is enough."""
        return None


AnyReference = Reference[Any, Any]
AnyFloor = Floor[Any, Any]
AnyKind = Kind[Any]
