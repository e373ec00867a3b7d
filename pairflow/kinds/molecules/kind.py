"""Defines the data kind `molecules`: its settings, metrics, files, workflow jobs and measurements."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pairflow.config import DemandSettings, Experiment
from pairflow.kinds.kind import Kind, Needs, OnDemandKind, Pace
from pairflow.kinds.molecules import settings as molecules_settings
from pairflow.kinds.molecules.metrics import MoleculeFiles, MoleculeFloorFiles
from pairflow.kinds.molecules.settings import Chemistry, MoleculeDraws, Molecules
from pairflow.plan import paths
from pairflow.plan.job import Job

if TYPE_CHECKING:
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.metrics.measured import Machine, Measurement
    from pairflow.runtime.resume import LongWork


class MoleculesKind(OnDemandKind):
    name, settings, rows = "molecules", Molecules, "molecules"
    floor, floor_reads = MoleculeDraws, MoleculeFloorFiles
    real, comparison = MoleculeFiles, Chemistry
    takes_long = True
    demanded, chosen_by = frozenset(DemandSettings.model_fields), ("plausible", "valid")
    steps, commands = ("describe_molecules", "norms", "chemnet"), ("metrics",)

    def prepare(
        self,
        settings: Molecules,
        files: Mapping[str, Path],
        parent: Path | None,
        progress: bool,
        work: "LongWork | None" = None,
    ) -> None:
        """Turn a file of molecules into token rows, a vocabulary and a table of rejected rows.

        A published data set is read from the folder that the environment variable PAIRFLOW_DATA_DIR names;
        otherwise it is downloaded and verified.
        """
        self.load("data_sets").store(self.source(settings), settings, files, parent, progress, work)

    def preparing(self, raw_mb: float) -> Needs:
        """Needs 4 GB of memory, and 0.4 kB for each molecule, which takes 12 bytes in a packed file."""
        return Needs(memory_mb=int(4000 + 40 * raw_mb))

    def seconds_to_prepare(self, settings: Molecules) -> float:
        """As SELFIES a token takes five times, and as groups 17 times as long as in SMILES."""
        return self.pace.prepare * {"selfies": 5, "groups": 17}.get(settings.representation, 1)

    def jobs(self, root: Path, experiment: Experiment) -> Iterator[Job]:
        """Yield the job that describes training molecules, and the jobs for `plausible` and FCD if needed.
        For a floor, also draw samples of the model that the trainings start from."""
        smiles, files = {"smiles": paths.data(root, "smiles.parquet")}, self.real_files(root, experiment)
        yield Job("describe_molecules", smiles, {"molecules": files["molecules"]}, threads=None)
        if "norms" in files:
            yield Job("norms", smiles, {"norms": files["norms"]}, threads=None)
        if "chemnet" in files:
            yield Job("chemnet", smiles, {"chemnet": files["chemnet"]}, gpu=True)
        seed, start = experiment.seeds[0], paths.parent_files(root, experiment)
        for name in experiment.evaluations if self.has_floor(experiment) else ():
            if samples := self.floor_files(root, experiment, name).get("start"):
                inputs = {"model": start["parent"], "description": start["parent_description"]}
                settings = molecules_settings.start_settings(experiment, name, seed)
                yield Job("sample_start", inputs, {"samples": samples}, settings, gpu=True, seed=seed)

    def real_files(self, root: Path, experiment: Experiment, comparison: str = "") -> dict[str, Path]:
        files = {
            "vocabulary": paths.data(root, "vocabulary.json"),
            "smiles": paths.data(root, "smiles.parquet"),
            "molecules": paths.reference(root, "molecules.parquet"),
        }
        chemistry = molecules_settings.chemistry_settings(experiment)
        if chemistry.fcd:
            files["chemnet"] = paths.reference(root, "chemnet.parquet")
        if chemistry.plausible:
            files["norms"] = paths.reference(root, "norms.parquet")
        if molecules_settings.own_columns(experiment):
            files |= paths.condition_labels(root, experiment)
        return files

    def floor_files(
        self, root: Path, experiment: Experiment, evaluation: str, comparison: str = ""
    ) -> dict[str, Path]:
        """The start is drawn from noise, and no control for variants of molecules."""
        real = self.real_files(root, experiment)
        files = {name: path for name, path in real.items() if name in MoleculeFloorFiles._fields}
        if experiment.parent and experiment.evaluations[evaluation].noise is None:
            files["start"] = paths.start_samples(root, experiment.seeds[0], evaluation)
        return files

    def has_floor(self, experiment: Experiment) -> bool:
        return molecules_settings.chemistry_settings(experiment).plausible

    def measure_floor(
        self, settings: MoleculeDraws, real: MoleculeFloorFiles, machine: "Machine"
    ) -> "Measurement":
        """Compute reference values: the number of plausible molecules among held-out molecules, training
        molecules with one carbon more, strings of independently drawn symbols, and samples of the model that
        the trainings start from, if they are given.

        Up to 1,000 of each are drawn, and the numbers are scaled to the number of samples.
        """
        return self.load("measure").measure_floor(settings, real, machine)

    measured: ClassVar[dict[str, str]] = {
        **Kind.measured,
        "properties": "Output file for histograms of properties of samples and data (Parquet).",
    }

    def comparison_settings(self, experiment: Experiment, comparison: str = "") -> Chemistry:
        return molecules_settings.chemistry_settings(experiment)

    def measure(
        self, settings: Chemistry, samples: Path, real: MoleculeFiles, machine: "Machine"
    ) -> "Measurement":
        """Count each trial's valid, unique and novel molecules, and the reasons why samples are invalid.
        Compare the distinct molecules with the training molecules."""
        return self.load("measure").measure_samples(settings, samples, real, machine)

    def is_made_by(self, description: Mapping[str, Any], symbols: str) -> bool:
        return True  # also for an unknown model: the user is then asked for the vocabulary of molecules

    def draft(self, request: "DraftRequest") -> "Draft | None":
        draft = self.load("draft")
        reason = draft.recognise(request)
        return draft.draft_molecules(request, reason) if reason else None

    packages = ("RDKit",)

    pace = Pace(
        prepare=4e-6,
        sample=1.6e-4,
        compare=4e-10,
        row=0.0,
        token=1.2e-5,
        most=molecules_settings.DESCRIBED_ROWS,
    )

    def is_timed(self, job: Job) -> bool:
        return job.rule != "chemnet" and not getattr(job.settings, "fcd", False)


KIND = MoleculesKind()
