"""The metrics of samples of molecules, and the files with which samples are compared."""

from pathlib import Path
from typing import Annotated, NamedTuple

from pairflow.metrics.metric import Metric


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
