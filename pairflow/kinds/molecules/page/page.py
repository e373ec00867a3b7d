"""What pages show of molecules."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pairflow.artifacts import read_table, token_array
from pairflow.config import Experiment
from pairflow.kinds import kind_of
from pairflow.kinds.molecules.page.details import MoleculeDetails, describe_molecules, sampling_yields
from pairflow.limits import HOPELESS, USABLE
from pairflow.metrics.ranking import leading_evaluation
from pairflow.plan import paths
from pairflow.report.contents import Contents, PagePart
from pairflow.report.flaws import Flaw, Run, end_losses
from pairflow.report.grid import Grid, choose_digits, list_grids
from pairflow.report.headline import Box, Headline, Measure, MethodLine, Values, measure_bounds
from pairflow.report.kind_page import (
    EXPECTED_COPIES,
    Flawed,
    KindPage,
    Samples,
    choose_examples,
    find_copies,
    find_means,
)
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import format_count, format_number, format_percent, join_steps

_EXAMPLES = 12  # training molecules
_SHOWN = 12  # molecules of a gallery
_DISTANCES = {"fcd": "FCD", "logp_wasserstein": "logP distance"}  # the first one measured
_MEMORISED = 0.2  # training loss over validation loss of a network that has nothing left to learn
FEW = 100  # valid molecules of a trial: of fewer, the share of unique ones says little


@dataclass(frozen=True)
class MoleculePart(PagePart):
    """What only pages of molecules show.

    samples     method -> NFE -> decoded SMILES of the first seed's first trial, in the order drawn
    examples    some training molecules as SMILES
    properties  evaluation -> NFE -> method -> rows property, low, high, samples, training: how many
                molecules have the property in a bin, as `chemistry.histograms` counts them
    """

    samples: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    properties: dict[str, dict[int, dict[str, pd.DataFrame]]] = field(default_factory=dict)


class MoleculesPage(KindPage):
    things, section, shown = "molecules", "kinds/molecules/page/section.html", None
    counted: ClassVar = {"rejected": "Rejected rows", "smiles": "Molecules of the data set"}

    def read(self, root: Path, experiment: Experiment, samples: Samples) -> MoleculePart:
        from pairflow.kinds.molecules.prepare import PAD, Vocabulary

        vocabulary = Vocabulary.load(paths.data(root, "vocabulary.json"))
        decoded = {
            method: {nfe: [vocabulary.decode(row) for row in tokens] for nfe, tokens in by_nfe.items()}
            for method, by_nfe in samples.items()
        }
        table, _ = read_table(paths.data(root, "train.parquet"), "tokens")
        rows = choose_examples(len(table), _EXAMPLES, experiment.seeds[0])
        examples = [vocabulary.decode(row) for row in token_array(table["tokens"].take(rows))]
        symbols = dict(enumerate(vocabulary.tokens)) | {PAD: "·"}
        part = MoleculePart(symbols=symbols, samples=decoded, examples=examples)
        for run in paths.runs(experiment):
            if run.nfe in paths.shown_nfe(experiment, run.evaluation):
                table = read_table(paths.measured(root, run, "properties"), "property histograms")[
                    0
                ].to_pandas()
                by_method = part.properties.setdefault(run.evaluation, {}).setdefault(run.nfe, {})
                if run.method in by_method:  # of another seed; the training molecules are the same
                    table["samples"] += by_method[run.method]["samples"]
                by_method[run.method] = table
        return part

    def headline_columns(self, results: FinishedExperiment, leading: Grid) -> dict[str, Measure]:
        """Shares of the samples, of the valid ones and of the distinct ones, all by canonical SMILES."""
        complete = is_complete(results.experiment)
        measured = list_grids(results.metrics, results.experiment, leading.evaluation)
        means = {grid.metric: grid.means for grid in measured}
        samples = dict.fromkeys(means["valid"], float(leading.frame.samples.max()))
        valid = _divide(means["valid"], samples)
        measures = {"valid": Measure("valid", "valid", valid, format_percent(1.0))}
        fewest, most = (choose(nfe for _, nfe in valid) for choose in (min, max))
        if fewest < most:
            few = {(method, nfe): valid.get((method, fewest), np.nan) for method, nfe in valid}
            measures["few"] = Measure(f"valid at NFE {fewest}", "valid", few, format_percent(1.0))
        if useful := means.get("useful_strict"):
            measures = {"useful": Measure("useful", "useful_strict", _divide(useful, samples)), **measures}
        if unique := means.get("unique_strict"):
            measures["unique"] = Measure("unique", "unique_strict", _divide(unique, means["valid"]))
            if novel := means.get("novel_strict"):
                heading = "off the rules" if complete else "novel"
                real = format_percent(0.0) if complete else "–"
                measures["novel"] = Measure(heading, "novel_strict", _divide(novel, unique), real)
        for metric, heading in _DISTANCES.items():
            if values := means.get(metric):
                digits = choose_digits([*values.values()])
                measures[metric] = Measure(heading, metric, values, digits=digits)
                break
        return measures | measure_bounds(results, leading)

    def write_headline(
        self, leading: Grid, best: MethodLine, measures: Mapping[str, Measure], results: FinishedExperiment
    ) -> str:
        complete, steps = is_complete(results.experiment), join_steps([best.nfe])
        text = (
            f"{measures['valid'].text(best)} of the samples of the best method, {best.method} at {steps}, "
            "are valid molecules; all of the data are valid."
        )
        if "useful" in measures:
            text += (
                f" {measures['useful'].text(best)} are useful: different, novel and as drug-like as the data."
            )
        if complete and "novel" in measures:
            off = measures["novel"].text(best)
            text += f" Of its distinct molecules {off} break the rules that all of the data keep."
        rows = results.measured[results.measured.evaluation == leading.evaluation]
        yields = sampling_yields(rows, results.timings)
        own = yields[(yields.method == best.method) & (yields.nfe == best.nfe)]
        means = own.groupby("metric")["value"].mean()
        if "unique_per_second" not in means:
            return text
        novel = ""
        if "novel_per_second" in means and not complete:
            novel = f", {format_number(means['novel_per_second'], 1)} of them novel"
        return (
            f"{text} A second of sampling gives {format_number(means['unique_per_second'], 1)} valid and "
            f"different molecules{novel}, by {best.calls} calls of the network for each sample."
        )

    def sample_command(self, root: Path, experiment: Experiment) -> str:
        """The molecules are new ones, unless what is new would break the rules of the data."""
        model, out = root.as_posix(), f"{root.name}_samples.smi"
        wanted = ["--unique"] if is_complete(experiment) else ["--unique", "--novel"]
        temperature = experiment.evaluations[leading_evaluation(experiment.evaluations)].temperature
        if temperature != 1:
            wanted += ["--temperature", f"{temperature:g}"]
        return shlex.join(["pairflow", "sample", "--model", model, "--count", "1000", *wanted, "--out", out])

    def find_flaws(
        self, results: FinishedExperiment, measured: Sequence[Grid], evaluation: str
    ) -> Iterator[tuple[Run, Flaw]]:
        unique, novel, valid, useful = (
            find_means(measured, name) for name in ("unique_strict", "novel_strict", "valid", "useful_strict")
        )
        if not is_complete(results.experiment):
            known = {run: 1 - novel[run] / count for run, count in unique.items() if run in novel and count}
            yield from find_copies(known, "most of its molecules are in the data set")
        if not valid:
            return
        samples = max(int(grid.frame.samples.max()) for grid in measured)
        for run, count in valid.items():
            if count / samples < USABLE:
                text = "under half of its samples are valid molecules"
                yield run, Flaw("invalid", text, count / samples)
        for run, count in useful.items():
            if count / samples < HOPELESS:
                text = f"under {HOPELESS:.0%} of its samples are useful molecules"
                yield run, Flaw("useless", text, count / samples)

    def write_boxes(
        self, flawed: Mapping[str, Flawed], headline: Headline, results: FinishedExperiment
    ) -> Iterator[Box]:
        """Invalid, useless and known molecules, and trials with too few of them."""
        if invalid := flawed.get("invalid"):
            named = headline.name_shares(invalid)
            text = f"Under half of the samples are valid molecules: {named}. {_advise(headline, results)}"
            yield _warn_of_use(headline.best in invalid, text)
        if useless := flawed.get("useless"):  # valid as they may be
            text = (
                f"Under {HOPELESS:.0%} of the samples are useful molecules: {headline.name_shares(useless)}. "
                f"Valid SELFIES can be nonsense: look at the molecules. {_advise(headline, results)}"
            )
            yield _warn_of_use(headline.best in useless, text)
        if known := flawed.get("copies"):
            text = f"distinct molecules are in the data set: {headline.name_shares(known)}. {EXPECTED_COPIES}"
            yield Box("Mostly copies.", f"More than half of the {text}")
        counts = {line: headline.samples * headline.value("valid", line) for line in headline.lines}
        if few := {line: count for line, count in counts.items() if count < FEW}:
            yield Box(
                "Too few to judge.",
                f"A trial has fewer than {FEW} valid molecules: {headline.name_values(few, format_count)}. "
                "The share of unique ones among so few says little. Draw more samples per trial.",
            )

    def make_details(
        self, contents: Contents, evaluation: str, tables: Sequence[Grid], prefix: str
    ) -> MoleculeDetails:
        measured = {table.metric: table for table in tables}
        return describe_molecules(contents, evaluation, measured, prefix, is_complete(contents.experiment))

    def draw(self, contents: Contents) -> dict[str, Any]:
        from pairflow.kinds.molecules.page.gallery import draw_gallery

        part, seed = contents.part, contents.experiment.seeds[0]
        galleries = {
            method: {
                nfe: draw_gallery(samples, _SHOWN, seed)
                for nfe, samples in sorted(part.samples[method].items())
            }
            for method in contents.methods
            if part.samples.get(method)
        }
        examples = draw_gallery(part.examples, _SHOWN, seed).molecules if part.examples else []
        complete = is_complete(contents.experiment)
        return {"galleries": galleries, "examples": examples, "shown": _SHOWN, "complete": complete}


def is_complete(experiment: Experiment) -> bool:
    """Whether a molecule that is not in the data breaks their rules."""
    kind: Any = kind_of(experiment.data)
    return bool(kind.is_complete(experiment.data))


def _divide(counts: Values, whole: Values) -> Values:
    return {key: count / whole[key] for key, count in counts.items() if whole.get(key)}


def _warn_of_use(severe: bool, text: str) -> Box:
    return Box("Not usable yet." if severe else "Not every method is usable.", text, severe)


def _advise(headline: Headline, results: FinishedExperiment) -> str:
    """What would give more valid molecules: no longer training where the network has memorised its data."""
    method = headline.best.method.partition("+")[0]  # a distillation has another loss
    log = results.logs.get(method) if results.experiment.training.loss == "nelbo" else None
    loss, nll = (1.0, 1.0) if log is None else end_losses(log)
    if loss < _MEMORISED * nll:
        return (
            f"{method} has memorised its training data (training loss {loss:.2f}, validation loss "
            f"{nll:.2f}): longer training will not help. Use more molecules, and on a GPU the transformer."
        )
    return "Train longer (training.iterations), use a larger network, or draw samples with more steps."


PAGE = MoleculesPage()
