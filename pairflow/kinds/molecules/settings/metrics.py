"""The metrics of samples of molecules, and the files with which samples are compared."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

from pairflow.metrics.metric import Metric

_count = partial(
    Metric,
    best="highest",
    real="held-out molecules",
    counted=True,
    compared=False,
    unit="samples",
    source="RDKit (`pairflow/kinds/molecules/measures/counts.py`)",
)
_plausible = partial(
    _count,
    description="Different novel molecules in which a chemist should find nothing odd, within limits that "
    "each hold for 95 % of the training molecules. With `chemistry: {plausible: true}`, which `pairflow "
    "new` writes, reports judge methods by `plausible` first.",
    formula="number of different canonical SMILES that are in no row and pass the metric's test and all "
    "tests before it in this list. `usual_size`: enough heavy atoms and heteroatoms (two heteroatoms always "
    "suffice). `usual_rings`: few ring systems (rings that share atoms, and the atoms doubly bound to them) "
    "that no training molecule has, and few atoms in the largest ring. `usual_atoms`: few atoms whose bonds"
    " and neighbours (Morgan, radius 1) occur in no training molecule and in fewer than 5 molecules of "
    "ZINC-250k. `few_alerts`: no alert that is rare in both the training molecules and ZINC-250k, and a low"
    " severity score (NIBR). Alerts are unwanted groups of the lists PAINS, NIH and BRENK, and odd bonds "
    "and charges, such as formamide, N-C-N or N-acyl ammonium. `plausible`: a low SA score (easy "
    "synthesis). The limits of *few*, *low* and *rare* are 95 % quantiles of up to 2,000 training "
    "molecules, each compared with the rest",
    unit="molecules",
    better="higher, up to held-out molecules",
    pitfalls="a training molecule with one more carbon is often plausible; a small library has wider "
    "limits; stability, synthesis and activity are not judged",
    source="RDKit (`pairflow/kinds/molecules/measures/plausible.py`)",
)
_stage = partial(_plausible, chart=False, group="stages")
_spelling = partial(
    _count,
    chart=False,
    group="spellings",
    description="As `unique_strict` and `novel_strict`, but for strings instead of molecules, as in the "
    "paper.",
    formula="number of different valid strings; number of these that are not in the data set",
    unit="strings",
    better="higher; lower if it is called *off the rules*",
    source="the authors' code (`pairflow/kinds/molecules/measures/counts.py`)",
)
_reason = partial(
    _count,
    best="",
    chart=False,
    group="reasons",
    description="Invalid samples by their first fault. *Empty*: only padding. *Syntax*: not a SMILES, for "
    "example with a branch left open. *Ring closure*: a ring stays open, closes onto its own atom, or joins "
    "bonded atoms. *Valence*: too many bonds. *Aromaticity*: an aromatic atom is outside a ring, or the "
    "bonds cannot alternate.",
    formula="number of samples; these counts and `valid` add up to all samples",
    better="lower",
)
_in_class = partial(
    _count,
    description="Valid samples whose property, computed by RDKit, is in the class that was asked for, such "
    "as `qed=high`. If several properties were asked for, `in_class` counts samples that meet all; each "
    "other count is by one property.",
    formula="number of valid samples in the class; classes are ranges between quantiles of the training "
    "molecules",
    pitfalls="repeats count; a model that ignores the class still hits it about as often as training "
    "molecules do",
    source="RDKit (`pairflow/kinds/molecules/structures/descriptors.py`)",
)
_target = partial(
    _count,
    chart=False,
    group="targets",
    source="`pairflow/kinds/molecules/measures/nearest_classes.py`",
)
_structure = partial(_count, chart=False, group="structure")
_scaffold = partial(
    _structure,
    description="Different Bemis-Murcko scaffolds: the rings of a molecule and what links them. "
    "`novel_scaffolds` counts only scaffolds that no training molecule has.",
    unit="scaffolds",
    pitfalls="both counts grow with the number of valid molecules; a novel scaffold may be impossible",
    source="Bemis and Murcko 1996 (`pairflow/kinds/molecules/measures/chemistry.py`)",
)
_common = partial(
    _structure,
    best="",
    description="Different valid molecules with one of the ten most common training scaffolds, or with the "
    "framework of one (the scaffold with all atoms carbon and all bonds single). These counts show whether "
    "a model has learnt the cores of a series.",
    unit="molecules",
    better="neither; near held-out molecules",
    pitfalls="both counts grow with the number of valid molecules; copies of training molecules count; in "
    "diverse libraries all scaffolds are rare",
    source="Bemis and Murcko 1996 (`pairflow/kinds/molecules/measures/chemistry.py`)",
)
_likeness = partial(Metric, chart=False, compared=False, unit="none, 0 to 1")
_property = partial(
    _likeness,
    best="lowest",
    group="properties",
    description="How far samples and training molecules differ in the distribution of a property: "
    "drug-likeness (QED, 0 to 1), synthetic accessibility (SA score: 1 is easy, 10 hard), octanol-water "
    "partition (logP) or weight.",
    formula="Wasserstein-1 distance between the values of different valid samples and of training molecules "
    "(20,000 at most)",
    unit="the property's; g/mol for the weight",
    pitfalls="few valid molecules make it larger",
    source="Bickerton et al. 2012, Ertl and Schuffenhauer 2009, Wildman and Crippen 1999; RDKit "
    "(`pairflow/kinds/molecules/structures/descriptors.py`)",
)
_NAMES = {"qed": "QED", "logp": "logP", "weight": "molecular weight", "rings": "rings"}
METRICS = {
    "plausible": _plausible("plausible", leads_as="the number of plausible molecules"),
    "valid": _count(
        "valid",
        leads_as="the number of valid molecules",
        description="Samples that are not empty and that RDKit reads.",
        pitfalls="repeats count, so read it with `unique_strict`",
    ),
    "unique_strict": _count(
        "unique",
        description="Different molecules among the valid samples.",
        formula="number of different canonical SMILES (or InChIKeys or tautomers, by the setting `identity`)",
        unit="molecules",
        pitfalls="the share of different molecules falls as more samples are drawn",
    ),
    "novel_strict": _count(
        "novel",
        description="Different molecules that no row of the data set has, not even a row that was left out "
        "of the training.",
        formula="as `unique_strict`, but only molecules that no row has",
        unit="molecules",
        better="higher; lower if it is called *off the rules*",
        pitfalls="novel molecules may be nonsense",
    ),
    "in_class": _in_class("in the class asked for"),
    "unique": _spelling("unique spellings"),
    "novel": _spelling("novel spellings"),
    "invalid_empty": _reason("empty"),
    "invalid_syntax": _reason("syntax"),
    "invalid_ring": _reason("ring closure"),
    "invalid_valence": _reason("valence"),
    "invalid_kekulize": _reason("aromaticity"),
    "usual_size": _stage("not unusually small"),
    "usual_rings": _stage("with usual rings, too"),
    "usual_atoms": _stage("with usual atoms, too"),
    "few_alerts": _stage("with few alerts, too"),
    "scaffolds": _scaffold("scaffolds"),
    "novel_scaffolds": _scaffold("novel scaffolds"),
    "common_scaffolds": _common("with a common scaffold"),
    "common_frameworks": _common("with a common framework"),
    "internal_diversity": _likeness(
        "internal diversity",
        best="highest",
        group="structure",
        description="How different the valid molecules of one trial are from one another.",
        formula="1 - mean Tanimoto similarity over all pairs of different molecules (Morgan, radius 2, "
        "2,048 bits)",
        pitfalls="nonsense is diverse, too; compare with training molecules",
        source="Benhenda 2017 (`pairflow/kinds/molecules/structures/similarity.py`)",
    ),
    "nn_similarity": _likeness(
        "similarity to the nearest training molecule",
        group="structure",
        description="How similar a valid molecule is to the nearest training molecule.",
        formula="mean over different molecules of the largest Tanimoto similarity (Morgan) to a training "
        "molecule",
        better="neither; at 1 all samples are copies",
        pitfalls="it rises with the size of the training set",
        source="RDKit (`pairflow/kinds/molecules/measures/chemistry.py`)",
    ),
    "qed_wasserstein": _property("QED"),
    "sa_wasserstein": _property("SA score"),
    "logp_wasserstein": _property("logP"),
    "weight_wasserstein": _property("molecular weight (g/mol)"),
    "fcd": _likeness(
        "FCD",
        best="lowest",
        group="properties",
        description="Fréchet ChemNet Distance: how far samples are from training molecules, by features of "
        'a network for drug activity. It needs `pip install "pairflow[fcd]"` and `chemistry: {fcd: true}`.',
        formula="Fréchet distance (as `fd`) between all valid samples and 10,000 training molecules at most",
        unit="none",
        pitfalls="it falls as more valid samples are drawn, so compare equal numbers; publications "
        "take 10,000",
        source="Preuer et al. 2018 (`pairflow/kinds/molecules/measures/training_molecules.py`)",
    ),
    **{
        f"{name}_in_class": _in_class(f"in the class of {of}", chart=False, group="targets")
        for name, of in _NAMES.items()
    },
    "nearest_in_class": _target(
        "nearest training molecule in the class asked for",
        description="Valid samples whose nearest training molecule is in the class that was asked for. "
        "Classes come from a column of your table, such as `pIC50`.",
        formula="number of such samples; nearest by Tanimoto similarity (Morgan, radius 2, 2,048 bits) of "
        "the training molecules with a value in the column",
        better="higher than `nearest_by_chance`",
        pitfalls="repeats count; similar molecules may differ in the property",
    ),
    "nearest_by_chance": _target(
        "nearest training molecule in that class by chance",
        best="",
        description="About what `nearest_in_class` would be if the model ignored the class.",
        formula="each valid sample adds the share of the training molecules (with a value) that are in the "
        "class it was asked for",
        pitfalls="samples may come from one part of the library whatever the class, so compare with "
        "guidance 0 (no class)",
    ),
}
# Labels for a data set that has every molecule that follows its rules: a novel molecule breaks the rules.
OFF_RULES = {
    "novel_strict": replace(METRICS["novel_strict"], label="off the rules", best="lowest"),
    "novel": replace(METRICS["novel"], label="off the rules, spellings", best="lowest"),
    "novel_scaffolds": replace(
        METRICS["novel_scaffolds"], label="scaffolds that no training molecule has", best=""
    ),
}
GROUPS = {
    "stages": "On the way from novel to plausible",
    "structure": "Pieces, scaffolds, similarity",
    "properties": "Distance of properties from the training set’s",
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
    """The files with which samples of molecules are compared; they are made from the data set."""

    vocabulary: VocabularyFile
    smiles: SmilesFile
    molecules: DescribedFile
    chemnet: Annotated[
        Path | None, "ChemNet statistics of the training molecules (Parquet), needed for FCD."
    ] = None
    norms: NormsFile = None
    labels: Annotated[
        Path | None,
        "Token rows of the training molecules with their labels (Parquet). A condition on a column of your "
        "table needs them, to measure how well samples follow it.",
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
