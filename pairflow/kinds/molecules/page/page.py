"""Defines what pages show of molecules, and the warnings about bad samples."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from rdkit import Chem

from pairflow import rng
from pairflow.artifacts import read_table, token_array
from pairflow.config import Experiment
from pairflow.kinds import kind_of
from pairflow.kinds.molecules.data.known import KnownMolecules
from pairflow.kinds.molecules.data.prepare import Vocabulary
from pairflow.kinds.molecules.measures.counts import canonical
from pairflow.kinds.molecules.measures.plausible import Norms, is_plausible
from pairflow.kinds.molecules.page.details import describe_molecules
from pairflow.kinds.molecules.page.drawing import draw_gallery
from pairflow.kinds.molecules.settings import DESCRIBED_ROWS, chemistry_settings, identity_of
from pairflow.kinds.molecules.structures.standardise import IDENTITIES, identify
from pairflow.limits import HOPELESS, USABLE
from pairflow.metrics.metric import HELD_OUT
from pairflow.plan import paths
from pairflow.report.contents import Contents
from pairflow.report.findings import Box, Flaw, Headline, Measure, MethodLine, Run, measure_bounds
from pairflow.report.grid import REAL, Grid, few_held_out
from pairflow.report.headline import end_losses
from pairflow.report.kind_page import (
    EXPECTED_COPIES,
    Details,
    Flawed,
    KindPage,
    Samples,
    choose_examples,
    find_copies,
    find_means,
    name_best,
)
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import format_count, format_percent, pluralise

_EXAMPLES = 12  # training molecules
_SHOWN = 12  # molecules of a gallery
_DISTANCES = {"fcd": "FCD", "logp_wasserstein": "logP distance"}  # the headline has the first measured one
_MEMORISED = 0.2  # training loss over validation loss: below it, longer training does not help
FEW = 100  # with fewer valid molecules in a trial, the share of unique molecules says little


class MoleculesPage(KindPage):
    things, section, shown = "molecules", "kinds/molecules/page/section.html", None
    counted: ClassVar = {"rejected": "Rejected rows", "smiles": "Molecules of the data set"}

    def read(self, root: Path, experiment: Experiment, samples: Samples) -> dict[str, object]:
        """Read what only pages of molecules show. Returns a dict:

        - `samples`: method -> NFE -> decoded SMILES of the argument's token rows, which are of the first
          seed's first trial, in the order drawn.
        - `examples`: some training molecules as SMILES.
        - `choose_plausible`: a function from (evaluation, method, NFE) to some plausible samples as SMILES.
        - `properties`: evaluation -> NFE -> method -> a table of numbers of molecules in each bin of a
          property, see `chemistry.histograms`. It has only the NFEs that the page shows; samples of all seeds
          are added up.
        """
        vocabulary = Vocabulary.load(paths.data(root, "vocabulary.json"))
        table, _ = read_table(paths.data(root, "train.parquet"), "tokens")
        rows = choose_examples(len(table), _EXAMPLES, experiment.seeds[0])
        properties: dict[str, dict[int, dict[str, pd.DataFrame]]] = {}
        for run in paths.runs(experiment):
            if run.nfe in paths.shown_nfe(experiment, run.evaluation):
                counts, _ = read_table(paths.measured(root, run, "properties"), "property histograms")
                frame = counts.to_pandas()
                by_method = properties.setdefault(run.evaluation, {}).setdefault(run.nfe, {})
                if run.method in by_method:  # from another seed, with the same training molecules
                    frame["samples"] += by_method[run.method]["samples"]
                by_method[run.method] = frame
        return {
            "samples": {
                method: {nfe: [vocabulary.decode(row) for row in tokens] for nfe, tokens in by_nfe.items()}
                for method, by_nfe in samples.items()
            },
            "examples": [vocabulary.decode(row) for row in token_array(table["tokens"].take(rows))],
            "choose_plausible": partial(choose_plausible, root, experiment, _SHOWN),
            "properties": properties,
        }

    def headline_columns(self, results: FinishedExperiment, leading: Grid) -> dict[str, Measure]:
        """Return the columns of the headline, by name: shares of molecules, a distance from the training
        molecules, and bounds. Plausible and valid molecules are shares of the samples, unique ones of the
        valid molecules, and novel ones of the unique molecules. `leading` is the table of the metric that
        judges methods."""
        grids = {grid.metric: grid for grid in results.grids[leading.evaluation]}
        valid = grids["valid"].means
        samples = dict.fromkeys(valid, float(leading.frame.samples.max()))
        whole = {**dict.fromkeys(["plausible", "valid"], samples), "unique": valid}
        whole["novel"] = grids["unique_strict"].means if "unique_strict" in grids else {}
        real = {"valid": 1.0, "novel": 0.0 if is_complete(results.experiment) else np.nan}
        measures = {}
        for key, wholes in whole.items():
            if grid := grids.get(key if key in ("plausible", "valid") else f"{key}_strict"):
                shares = {run: count / wholes[run] for run, count in grid.means.items() if wholes.get(run)}
                text = format_percent(real.get(key, np.nan))
                if key == "plausible":
                    text = describe_held_out(results.metrics, leading.evaluation, grid.metric)
                judges = grid.about.leading_share
                measures[key] = Measure(grid.about.label, grid.metric, shares, text, judges=judges)
        fewest, most = (choose(nfe for _, nfe in valid) for choose in (min, max))
        if fewest < most and leading.metric == "valid":
            of_valid = measures["valid"].values
            few = {(method, nfe): of_valid.get((method, fewest), np.nan) for method, nfe in of_valid}
            measures["few"] = Measure(
                f"valid at {pluralise(fewest, 'step')}", "valid", few, format_percent(1.0)
            )
        for name in [name for name in _DISTANCES if name in grids][:1]:
            measures[name] = Measure(_DISTANCES[name], name, grids[name].means, digits=grids[name].digits)
        return measures | measure_bounds(results, leading)

    def write_headline(
        self, leading: Grid, best: MethodLine, measures: Mapping[str, Measure], results: FinishedExperiment
    ) -> str:
        text = (
            f"{measures['valid'].text(best)} of the samples of {name_best(leading, best)} are valid "
            "molecules. All molecules of the data are valid."
        )
        if "plausible" in measures:
            text += (
                f" {measures['plausible'].text(best)} are plausible: different, novel, and with nothing "
                "unusual compared with the training molecules. "
            )
            real, held_out = measures["plausible"].real, find_held_out(results.metrics, leading.evaluation)
            if few_held_out(results.metrics, leading.evaluation):
                text += f"{real} held-out molecules are plausible: too few for a comparison."
            else:
                text += f"Of {f'{held_out:,} ' * bool(held_out)}held-out molecules {real} are plausible."
        if is_complete(results.experiment) and "novel" in measures:
            off = measures["novel"].text(best)
            text += f" Of the different valid samples {off} break the rules that all of the data obey."
        return text

    def sample_command(self, root: Path, experiment: Experiment) -> str:
        """Return a `pairflow sample` command for the results folder `root`. It asks for unique molecules; for
        novel ones, unless the data set is complete; and for plausible ones, if the experiment counts them."""
        model, out = root.as_posix(), f"{root.name}_samples.smi"
        wanted = ["--unique"] if is_complete(experiment) else ["--unique", "--novel"]
        wanted += ["--plausible"] if chemistry_settings(experiment).plausible else []
        return shlex.join(["pairflow", "sample", "--model", model, "--count", "1000", *wanted, "--out", out])

    def find_flaws(
        self, results: FinishedExperiment, measured: Sequence[Grid], evaluation: str
    ) -> Iterator[tuple[Run, Flaw]]:
        unique, novel, valid, plausible = (
            find_means(measured, name) for name in ("unique_strict", "novel_strict", "valid", "plausible")
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
        for run, count in plausible.items():
            if count / samples < HOPELESS:
                text = f"under {HOPELESS:.0%} of its samples are plausible molecules"
                yield run, Flaw("useless", text, count / samples)

    def write_boxes(
        self, flawed: Mapping[str, Flawed], headline: Headline, results: FinishedExperiment
    ) -> Iterator[Box]:
        """Yield boxes on methods with few valid molecules, few plausible ones or mostly known ones, and on
        trials with too few valid molecules. `flawed` maps the name of each flaw to the methods that have
        it."""
        if invalid := flawed.get("invalid"):
            named = headline.name_shares(invalid)
            text = f"Under half of the samples are valid molecules: {named}. {_advise(headline, results)}"
            yield _warn_of_use(headline.best in invalid, text)
        if useless := flawed.get("useless"):
            text = (
                f"Under {HOPELESS:.0%} of the samples are plausible molecules: "
                f"{headline.name_shares(useless)}. Valid molecules can be nonsense: look at them. "
                f"{_advise(headline, results)}"
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
    ) -> Details:
        measured = {table.metric: table for table in tables}
        return describe_molecules(contents, evaluation, measured, prefix)

    def draw(self, contents: Contents) -> dict[str, object]:
        part, seed = contents.part, contents.experiment.seeds[0]
        galleries = {
            method: {nfe: draw_gallery(samples, _SHOWN, seed) for nfe, samples in sorted(by_nfe.items())}
            for method, by_nfe in part["samples"].items()
            if by_nfe
        }
        examples = draw_gallery(part["examples"], _SHOWN, seed).molecules
        complete = is_complete(contents.experiment)
        leading = contents.leading
        plausible = part["choose_plausible"](leading.evaluation, *leading.best()) if leading else []
        return {
            "plausible": draw_gallery(plausible, _SHOWN, seed).molecules,
            "galleries": galleries,
            "examples": examples,
            "shown": _SHOWN,
            "complete": complete,
            "identity": IDENTITIES[identity_of(contents.experiment)],
            "compared": min(contents.data["training_rows"], DESCRIBED_ROWS),
        }


def choose_plausible(
    root: Path, experiment: Experiment, number: int, evaluation: str, method: str, nfe: int
) -> list[str]:
    """Choose at random up to `number` samples (SMILES) that are plausible, novel and different from each
    other. They are of the first seed, and of the given evaluation, method and NFE. Returns an empty list if
    the experiment does not count plausible molecules."""
    if not chemistry_settings(experiment).plausible:
        return []
    files = kind_of(experiment.data).reference.list_files(root, experiment)
    vocabulary, norms = Vocabulary.load(files["vocabulary"]), Norms.read(files["norms"])
    run = paths.SampleRun(experiment.seeds[0], method, evaluation, nfe)
    tokens = token_array(read_table(paths.samples(root, run), "samples")[0]["tokens"])
    order = rng.random_order(rng.stream_seed(run.seed, "plausible"), len(tokens))
    known, identity = KnownMolecules.load(paths.data(root, "known.parquet")), identity_of(experiment)
    chosen: dict[str, str] = {}  # by what identifies them
    for name in filter(None, (canonical(vocabulary.decode(row)) for row in tokens[order])):
        key = identify(name, identity)
        if key not in known and key not in chosen and is_plausible(Chem.MolFromSmiles(name), norms):
            chosen[key] = name
        if len(chosen) == number:
            break
    return [*chosen.values()]


def find_held_out(metrics: pd.DataFrame, evaluation: str) -> int:
    """Return the number of held-out molecules that were measured; 0 if it is unknown."""
    counts = metrics.value[(metrics.metric == HELD_OUT) & (metrics.evaluation == evaluation)]
    return 0 if counts.empty else int(counts.iloc[0])


def describe_held_out(metrics: pd.DataFrame, evaluation: str, metric: str) -> str:
    """Write the share of held-out molecules that `metric` counts in an evaluation, in per cent, or as `5
    of 8` if few were measured. (Their metric rows are scaled to the number of samples.)"""
    rows = metrics[(metrics.metric == metric) & (metrics.evaluation == evaluation) & (metrics.method == REAL)]
    share = float((rows.value / rows.samples).mean())
    few = few_held_out(metrics, evaluation)
    return f"{share * few:.0f} of {few}" if few and not rows.empty else format_percent(share)


def is_complete(experiment: Any) -> bool:
    """Return whether the data set has every molecule that follows its rules, so that any other breaks
    them."""
    return experiment.data.is_complete


def _warn_of_use(severe: bool, text: str) -> Box:
    return Box("Not usable yet." if severe else "Not every method is usable.", text, severe)


def _advise(headline: Headline, results: FinishedExperiment) -> str:
    """Advise how to get more valid molecules. Longer training is not advised for a network that has memorised
    its data."""
    method = headline.best.method.partition("+")[0]  # a distillation has another loss
    log = results.logs.get(method) if results.experiment.training.loss == "nelbo" else None
    loss, nll = (1.0, 1.0) if log is None else end_losses(log)
    if loss < _MEMORISED * nll:
        return (
            f"{method} has memorised its training data (training loss {loss:.2f}, validation loss "
            f"{nll:.2f}): longer training will not help. Use more molecules, and on a GPU the transformer."
        )
    return "Train longer (training.iterations), use a larger network, or draw samples with more steps."
