"""Defines the data kind `molecules`: its settings, metrics, files, workflow jobs and measurements."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from pairflow.config import DemandSettings, Experiment
from pairflow.kinds.kind import ROWS, Kind, Needs, OnDemandKind, Pace
from pairflow.kinds.molecules import settings as molecules_settings
from pairflow.kinds.molecules.settings import Chemistry, MoleculeDraws, Molecules
from pairflow.metrics.metric import Metric
from pairflow.plan import paths
from pairflow.plan.job import Job

if TYPE_CHECKING:
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.metrics.measured import Machine, Measurement
    from pairflow.runtime.resume import LongWork


def _count(label: str, best: str = "highest", leads_as: str = "", group: str = "") -> Metric:
    real = "held-out molecules"
    return Metric(
        label, best, leads_as, real=real, chart=not group, counted=True, group=group, compared=False
    )


def _likeness(label: str, group: str, best: str = "lowest") -> Metric:
    return Metric(label, best, chart=False, group=group, compared=False)


_NAMES = {"qed": "QED", "logp": "logP", "weight": "molecular weight", "rings": "rings"}
METRICS = {
    "plausible": _count("plausible", leads_as="the number of plausible molecules"),
    "valid": _count("valid", leads_as="the number of valid molecules"),
    "unique_strict": _count("unique"),
    "novel_strict": _count("novel"),
    "in_class": _count("in the class asked for"),
    "unique": _count("unique spellings", group="spellings"),
    "novel": _count("novel spellings", group="spellings"),
    "invalid_empty": _count("empty", "", group="reasons"),
    "invalid_syntax": _count("syntax", "", group="reasons"),
    "invalid_ring": _count("ring closure", "", group="reasons"),
    "invalid_valence": _count("valence", "", group="reasons"),
    "invalid_kekulize": _count("aromaticity", "", group="reasons"),
    "usual_size": _count("not unusually small", group="stages"),
    "usual_rings": _count("with usual rings, too", group="stages"),
    "usual_atoms": _count("with usual atoms, too", group="stages"),
    "few_alerts": _count("with few alerts, too", group="stages"),
    "scaffolds": _count("scaffolds", group="structure"),
    "novel_scaffolds": _count("novel scaffolds", group="structure"),
    "common_scaffolds": _count("with a common scaffold", "", group="structure"),
    "common_frameworks": _count("with a common framework", "", group="structure"),
    "origin_similarity": _likeness("similarity to the varied molecule", "variants", ""),
    "internal_diversity": _likeness("internal diversity", "structure", "highest"),
    "nn_similarity": _likeness("similarity to the nearest training molecule", "structure", ""),
    "held_out_similarity": _likeness("similarity to the nearest held-out molecule", "moses", "highest"),
    "held_out_fragments": _likeness("fragments as in held-out molecules", "moses", "highest"),
    "held_out_scaffolds": _likeness("scaffolds as in held-out molecules", "moses", "highest"),
    "qed_wasserstein": _likeness("QED", "properties"),
    "sa_wasserstein": _likeness("SA score", "properties"),
    "logp_wasserstein": _likeness("logP", "properties"),
    "weight_wasserstein": _likeness("molecular weight (g/mol)", "properties"),
    "fcd": _likeness("FCD", "properties"),
    "valid_per_second": _likeness("valid per second", "speed", "highest"),
    "unique_per_second": _likeness("unique per second", "speed", "highest"),
    "novel_per_second": _likeness("novel per second", "speed", "highest"),
    **{f"{name}_in_class": _count(f"in the class of {of}", group="targets") for name, of in _NAMES.items()},
    "nearest_in_class": _count("nearest training molecule in the class asked for", group="targets"),
    "nearest_by_chance": _count("nearest training molecule in that class by chance", "", group="targets"),
}
# Labels for a data set that has every molecule that follows its rules: a novel molecule breaks the rules.
OFF_RULES = {
    "novel_strict": _count("off the rules", "lowest"),
    "novel": _count("off the rules, spellings", "lowest", group="spellings"),
    "novel_scaffolds": _count("scaffolds that no training molecule has", "", group="structure"),
}
GROUPS = {
    "stages": "On the way from novel to plausible",
    "structure": "Pieces, scaffolds, similarity",
    "moses": "Compared with held-out molecules (MOSES)",
    "properties": "Distance of properties from the training set’s",
    "variants": "Variants of held-out molecules",
    "targets": "How near samples come to what they were asked for",
    "reasons": "Why samples are invalid",
    "spellings": "Counts by spelling",
}


VocabularyFile = Annotated[Path, "Vocabulary of the data set (JSON)."]
SmilesFile = Annotated[Path, "Canonical SMILES of the data set (Parquet)."]
DescribedFile = Annotated[
    Path,
    "Fingerprints, scaffolds and properties of the training molecules (Parquet), as `pairflow "
    "describe_molecules` writes them.",
]
NormsFile = Annotated[
    Path | None, "What is usual in the training molecules (Parquet), needed for plausible ones."
]


class MoleculeFiles(NamedTuple):
    """The files, made from the data set, with which samples of molecules are compared."""

    vocabulary: VocabularyFile
    smiles: SmilesFile
    molecules: DescribedFile
    chemnet: Annotated[
        Path | None, "ChemNet statistics of the training molecules (Parquet), needed for FCD."
    ] = None
    norms: NormsFile = None
    labels: Annotated[
        Path | None,
        "Token rows of the training molecules with their labels (Parquet), needed to measure how samples "
        "follow a condition on a column of your table.",
    ] = None


class MoleculeFloorFiles(NamedTuple):
    """The files that a floor of molecules reads."""

    vocabulary: VocabularyFile
    smiles: SmilesFile
    molecules: DescribedFile
    norms: NormsFile
    start: Annotated[
        Path | None,
        "Samples (Parquet) of the model that the trainings start from, to be measured as a control.",
    ] = None


class MoleculesKind(OnDemandKind):
    name, settings, rows = "molecules", Molecules, "molecules"
    metrics, groups = METRICS, GROUPS
    floor, floor_reads = MoleculeDraws, MoleculeFloorFiles
    real, comparison = MoleculeFiles, Chemistry
    keeps_symbols = takes_long = True
    demanded, chosen_by = frozenset(DemandSettings.model_fields), ("plausible", "valid")
    steps, commands = ("describe_molecules", "norms", "chemnet"), ("metrics",)

    prepared = ROWS | {
        "known.parquet": "Hashes of the molecules of the whole data set (Parquet).",
        "smiles.parquet": "Canonical SMILES of the whole data set (Parquet).",
        "rejected.parquet": "Rows that were left out, with reasons (Parquet).",
    }

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
        self.load("prepare").store(settings, files, parent, progress, work)

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

    def list_metrics(self, settings: Molecules) -> Mapping[str, Metric]:
        return {**METRICS, **OFF_RULES} if self.is_complete(settings) else METRICS

    def is_partial(self, settings: Molecules) -> bool:
        return super().is_partial(settings) or settings.max_heavy_atoms is not None

    def is_complete(self, settings: Molecules) -> bool:
        """Whether the data set has every molecule that follows its rules, so that a novel one breaks them."""
        return settings.source == "small_molecules" and not self.is_partial(settings)

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
