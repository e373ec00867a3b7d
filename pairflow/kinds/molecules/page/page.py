"""What pages show of molecules."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from pairflow.artifacts import Metadata, read_table, token_array
from pairflow.config import Experiment
from pairflow.kinds import kind_of
from pairflow.kinds.molecules.page.boxes import write_boxes
from pairflow.kinds.molecules.page.details import MoleculeDetails, describe_molecules
from pairflow.kinds.molecules.page.headline import describe, measure
from pairflow.limits import HOPELESS, USABLE
from pairflow.metrics.ranking import leading_evaluation
from pairflow.plan import paths
from pairflow.report.contents import Contents, PagePart
from pairflow.report.flaws import Evidence, Flaw, Run, find_copies
from pairflow.report.grid import Grid
from pairflow.report.headline import Box, Headline, Measure, MethodLine, Quality
from pairflow.report.kind_page import (
    Flawed,
    KindPage,
    Samples,
    choose_examples,
    count_rows,
    count_symbols,
    find_means,
)
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import format_percent

_EXAMPLES = 12  # training molecules
_SHOWN = 12  # molecules of a gallery


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
        properties = _read_properties(root, experiment)
        return MoleculePart(symbols=symbols, samples=decoded, examples=examples, properties=properties)

    def read_data(self, root: Path, metadata: Metadata) -> dict[str, Any]:
        return {
            "rejected_rows": len(read_table(paths.data(root, "rejected.parquet"), "rejected rows")[0]),
            "reference_rows": len(read_table(paths.data(root, "smiles.parquet"), "smiles")[0]),
        }

    def measure(self, contents: Contents | FinishedExperiment, leading: Grid) -> dict[str, Measure]:
        return measure(contents, leading, is_complete(contents.experiment))

    def describe(
        self, leading: Grid, best: MethodLine, measures: Mapping[str, Measure], contents: Contents
    ) -> str:
        return describe(leading, best, measures, contents, is_complete(contents.experiment))

    def rate(self, leading: Grid, finished: FinishedExperiment, flaws: Sequence[Flaw]) -> Quality:
        measures = self.measure(finished, leading)
        share = measures["valid" if leading.metric == "valid" else "useful"].values[leading.best()]
        low = [flaw for flaw in flaws if flaw.kind == ("invalid" if leading.metric == "valid" else "useless")]
        only = "only " * bool(low)
        text = f"{only}{format_percent(share)} of its samples are {leading.about.label} molecules"
        return Quality(text, share, low)

    def sample_command(self, root: Path, experiment: Experiment) -> str:
        """The molecules are new ones, unless what is new would break the rules of the data."""
        model, out = root.as_posix(), f"{root.name}_samples.smi"
        wanted = ["--unique"] if is_complete(experiment) else ["--unique", "--novel"]
        temperature = experiment.evaluations[leading_evaluation(experiment.evaluations)].temperature
        if temperature != 1:
            wanted += ["--temperature", f"{temperature:g}"]
        return shlex.join(["pairflow", "sample", "--model", model, "--count", "1000", *wanted, "--out", out])

    def find_flaws(
        self, evidence: Evidence, measured: Sequence[Grid], evaluation: str
    ) -> Iterator[tuple[Run, Flaw]]:
        unique, novel, valid, useful = (
            find_means(measured, name) for name in ("unique_strict", "novel_strict", "valid", "useful_strict")
        )
        if not is_complete(evidence.experiment):
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
        self, flawed: Mapping[str, Flawed], headline: Headline, contents: Contents
    ) -> Iterator[Box]:
        return write_boxes(flawed, headline, contents)

    def list_facts(self, data: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [
            *count_rows(data),
            ("Rejected rows", f"{data['rejected_rows']:,}"),
            ("Reference for novelty", f"{data['reference_rows']:,} molecules"),
            ("Length N", f"{data['length']:,} tokens"),
            count_symbols(data),
        ]

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


def _read_properties(root: Path, experiment: Experiment) -> dict[str, dict[int, dict[str, pd.DataFrame]]]:
    """The histograms at the NFE shown, added up over the seeds."""
    properties: dict[str, dict[int, dict[str, pd.DataFrame]]] = {}
    for run in paths.runs(experiment):
        if run.nfe in paths.shown_nfe(experiment, run.evaluation):
            table, _ = read_table(paths.measured(root, run, "properties"), "property histograms")
            by_method = properties.setdefault(run.evaluation, {}).setdefault(run.nfe, {})
            by_method[run.method] = _add_counts(by_method.get(run.method), table.to_pandas())
    return properties


def _add_counts(before: pd.DataFrame | None, counts: pd.DataFrame) -> pd.DataFrame:
    """Histograms of another seed's samples added to those before; the training molecules are the same."""
    return counts if before is None else before.assign(samples=before["samples"] + counts["samples"])


PAGE = MoleculesPage()
