"""What pages show of text: rows, pairs, the headline, and warnings of suspicious samples."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from pairflow.config import Experiment
from pairflow.kinds.text.controls import CONTROLS
from pairflow.kinds.text.ngrams import mark_padding
from pairflow.kinds.text.page.details import describe_text, measured_rows
from pairflow.kinds.text.tokenisers import load_tokeniser
from pairflow.plan import paths
from pairflow.report.contents import Contents
from pairflow.report.findings import Box, Flaw, Headline, Measure, MethodLine, Run
from pairflow.report.grid import Grid, differ_in_entropy
from pairflow.report.kind_page import (
    TIMES,
    Details,
    Flawed,
    KindPage,
    Samples,
    draw_pairs,
    name_best,
    name_rows,
)
from pairflow.report.results import FinishedExperiment

_PAIRS = 3  # per coupling
_LONGEST = 400  # most tokens of a pair that are shown
_BREAKS = str.maketrans("\n\r\t", "↵↵⇥")


class TextPage(KindPage):
    section, controls = "kinds/text/page/section.html", tuple(CONTROLS)
    counted: ClassVar = {"judge": "Rows of the judge", "rejected": "Rejected pieces"}

    def read(self, root: Path, experiment: Experiment, samples: Samples) -> dict[str, object]:
        """Read `rows`, some training rows and samples as text, and `pairs`, for each coupling some pairs
        as lines of text from data x1 to noise x0."""
        tokeniser = load_tokeniser(paths.data(root, "vocabulary.json"))
        symbols = {
            token: symbol.replace(" ", "␣").translate(_BREAKS)
            for token, symbol in enumerate(tokeniser.tokens)
        }
        rows = {
            name: [tokeniser.decode(row).translate(_BREAKS) for row in texts]
            for name, texts in name_rows(root, samples, self.shown).items()
        }
        names, seed = experiment.couplings(), experiment.seeds[0]
        pairs = {name: _spell_pairs(root, seed, name, symbols) for name in names}
        return {"rows": rows, "pairs": pairs}

    def prepare_bounds(self, root: Path, held_out: np.ndarray) -> Callable[[float], Mapping[str, float]]:
        """Return a function from a bound in nats per token to a perplexity and to bits per character."""
        tokeniser = load_tokeniser(paths.data(root, "vocabulary.json"))
        tokens = np.count_nonzero(mark_padding(held_out, tokeniser.padding) >= 0)
        density = tokens / max(sum(len(tokeniser.decode(row)) for row in held_out), 1)
        return lambda nll: {"ppl_bound": np.exp(nll), "bpc_bound": nll / np.log(2) * density}

    def write_headline(
        self, leading: Grid, best: MethodLine, measures: Mapping[str, Measure], results: FinishedExperiment
    ) -> str:
        perplexity, entropy = (measures[name] for name in ("judge_ppl", "entropy"))
        entropies = [
            entropy.values[leading.best(method)] for method in {method for method, _ in leading.means}
        ]
        limit = ""
        if differ_in_entropy(min(entropies), max(entropies)):
            limit = (
                f" The methods’ entropies, {min(entropies):.2f} to {max(entropies):.2f} nats, differ too "
                "much to compare perplexities. So “best” here only means “likeliest”."
            )
        return (
            f"{name_best(leading, best, 'The')} writes text with a perplexity "
            f"of {perplexity.text(best)} under the judge and an entropy of {entropy.text(best)} nats. "
            f"Held-out text has {perplexity.real} and {entropy.real} nats.{limit}"
        )

    def find_flaws(
        self, results: FinishedExperiment, measured: Sequence[Grid], evaluation: str
    ) -> Iterator[tuple[Run, Flaw]]:
        for row in measured_rows(results, evaluation).itertuples():
            yield from (((row.method, row.nfe), Flaw("nonsense", text)) for text in row.warnings)

    def write_boxes(
        self, flawed: Mapping[str, Flawed], headline: Headline, results: FinishedExperiment
    ) -> Iterator[Box]:
        """Yield a box on methods whose samples, at their best number of steps, have suspicious values.
        `flawed` maps the name of each flaw to the methods that have it."""
        if suspects := flawed.get("nonsense"):
            named = "; ".join(
                f"{line.method}: {', '.join(flaw.text for flaw in flaws)}" for line, flaws in suspects.items()
            )
            text = (
                f"Samples are suspicious: {named}. Read some, and compare them with the controls, before you "
                "trust a good perplexity."
            )
            severe = len(suspects.get(headline.best, ())) > 1
            yield Box("These samples may not be real text.", text, severe, late=True)

    def make_details(
        self, contents: Contents, evaluation: str, tables: Sequence[Grid], prefix: str
    ) -> Details:
        return describe_text(contents, evaluation, prefix)


def _spell_pairs(root: Path, seed: int, coupling: str, symbols: Mapping[int, str]) -> list[list[str]]:
    """Write some pairs as text, each as lines from `t = 1 <x1>` to `t = 0 <x0>` with the states between.
    `symbols` maps tokens to their texts."""
    x1, states, x0 = draw_pairs(root, seed, coupling, _PAIRS)
    paths_of_pairs = np.concatenate([x1[:, None], states, x0[:, None]], axis=1)  # (B, S + 2, N)
    return [
        [
            f"t = {time:<5.3g} {''.join(symbols[token] for token in row)}"
            for time, row in zip((1.0, *TIMES, 0.0), pair[:, :_LONGEST].tolist(), strict=True)
        ]
        for pair in paths_of_pairs
    ]
