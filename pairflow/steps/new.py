"""Adds an experiment on a file of molecules or of text, in a file of its own beside workflow_config.yaml."""

import os
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from pairflow import published
from pairflow.artifacts import as_cell, atomic, require_apart, sole_writer
from pairflow.config import NewSettings
from pairflow.config.own import describe, place, require_free
from pairflow.errors import InputError
from pairflow.kinds.molecules.settings import LONGEST, MOLECULE_SOURCES, Molecules, Standardisation
from pairflow.limits import LONGEST_NAME
from pairflow.steps.command import step
from pairflow.steps.options import configuration, device, model_folder, quiet

if TYPE_CHECKING:
    import pandas as pd

    from pairflow.data.source import DatasetSize
    from pairflow.estimate.forecast import Forecast
    from pairflow.kinds.molecules.survey import Survey

MINIMUM = 100  # distinct molecules


@step(NewSettings)
@click.argument("file", type=click.Path(path_type=Path))
@configuration("The configuration beside which the experiment is written, as experiments/NAME.yaml.")
@click.option("--force", is_flag=True, help="Replace an experiment of that name.")
@click.option(
    "--estimate/--no-estimate",
    default=True,
    help="Measure for half a minute how long the experiment will take on this machine.  [default: yes]",
)
@model_folder(
    "--from",
    "parent",
    help="Folder of a model of molecules, or the name of one that comes with pairflow (zinc250k), whose "
    "weights, length, network and symbols the experiment starts from (fine-tuning).",
)
@device
@quiet
def main(
    settings: NewSettings,
    file: Path,
    configuration: Path,
    force: bool,
    estimate: bool,
    parent: Path | None,
    device: str,
    quiet: bool,
):
    """Write an experiment on your own molecules or text to experiments/NAME.yaml, and print how to run it.

    FILE holds SMILES (.smi, .txt: the first field of each line), a table (.csv, .tsv, .xlsx) or an SDF file
    (.sdf), optionally followed by .gz; or it is text: a .txt file, or a folder of such files. It is read
    once. The command prints a table of its content, the rules that treat it, the quality and the time to
    expect.
    """
    from pairflow.kinds.text.survey import is_text

    name = settings.name or name_of(file)
    target = place(configuration, name)
    require_free(configuration, name, force)
    rejects = configuration.parent / f"{name}.rejected.csv"
    require_apart({"--name": rejects}, [file])
    request = _Request(settings, file, configuration, target, rejects, force, estimate, parent, device, quiet)
    (_add_text if is_text(file) else _add_molecules)(request)
    folder = configuration.resolve().parent
    where = "" if folder == Path.cwd() else f" in {shlex.quote(str(folder))}"
    click.echo(f"\nExperiment '{name}' is in {target}. Run it{where} with:\n")
    click.echo(f"  pairflow run {name}")


class _Request(NamedTuple):
    """What is asked for: the settings, the user's file, where everything is written, and how."""

    settings: NewSettings
    file: Path
    configuration: Path
    target: Path
    rejects: Path
    force: bool
    estimate: bool
    parent: Path | None
    device: str
    quiet: bool

    @property
    def root(self) -> Path:
        """The folder of the experiment's results."""
        return self.configuration.resolve().parent / "results" / self.target.stem


def _add_molecules(request: _Request) -> None:
    """Write an experiment on molecules, and print what the file holds and what to expect."""
    settings, rejects, quiet = request.settings, request.rejects, request.quiet
    parent = _parent(request)
    if parent:
        kind = parent["representation"]
        if "representation" in settings.model_fields_set and settings.representation != kind:
            raise InputError(
                f"--representation: {settings.representation}, but the model to start from has {kind}"
            )
        settings = settings.model_copy(update={"representation": kind})
    title, column, counts = _read(request.file, settings, quiet)
    source = _relative(request.file, request.configuration)
    data = {"source": source, **({"column": column} if column else {})}
    device = _device(request.device)
    experiment, sizes = plan(counts, settings, data, device, parent)
    size = _size(experiment, counts, sizes)
    experiment, expected = _fit(request, experiment, size, device)
    _add(request, experiment, f"{counts.rows:,} rows, {len(counts.lengths):,} distinct molecules.")
    _write_rejected(rejects, counts.rejected.rename(columns={"number": counts.unit}))
    click.echo(_table(title, counts, experiment, sizes, rejects))
    outlook = _outlook(request, experiment, size, expected, device)
    for paragraph in chain(_proposals(counts, settings), outlook):
        click.echo(f"\n{paragraph}")


def _parent(request: _Request) -> dict[str, Any] | None:
    """What the model to start from asks of its data, and its folder as the experiment names it."""
    if request.parent is None:
        return None
    from pairflow.training.inherit import molecules_of

    start = published.name_of(request.parent) or _relative(request.parent, request.configuration)
    return {"from": start, **molecules_of(request.parent)}


def _size(experiment: dict[str, Any], counts: "Survey", sizes: Counter[str]) -> "DatasetSize":
    from pairflow.data.source import DatasetSize

    length = experiment["data"]["length"]
    return DatasetSize(sizes["train"], sizes["validation"], counts.vocabulary_size(length), length)


def _fit(
    request: _Request, entry: dict[str, Any], size: "DatasetSize", device: str
) -> tuple[dict[str, Any], "Forecast | None"]:
    """The experiment with as many iterations as its time allows, and its forecast; else as it was suggested.

    Without measuring, the rates are those that were measured on another machine.
    """
    from pairflow.config import Experiment, check, suggest
    from pairflow.estimate.forecast import fit_iterations
    from pairflow.runtime.threads import available_cpus

    settings, root, quiet = request.settings, request.root, request.quiet
    hours = settings.hours or suggest.hours(size.length, device)
    if hours is None:
        return entry, None
    sizes = (size.length, size.vocabulary_size, size.rows)

    def scaled(iterations: int) -> dict[str, Any]:
        network = entry["network"] if "from" in entry else None
        return entry | suggest.scale(
            *sizes, device, settings.compare, iterations, network, fine_tuned="from" in entry
        )

    def make(iterations: int) -> Experiment:
        return check(Experiment, scaled(iterations), root.name)

    how = {"recorded": not request.estimate, "progress": not quiet}
    cpus = available_cpus()
    iterations, expected = fit_iterations(root, make, size, cpus, device, 3600 * hours, **how)
    return scaled(iterations), expected


def _add_text(request: _Request) -> None:
    """Write an experiment on text, and print what the text holds and the time to expect."""
    from pairflow.kinds.text.survey import survey_text

    settings, file = request.settings, request.file
    if request.parent:
        raise InputError(f"{file}: text; --from is for molecules. Add `from` to the experiment yourself")
    others = settings.model_dump(exclude_defaults=True, exclude={"name", "validation_fraction", "compare"})
    if others:
        raise InputError(f"{file}: text; --{next(iter(others)).replace('_', '-')} is for molecules")
    source, device = _relative(file, request.configuration), _device(request.device)
    source = source if set("/.") & set(source) else f"./{source}"
    text = survey_text(file, source, settings.validation_fraction, device, settings.compare)
    _add(request, text.experiment, f"{len(text.prepared.train):,} training rows of text.")
    _write_rejected(request.rejects, text.prepared.rejected)
    lines = [f"  {label:<34}{number:>12,}  {remark}".rstrip() for label, number, remark in text.table]
    click.echo("\n".join([f"{file} (text)", *lines]))
    if request.estimate:
        click.echo(f"\n{_expect_time(request.root, text.experiment, text.size, device, request.quiet)}")


def _read(file: Path, settings: NewSettings, quiet: bool) -> tuple[str, str | None, "Survey"]:
    """A title for the table, the column of SMILES in a CSV file, and the counts over the file."""
    from pairflow.kinds.molecules import library
    from pairflow.kinds.molecules.survey import find_column, survey

    kind, unit = library.format_of(file), library.unit_of(file)
    column, remark = None, ""
    if kind in library.TABLES:
        column = settings.column or find_column(file)
        names = library.name_column(library.columns(file, 1), column)
        remark = f", column {column!r}" + f", names in {names!r}" * (names is not None)
    rules = Standardisation(**{key: getattr(settings, key) for key in Standardisation.model_fields})
    rows = library.numbered_rows(file, column or "smiles", progress=not quiet)
    counts = survey(rows, rules, settings.split == "scaffold", unit, settings.representation)
    return f"{file} ({kind}{remark})", column, counts


def _add(request: _Request, experiment: dict[str, Any], content: str) -> None:
    """Write the experiment into its file; `content` is what the user's file holds."""
    configuration, name = request.configuration, request.target.stem
    text = describe(configuration, name, experiment, f"By `pairflow new`: {content}")
    with sole_writer(configuration), atomic(request.target) as [temporary]:
        require_free(configuration, name, request.force)  # again: reading the file took a while
        temporary.write_text(text, encoding="utf-8")


def _write_rejected(path: Path, table: "pd.DataFrame") -> None:
    """Write all rejected rows with their places and reasons; without any, remove an earlier file."""
    if table.empty:
        path.unlink(missing_ok=True)
    else:
        with atomic(path) as [temporary]:
            table.map(as_cell).to_csv(temporary, index=False, lineterminator="\n")


def name_of(file: Path) -> str:
    """A name for an experiment, of letters, digits, _ and -, derived from the name of a file."""
    stem = file.name if file.is_dir() else file.name.removesuffix(".gz").rpartition(".")[0]
    plain = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_-]+", "_", plain)[:LONGEST_NAME].strip("_-") or "library"


def plan(
    counts: "Survey",
    settings: NewSettings,
    data: dict[str, Any],
    device: str,
    parent: dict[str, Any] | None = None,
) -> tuple[dict[str, Any], Counter[str]]:
    """The experiment, and the numbers of molecules for training, for validation and only for reference.

    The `parent` is a model that it starts from, as `_parent` describes it.

    Raises InputError if there are too few molecules, if they are too long, or if they cannot be split.
    """
    from pairflow.config import suggest
    from pairflow.data.split import split_rows

    length = parent["length"] if parent else counts.length(settings.max_too_long_share)
    fitting = counts.lengths <= length
    total = int(np.count_nonzero(fitting))
    longer = 1 - total / len(counts.lengths)
    if parent and longer > settings.max_too_long_share:
        raise InputError(
            f"{longer:.1%} of the molecules are longer than the {length} tokens of the model to start from; "
            "--max-too-long-share says how many may be left out"
        )
    if total < MINIMUM:
        raise InputError(
            f"{total} distinct molecules are too few to train on and to hold some out; expected at least "
            f"{MINIMUM}"
        )
    if length > LONGEST:
        raise InputError(
            f"molecules of {length} tokens are too long; expected at most {LONGEST} (--max-too-long-share)"
        )
    seed = Molecules.model_fields["split_seed"].default
    groups = None if counts.scaffolds is None else counts.scaffolds[fitting]

    def split(rows: int | None) -> Counter[str]:
        return Counter(split_rows(range(total), settings.validation_fraction, None, seed, rows, groups))

    training_rows = suggest.training_rows(split(None)["train"], device)
    sizes = split(training_rows)
    rules = ("representation", *Standardisation.model_fields, "split")
    choices = {key: getattr(settings, key) for key in rules}
    data = {
        **data,
        "length": length,
        "drop_duplicates": True,
        **choices,
        "validation_fraction": settings.validation_fraction,
        "max_too_long_share": settings.max_too_long_share,
        **({"training_rows": training_rows} if training_rows else {}),
    }
    sizing = (length, counts.vocabulary_size(length), sizes["train"], device, settings.compare)
    experiment = {
        "description": f"{total:,} molecules of {Path(data['source']).name}, at a scale for this machine",
        "scale": "reduced",
        "seeds": [0],
        "data": data,
        **({"from": parent["from"]} if parent else {}),
        "chemistry": {"useful": True},
        **suggest.scale(*sizing, network=parent and parent["network"], fine_tuned=parent is not None),
    }
    return experiment, sizes


def _relative(file: Path, configuration: Path) -> str:
    """The path of the file relative to the folder of the configuration, unless it is absolute."""
    path = str(file) if file.is_absolute() else os.path.relpath(file, configuration.parent)
    if path in MOLECULE_SOURCES:
        raise InputError(f"{file}: has the name of a data set of the workflow; rename the file")
    return path


def _device(name: str) -> str:
    """`cpu` or `cuda`; torch, which takes seconds to import, is imported only if necessary."""
    if name == "cpu":
        return name
    from pairflow.runtime.device import choose

    return choose(name, None).type


def _table(
    title: str, counts: "Survey", experiment: dict[str, Any], sizes: Counter[str], rejects: Path
) -> str:
    """The content of the file, in lines of a label, a number and a remark."""
    from pairflow.kinds.molecules.survey import FEATURES, first_rejected

    data = experiment["data"]
    length, distinct = data["length"], len(counts.lengths)
    rejected = [
        (f"  {reason}", number, f"the first: {counts.unit} {place}, {text[:40]!r}")
        for reason, number, place, text in islice(first_rejected(counts.rejected), 8)
    ]
    features = [(name, counts.features[name], f"{key}: {data[key]}") for name, key in FEATURES.items()]
    too_long = np.count_nonzero(counts.lengths > length)
    quantiles = np.quantile(counts.lengths, [0.05, 0.5, 0.95, 1], method="lower")
    reference = ("  only for reference", sizes["reference"], "known in the measure of novelty")
    lines = [
        ("rows", counts.rows, ""),
        ("rejected", len(counts.rejected), f"all are listed in {rejects}" * bool(len(counts.rejected))),
        *rejected,
        ("duplicates", counts.duplicates, "drop_duplicates: true"),
        *features,
        ("distinct molecules", distinct, ""),
        ("  longer than N", too_long, f"left out; up to {data['max_too_long_share']:.2%} may be"),
        ("  for training", sizes["train"], f"split: {data['split']}"),
        ("  for validation", sizes["validation"], ""),
        *([reference] if sizes["reference"] else []),
        ("N, tokens per row", length, "of rows 5 %: {}, 50 %: {}, 95 %: {}, longest: {}".format(*quantiles)),
        ("K, symbols", counts.vocabulary_size(length), ""),
    ]
    return "\n".join(
        [title, *(f"  {label:<34}{number:>12,}  {remark}".rstrip() for label, number, remark in lines)]
    )


def _proposals(counts: "Survey", settings: NewSettings) -> Iterator[str]:
    """Rules that the file suggests, beside those in force."""
    from pairflow.kinds.molecules.survey import TINY

    if counts.ions and settings.charges == "keep":
        yield (
            "Consider --charges neutralise: the removal of counter-ions leaves a charge on molecules "
            f"({counts.ions:,} of them)."
        )
    tiny = [*counts.features.values()][-1]
    if tiny and settings.min_heavy_atoms == 1:
        yield f"Consider --min-heavy-atoms {TINY}: solvents and ions are smaller ({tiny:,} here)."


def _outlook(
    request: _Request,
    entry: dict[str, Any],
    size: "DatasetSize",
    expected: "Forecast | None",
    device: str,
) -> Iterator[str]:
    """The quality to expect, and the time on this machine unless that is not wanted."""
    from pairflow.config import Experiment, check, suggest
    from pairflow.estimate import quality

    yield quality.describe(check(Experiment, entry, request.root.name), size)
    if request.estimate:
        time = _expect_time(request.root, entry, size, device, request.quiet, expected)
        if expected:
            hours = request.settings.hours or suggest.hours(size.length, device) or 0.0
            iterations = f"{entry['training']['iterations']:,}"
            if expected.wall_seconds <= 3600 * hours:
                time += f" Training is fitted to {hours:g} hours: {iterations} iterations."
            else:
                time += f" {hours:g} hours are too short: training has the fewest iterations, {iterations}."
        yield time


def _expect_time(
    root: Path,
    entry: dict[str, Any],
    size: "DatasetSize",
    device: str,
    quiet: bool,
    expected: "Forecast | None" = None,
) -> str:
    """A sentence on the time that the experiment takes on a device of this machine."""
    from pairflow.config import Experiment, check
    from pairflow.estimate import outlook as text
    from pairflow.estimate.forecast import forecast
    from pairflow.runtime.threads import available_cpus

    experiment = check(Experiment, entry, root.name)
    expected = expected or forecast(root, experiment, size, available_cpus(), device, progress=not quiet)
    return (
        f"Time: {text.wall_time(expected)}, give or take a factor of two. "
        f"`pairflow estimate {root.name}` has the details."
    )


if __name__ == "__main__":
    main()
