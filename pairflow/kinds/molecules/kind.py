"""Molecules as a kind of data."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pairflow.config import DataSettings, DemandSettings, Experiment, Settings
from pairflow.kinds.kind import (
    Costs,
    Drafting,
    Floor,
    Kind,
    Needs,
    OnDemand,
    Pace,
    Preprocessing,
    Reference,
    Scoring,
)
from pairflow.kinds.molecules.settings import (
    DESCRIBED_ROWS,
    Chemistry,
    MoleculeDraws,
    Molecules,
    NewLibrary,
    chemistry_settings,
    own_columns,
)
from pairflow.kinds.molecules.settings.demand import MoleculeDemand
from pairflow.kinds.molecules.settings.metrics import MoleculeFiles, MoleculeFloorFiles
from pairflow.plan import paths
from pairflow.plan.job import Job

if TYPE_CHECKING:
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.flow.grammar import Grammar
    from pairflow.kinds.molecules.data.data_sets import MoleculeSource
    from pairflow.kinds.molecules.on_demand.delivery import MoleculeDelivery, ScoredMolecules
    from pairflow.kinds.molecules.page.page import MoleculesPage
    from pairflow.metrics.measured import Machine, Measurement
    from pairflow.training.model import DiscreteModel


class MoleculeCosts(Costs):
    packages = ("RDKit",)
    takes_long = True
    pace = Pace(prepare=4e-6, sample=1.6e-4, compare=4e-10, row=0.0, token=1.2e-5, most=DESCRIBED_ROWS)

    def preparing(self, raw_mb: float) -> Needs:
        """Return what to ask for to preprocess raw data of `raw_mb` MB: 4 GB of memory, and 40 MB more for
        each MB. That is 0.4 kB for each molecule, of which a compressed file has about 10 bytes."""
        return Needs(memory_mb=int(4000 + 40 * raw_mb))

    def seconds_to_prepare(self, data: DataSettings) -> float:
        """Return the seconds that one core takes for a token: SELFIES take five times as long as SMILES, and
        groups 17 times."""
        times = {"selfies": 5, "groups": 17}.get(data.representation, 1) if isinstance(data, Molecules) else 1
        return self.pace.prepare * times

    def is_timed(self, job: Job) -> bool:
        return job.rule != "chemnet" and not getattr(job.settings, "fcd", False)


class MoleculeReference(Reference[Chemistry, MoleculeFiles]):
    settings, files = Chemistry, MoleculeFiles
    outputs: ClassVar[Mapping[str, str]] = {
        **Reference.outputs,
        "properties": "Output file for histograms of properties of samples and data (Parquet).",
    }

    def jobs(self, root: Path, experiment: Experiment) -> Iterator[Job]:
        """Yield the job that describes training molecules, and the jobs for `plausible` and FCD if needed."""
        smiles, files = {"smiles": paths.data(root, "smiles.parquet")}, self.list_files(root, experiment)
        yield Job("describe_molecules", smiles, {"molecules": files["molecules"]}, threads=None)
        if "norms" in files:
            yield Job("norms", smiles, {"norms": files["norms"]}, threads=None)
        if "chemnet" in files:
            yield Job("chemnet", smiles, {"chemnet": files["chemnet"]}, gpu=True)

    def list_files(self, root: Path, experiment: Experiment, comparison: str = "") -> dict[str, Path]:
        files = {
            "vocabulary": paths.data(root, "vocabulary.json"),
            "smiles": paths.data(root, "smiles.parquet"),
            "molecules": paths.reference(root, "molecules.parquet"),
        }
        chemistry = chemistry_settings(experiment)
        if chemistry.fcd:
            files["chemnet"] = paths.reference(root, "chemnet.parquet")
        if chemistry.plausible:
            files["norms"] = paths.reference(root, "norms.parquet")
        if own_columns(experiment):
            files |= paths.condition_labels(root, experiment)
        return files

    def settings_of(self, experiment: Experiment, comparison: str = "") -> Chemistry:
        return chemistry_settings(experiment)

    def measure(
        self, settings: Chemistry, samples: Path, real: MoleculeFiles, machine: "Machine"
    ) -> "Measurement":
        """Count each trial's valid, unique and novel molecules, and the reasons why samples are invalid.
        Compare the distinct molecules with the training molecules."""
        from pairflow.kinds.molecules.measures.measure import measure_samples

        return measure_samples(settings, samples, real, machine)


class MoleculeFloor(Floor[MoleculeDraws, MoleculeFloorFiles]):
    settings, files = MoleculeDraws, MoleculeFloorFiles

    def is_measured(self, experiment: Experiment) -> bool:
        return chemistry_settings(experiment).plausible

    def jobs(self, root: Path, experiment: Experiment) -> Iterator[Job]:
        """Yield for each evaluation a job that draws samples from the model that the trainings start from;
        none if they start from scratch, or if there is no floor."""
        seed, start = experiment.seeds[0], paths.parent_files(root, experiment)
        for name in experiment.evaluations if self.is_measured(experiment) else ():
            if samples := self.list_files(root, experiment, name).get("start"):
                inputs = {"model": start["parent"], "description": start["parent_description"]}
                settings = self.start_settings(experiment, name, seed)
                yield Job("sample_start", inputs, {"samples": samples}, settings, gpu=True, seed=seed)

    def start_settings(self, experiment: Experiment, evaluation: str, seed: int) -> Settings:
        """Return the settings that draw one trial from the model that the trainings start from: without a
        condition, which that model does not know, and with the evaluation's largest number of steps."""
        steps = max(experiment.evaluations[evaluation].nfe)
        plain = {"trials": 1, "condition": (), "guidance": 1.0}
        return experiment.sample_settings(evaluation, steps, seed).model_copy(update=plain)

    def list_files(
        self, root: Path, experiment: Experiment, evaluation: str, comparison: str = ""
    ) -> dict[str, Path]:
        """Return the paths of the files that the floor of an evaluation reads, by their fields. `start` has
        samples of the model that the trainings start from, if there is one."""
        real = self.reference.list_files(root, experiment)
        files = {name: path for name, path in real.items() if name in MoleculeFloorFiles._fields}
        if experiment.parent:
            files["start"] = paths.start_samples(root, experiment.seeds[0], evaluation)
        return files

    def measure(self, settings: MoleculeDraws, real: MoleculeFloorFiles, machine: "Machine") -> "Measurement":
        """Compute reference values: the number of plausible molecules among real molecules and controls. Real
        molecules are held-out ones. Controls are training molecules with one carbon more, and strings of
        independently drawn symbols; with --start also samples of the model that the trainings start from.

        Up to 1,000 of each are drawn, and the numbers are scaled to the number of samples.
        """
        from pairflow.kinds.molecules.measures.measure import measure_floor

        return measure_floor(settings, real, machine)


def _draft(request: "DraftRequest") -> "Draft | None":
    from pairflow.kinds.molecules.data.draft import draft_molecules, recognise

    reason = recognise(request)
    return draft_molecules(request, reason) if reason else None


def _deliver(model: "DiscreteModel", settings: DemandSettings) -> "MoleculeDelivery":
    from pairflow.kinds.molecules.on_demand.delivery import MoleculeDelivery

    assert isinstance(settings, MoleculeDemand)  # as all DemandSettings are
    return MoleculeDelivery(model, settings)


def _score(model: "DiscreteModel") -> "ScoredMolecules":
    from pairflow.kinds.molecules.on_demand.delivery import ScoredMolecules

    return ScoredMolecules(model)


def _grammar(model: "DiscreteModel") -> "Grammar | None":
    from pairflow.kinds.molecules.data.prepare import Vocabulary

    return Vocabulary.load(model.vocabulary_file()).grammar(model.length)


class MoleculesKind(Kind[Molecules]):
    name, settings, rows = "molecules", Molecules, "molecules"
    steps: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("describe_molecules", "norms", "chemnet"), ""),
        "metrics": "Without a model",
    }
    costs, reference = MoleculeCosts(), MoleculeReference()
    floor = MoleculeFloor(reference)
    drafting = Drafting(NewLibrary, _draft)
    delivery = OnDemand(_deliver, ("plausible", "valid"), frozenset(MoleculeDemand.model_fields), _grammar)
    scoring = Scoring(_score)

    def source(self, settings: Molecules, folder: Path = Path()) -> "MoleculeSource":
        from pairflow.kinds.molecules.data.data_sets import DATA_SETS, MoleculeFile

        held_out = folder / settings.held_out if settings.held_out else None
        own = MoleculeFile(folder / settings.source, held_out, settings.split_column)
        return DATA_SETS.get(settings.source) or own

    def prepare(self, settings: Molecules, task: Preprocessing) -> None:
        """Turn a file of molecules into token rows, a vocabulary and a table of rejected rows.

        A published data set is read from the folder that the environment variable PAIRFLOW_DATA_DIR names;
        otherwise it is downloaded and verified.
        """
        from pairflow.kinds.molecules.data.data_sets import store

        store(self.source(settings), settings, task.files, task.parent, task.progress, task.work)

    def is_made_by(self, description: Mapping[str, object], symbols: str) -> bool:
        return True  # also for an unknown model: the user is then asked for the vocabulary of molecules

    def page(self) -> "MoleculesPage":
        from pairflow.kinds.molecules.page.page import MoleculesPage

        return MoleculesPage()


KIND = MoleculesKind()
