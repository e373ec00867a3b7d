"""The metrics of molecules."""

from pairflow.metrics.metric import Metric


def _count(label: str, best: str = "highest", leads_as: str = "", group: str = "") -> Metric:
    return Metric(label, best, leads_as, chart=not group, counted=True, group=group, compared=False)


def _likeness(label: str, group: str, best: str = "lowest") -> Metric:
    return Metric(label, best, chart=False, group=group, compared=False)


METRICS = {
    "useful_strict": _count("useful", leads_as="the number of useful molecules"),
    "useful": _count("useful by QED and logP"),
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
    "connected": _count("connected", group="structure"),
    "scaffolds": _count("scaffolds", group="structure"),
    "novel_scaffolds": _count("novel scaffolds", group="structure"),
    "internal_diversity": _likeness("internal diversity", "structure", "highest"),
    "nn_similarity": _likeness("similarity to the nearest training molecule", "structure", ""),
    "internal_diversity_2": _likeness("internal diversity 2", "moses", "highest"),
    "filters": _likeness("share that passes the filters", "moses", "highest"),
    "held_out_similarity": _likeness("similarity to the nearest held-out molecule", "moses", "highest"),
    "held_out_fragments": _likeness("fragments as in held-out molecules", "moses", "highest"),
    "held_out_scaffolds": _likeness("scaffolds as in held-out molecules", "moses", "highest"),
    "unseen_similarity": _likeness("similarity to the nearest with an unseen scaffold", "moses", "highest"),
    "unseen_fragments": _likeness("fragments as in molecules with unseen scaffolds", "moses", "highest"),
    "unseen_scaffolds": _likeness("scaffolds as in molecules with unseen ones", "moses", "highest"),
    "qed_wasserstein": _likeness("QED", "properties"),
    "sa_wasserstein": _likeness("SA score", "properties"),
    "logp_wasserstein": _likeness("logP", "properties"),
    "weight_wasserstein": _likeness("molecular weight (g/mol)", "properties"),
    "fcd": _likeness("FCD", "properties"),
    "valid_per_second": _likeness("valid per second", "speed", "highest"),
    "unique_per_second": _likeness("unique per second", "speed", "highest"),
    "novel_per_second": _likeness("novel per second", "speed", "highest"),
}
# In a complete data set every molecule that keeps its rules is known, so that a novel one breaks them.
OFF_RULES = {
    "novel_strict": _count("off the rules", "lowest"),
    "novel": _count("off the rules, spellings", "lowest", group="spellings"),
    "novel_scaffolds": _count("scaffolds that no training molecule has", "", group="structure"),
}
GROUPS = {
    "structure": "Pieces, scaffolds, similarity",
    "moses": "Beside held-out molecules, and filters (MOSES)",
    "properties": "Distance of properties from the training set’s",
    "reasons": "Why samples are invalid",
    "spellings": "Spellings, as the paper counts",
}
