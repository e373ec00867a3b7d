"""The interface of a kind of data: the class `Kind`, of which each kind's folder has a subclass.

A subclass imports the modules of its folder inside its methods, so that RDKit, torchvision and tokenizers are
imported only when they are needed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from pairflow.config import DEMANDED, DataSettings, DemandSettings, Experiment, RealDraws, Settings
from pairflow.errors import InputError
from pairflow.plan import paths
from pairflow.plan.job import Job

if TYPE_CHECKING:
    import numpy as np

    from pairflow.data.delivery import Delivery, Scored
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.metrics.measured import Machine, Measurement
    from pairflow.training.model import Model

Files = Mapping[str, Path]  # name in `DataSettings.prepared` without its suffix -> path of the file


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
        token: the same, per token of the training rows, which comes on top.
        most: training rows that these steps, and measuring, look at.
    """

    prepare: float = 5e-8
    sample: float = 5e-5
    compare: float = 1.1e-10
    row: float | None = None
    token: float = 0.0
    most: int = 10**12


class RowFiles(NamedTuple):
    """The files of the real rows that samples are compared with."""

    tokens: Annotated[Path, "Training rows (Parquet)."]
    validation: Annotated[Path, "Held-out rows (Parquet)."]


class Kind(ABC):
    """A kind of data: how its rows are prepared, compared with samples, and shown. `name` is the name of its
    folder, `settings` the class of an experiment's section `data`."""

    name: ClassVar[str]
    settings: ClassVar[type[DataSettings]]

    def load(self, module: str) -> Any:
        """Import a module of the kind's folder."""
        return import_module(f"pairflow.kinds.{self.name}.{module}")

    # Raw data

    takes_long: ClassVar[bool] = False  # whether `prepare` also takes `work`, of the class `LongWork`

    def source(self, settings: Any, folder: Path = Path()) -> Any:
        """Return the source that the section `data` names; relative paths start at `folder`."""
        return self.load("data_sets").source_of(settings, folder)

    @abstractmethod
    def prepare(self, settings: Any, files: Files, parent: Path | None, progress: bool) -> None:
        """Turn raw data into the files of `DataSettings.prepared`, with the paths `files`.

        `parent` is the vocabulary.json of the model from which a training will start, if there is one.
        """

    def preparing(self, raw_mb: float) -> Needs:
        """Return what preprocessing needs for a user's raw data of `raw_mb` MB."""
        return Needs(memory_mb=int(2000 + 4 * raw_mb))

    def seconds_to_prepare(self, settings: Any) -> float:
        """Return the seconds that one core takes to preprocess a token."""
        return self.pace.prepare

    # Jobs on real data

    steps: ClassVar[tuple[str, ...]] = ()  # workflow steps that only this kind has: modules in its `steps`
    commands: ClassVar[tuple[str, ...]] = ()  # other commands that only this kind has, in the same folder
    # Settings of floors (metrics measured on real data instead of samples); None for a kind without floors.
    floor: ClassVar[type[Settings] | None] = RealDraws
    floor_reads: ClassVar[type | None] = None  # the files of a floor, as a NamedTuple; None: as in `real`
    shows_pairs: ClassVar[bool] = False  # whether the page shows pairs, so that the report needs them

    def jobs(self, root: Path, experiment: Experiment) -> Iterable[Job]:
        """Return the jobs of `steps`, each after the jobs that make its inputs. They run between
        preprocessing and the floors, and must agree with the kind's file in the folder rules."""
        return ()

    def comparisons(self, experiment: Experiment) -> list[str]:
        """Return a name for each way to compare samples with real data; the first name is empty. The names of
        metric files end in it."""
        return [""]

    def real_files(self, root: Path, experiment: Experiment, comparison: str = "") -> dict[str, Path]:
        """Return the paths of the files that samples are compared with, under the field names of `real`."""
        return paths.real_files(root)

    def floor_files(
        self, root: Path, experiment: Experiment, evaluation: str, comparison: str = ""
    ) -> dict[str, Path]:
        """Return the paths of the files that a floor reads, under the field names of `floor_reads`."""
        return self.real_files(root, experiment, comparison)

    def has_floor(self, experiment: Experiment) -> bool:
        """Whether the metrics of samples are also measured on real data."""
        return self.floor is not None

    def floor_settings(self, experiment: Experiment, evaluation: str, comparison: str = "") -> Settings:
        """Return the settings of a floor, an instance of the class `floor`."""
        assert self.floor is not None
        compared = self.comparison_settings(experiment, comparison)
        return self.floor(**compared.model_dump(), **experiment.real_draws(evaluation).model_dump())

    # Metrics of samples

    real: ClassVar[type] = RowFiles  # the files that samples are compared with: a NamedTuple with help texts
    comparison: ClassVar[type[Settings]] = Settings  # settings of the comparison
    measured: ClassVar[Mapping[str, str]] = {"metrics": "Output file for the metric rows (Parquet)."}

    def comparison_settings(self, experiment: Experiment, comparison: str = "") -> Settings:
        """Return the settings of a comparison, an instance of the class `comparison`."""
        return Settings()

    def measuring(self, experiment: Experiment) -> Needs:
        """Return what comparisons and floors need of the machine."""
        return Needs()

    @abstractmethod
    def measure(self, settings: Any, samples: Path, real: Any, machine: "Machine") -> "Measurement":
        """Compare samples with the real data in the files `real`; for `pairflow evaluate`. Returns metric
        rows, each with the value of one metric on the samples of one trial."""

    measure_floor: Callable[[Any, Any, "Machine"], "Measurement"]
    """Measure real data as if they were samples; for `pairflow floor`. Its arguments are settings, real and
    machine. Only a kind with a `floor` has it."""

    # On demand

    rows: ClassVar[str]  # the name of its rows in messages

    def is_made_by(self, description: Mapping[str, Any], symbols: str) -> bool:
        """Whether a model makes rows of this kind; for the arguments see `kinds.kind_of_model`."""
        return symbols == self.name

    def draft(self, request: "DraftRequest") -> "Draft | None":
        """Summarise a user's file and suggest an experiment on it, for `pairflow new`. Returns None if the
        file is of another kind."""
        return None

    # A model in Python

    def decode(self, model: "Model", tokens: "np.ndarray") -> "list[str] | np.ndarray":
        """Return what token rows (M, N) of the model stand for: M strings, or an array of them. Raises
        InputError if they stand for nothing else."""
        raise InputError(f"decode: {self.rows} stand for nothing else")

    def padding(self, model: "Model") -> int | None:
        """Return the symbol that fills short rows of the model, which a score does not count."""
        return None

    # Costs

    packages: ClassVar[tuple[str, ...]] = ()  # packages that it needs, by the names in `doctor`

    pace: ClassVar[Pace] = Pace()  # speed of its jobs, for the estimate

    def is_timed(self, job: Job) -> bool:
        """Whether the time of such a job was measured, so that the estimate of a run can use it."""
        return True


class OnDemandKind(Kind):
    """A kind of data whose samples `sample --count` delivers to a user, and whose rows `score` may score.

    Its module `on_demand` has a class for each of these commands: DELIVERY and, if it `scores`, SCORED.
    """

    scores: ClassVar[bool] = True

    demanded: ClassVar[frozenset[str]] = DEMANDED  # the settings of `sample --count` that it supports
    chosen_by: ClassVar[tuple[str, ...]]  # metrics by which `sample` chooses a model, best first

    def delivery(self, model: "Model", settings: DemandSettings) -> "Delivery":
        """Return the object that decodes, selects and writes the model's samples for `sample --count`."""
        return self.load("on_demand").DELIVERY(model, settings)

    def decode(self, model: "Model", tokens: "np.ndarray") -> "list[str] | np.ndarray":
        delivery = self.delivery(model, DemandSettings(count=len(tokens), raw=True))
        return [delivery.decode(row) for row in tokens.tolist()]

    def scored(self, model: "Model") -> "Scored":
        """Return the object that reads the rows of a file for `score`."""
        return self.load("on_demand").SCORED(model)

    def padding(self, model: "Model") -> int | None:
        return self.scored(model).padding if self.scores else None
