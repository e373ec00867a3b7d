"""Metrics that belong to no kind of data: of paths, likelihoods, pairs and total correlations."""

from functools import partial

from pairflow.metrics.metric import Metric

_path = partial(
    Metric,
    real="held-out data",
    digits=3,
    group="paths",
    description="What the paths from sources to samples cost (`path_energy`), and how far they are from "
    "straight lines (`straightness`).",
    formula="mean over samples of the integral over t of abs(v)^2; of abs(v - (x1 - x0))^2, with the "
    "velocity v, start x0 and end x1 of a path",
    unit="the data's, squared",
    better="neither; at a straightness of 0 one Euler step is exact",
    pitfalls="poor samples may have straight paths, too; in one step straightness is always 0",
    source="Liu et al. 2023 (`pairflow/flow/continuous.py`)",
)
PATHS = {"path_energy": _path("path energy"), "straightness": _path("deviation from straight paths")}
PATH_GROUP = {"paths": "Paths from source to sample"}

_text_bound = partial(
    Metric,
    best="lowest",
    description="`nll_bound` as a perplexity per token, and in bits per character. Reports print these with "
    "a ≤ sign.",
    formula="exp(nll_bound); nll_bound / ln 2 × tokens / characters, without padding",
    unit="none; bits per character",
    pitfalls="as for `nll_bound`; perplexities of different tokenisers cannot be compared, but bits per "
    "character can",
    source="as for `nll_bound` (`pairflow/kinds/text/page/page.py`)",
)
BOUNDS = {
    "nll_bound": Metric(
        "NLL bound",
        "lowest",
        digits=3,
        description="Upper bound on the negative log-likelihood of held-out rows: the last `validation_nll` "
        "of the training (evaluation `likelihood`).",
        formula='the NELBO (docs/method.md, "Noising and losses"), mean over tokens without padding',
        unit="nats per token",
        pitfalls="it is measured with independent noise, but models of pairs learn from the noise of their "
        "pairs: their bound may be higher although their samples are better; bounds of masks (`mdlm`) and "
        "of other noise are not comparable; few rows give a noisy value",
        source="Schiff et al. 2024; Sahoo et al. 2024 (`pairflow/training/objectives.py`, class `Validator`)",
    ),
    "ppl_bound": _text_bound("perplexity bound", digits=2),
    "bpc_bound": _text_bound("bits per character", digits=3),
}
_LIKELIER = Metric(
    "likelier under their own class",
    "highest",
    description="Share of held-out rows that are likelier under their own class than under any other. It "
    "shows how well the model has learnt its condition, and is measured once per training, for one "
    "property (evaluation `condition`).",
    formula="share of rows whose bound on -log p (from 16 noised copies, the same for all classes) is least "
    "with their own label; `likelier_by_chance` is 1 / number of classes",
    unit="share, 0 to 1",
    better="higher for `likelier_in_class`",
    pitfalls="the standard error is up to 0.5 / √rows; the metric says nothing about guidance",
    source="`pairflow/training/bound.py` (`compare_classes`)",
)
LIKELIHOODS = {**BOUNDS, **dict.fromkeys(("likelier_in_class", "likelier_by_chance"), _LIKELIER)}

_DISTANCES = Metric(
    "Hamming distances",
    description="In how many positions sources differ from their data rows. `hamming_independent` is the "
    "mean for independent sources, and `hamming_nearest` the mean distance of sources from their nearest "
    "row. `hamming_share_<d>` is the share of pairs at distance d.",
    formula="mean; standard deviation of the Hamming distances of source x0 and row x1; N (K - 1) / K for N "
    "positions and K symbols; mean over 16 to 256 sources of the least distance. With [noise by "
    "frequency](method.md#noise-by-frequency) `hamming_independent` and `hamming_nearest` are of sources "
    "from this noise",
    unit="positions",
    better="neither; a near source leaves less noise to remove",
    pitfalls="sources that equal their data are near but teach nothing (`symbol_deviation` is then large); "
    "independent sources teach what pairs of `random` teach",
    source="the paper, Figure 2 (`pairflow/metrics/coupling.py`)",
)
_SQUARED_DISTANCES = Metric(
    "squared distances",
    description="For continuous couplings: how far sources x0 are from their data points x1, and how far "
    "independent sources would be. `reached` is the share of the data points to which the path of a source "
    "leads, and `moved` how far a path ends from its data point.",
    formula="mean of abs(x1 - x0)^2; d + mean of abs(x1)^2, with d coordinates; number of different x1 / "
    "number of pairs; mean of abs(end of the path - x1)",
    unit="the data's, squared, for both distances; a share; the data's",
    better="neither; about 63.2 % of the data are reached, as by independent draws",
    pitfalls="a large `moved` means that the pairing has too few steps",
    source="the paper, appendix E (`pairflow/metrics/coupling.py`)",
)
_DEVIATIONS = Metric(
    "deviation from noise",
    description="How far the frequencies of the sources' symbols are from the noise's, and how far they "
    "would be by chance.",
    formula="total variation distance between these frequencies and 1/K, for K symbols; by chance sqrt((K - "
    "1) / (2 pi M N)) for M rows of N positions. With [noise by frequency](method.md#noise-by-frequency) "
    "the noise's frequencies take the place of 1/K in both metrics",
    unit="none, 0 to 1",
    better="neither; near the expected value",
    pitfalls="it does not see whether positions depend on one another",
    source="counts of all pairs (`pairflow/metrics/coupling.py`)",
)
_ADOPTED = Metric(
    "your own pairs",
    "lowest",
    description="In your own pairs: training rows that are the x1 of no pair, and pairs left out because "
    "their x1 is a held-out row but no training row.",
    unit="rows; pairs",
    pitfalls="models never train on unpaired rows, so results also depend on which rows have pairs",
    source="counted by the step `adopt` (`pairflow/data/own_pairs.py`)",
)
_TRANSPORT = Metric(
    "semidiscrete transport",
    description="For `sdot`: how unequally often rows are drawn (`spread`), how near sources are "
    "(`distance`), and how much a source tells about its row (`information`).",
    formula="variance / mean of how often a row is drawn, at 4 draws per row; mean Hamming distance (for "
    "real numbers: squared distance); log M minus the mean entropy of the row given the source, for M rows",
    unit="none; positions; nats",
    better="neither; with a spread near 1 all rows are drawn equally often",
    pitfalls="a large spread leaves rows out, which also lowers the distance; at a spread of 1.1 the rows' "
    "probabilities vary by 16 % (standard deviation)",
    source="new sources (`pairflow/pairing/transport.py`)",
)
_COVERAGE = Metric(
    "coverage",
    "highest",
    description="How many of the M data rows are reached from noise along the closed-form [forward "
    "velocity](method.md#forward-construction).",
    formula="different rows reached / M; 1 - (1 - 1/M)^k, as by k independent draws; different rows reached",
    unit="shares, 0 to 1, but rows for `unique_reached`",
    pitfalls="M independent draws reach only 63 %; fewer forward steps (`pairing: {coverage_steps: 12}`) "
    "reach less",
    source="the paper's forward construction (`pairflow/pairing/forward.py`)",
)
PAIRS = {
    **dict.fromkeys(("hamming_mean", "hamming_std", "hamming_independent", "hamming_nearest"), _DISTANCES),
    **dict.fromkeys(
        ("squared_distance", "squared_distance_independent", "reached", "moved"), _SQUARED_DISTANCES
    ),
    **dict.fromkeys(("symbol_deviation", "symbol_deviation_expected"), _DEVIATIONS),
    **dict.fromkeys(("unpaired_rows", "held_out_pairs"), _ADOPTED),
    **dict.fromkeys(("spread", "distance", "information"), _TRANSPORT),
    **dict.fromkeys(("coverage", "coverage_predicted", "unique_reached"), _COVERAGE),
}

_CORRELATION = Metric(
    "total correlation",
    "lowest",
    description="How much the tokens of a sample depend on one another, once its source is given. `_se` is "
    "the standard error over sources, and `_ceiling` the value for unrelated data rows. `correlation: "
    "{methods: [udlm, random]}` chooses methods.",
    formula="sum_i H(x^i) - H(x), with the entropies H of a position and of the whole sample, from counts "
    "over the samples of one source; mean over sources",
    unit="bits",
    better="lower, because a step draws positions as if they were independent",
    pitfalls="with few samples per source it is nearly all bias, so never read it without its ceiling",
    source="Watanabe 1960; the paper's protocol (`pairflow/metrics/correlation.py`)",
)
CORRELATIONS = dict.fromkeys(
    ("total_correlation", "total_correlation_se", "total_correlation_ceiling"), _CORRELATION
)
SHARED = {**PATHS, **LIKELIHOODS, **PAIRS, **CORRELATIONS}
