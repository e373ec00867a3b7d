"""Adds an experiment on a user's own file, in experiments/ next to workflow_config.yaml."""

import os
import re
import shlex
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pairflow import published
from pairflow.artifacts import as_cell, atomic, require_apart, sole_writer
from pairflow.config.file import describe, experiment_file, require_free
from pairflow.data.draft import Draft, DraftRequest, Entry
from pairflow.kinds import draft_experiment, new_settings
from pairflow.limits import LONGEST_NAME
from pairflow.steps.command import step
from pairflow.steps.options import configuration, device, device_type, model_folder, quiet

if TYPE_CHECKING:
    import pandas as pd

    from pairflow.estimate.forecast import Forecast


@step(new_settings())
@click.argument("file", type=click.Path(path_type=Path))
@configuration("The configuration, next to which experiments/NAME.yaml is written.")
@click.option("--force", is_flag=True, help="Replace an experiment of that name.")
@click.option(
    "--estimate/--no-estimate",
    default=True,
    help="Measure for half a minute how long the experiment will take on this machine.  [default: yes]",
)
@model_folder(
    "--from",
    "parent",
    help="Folder of a model of molecules, or the name of one that comes with pairflow (zinc250k_groups, "
    "zinc250k), whose weights, length, network and symbols the experiment starts from (fine-tuning).",
)
@device
@quiet
def main(
    settings: Any,
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
    (.sdf), optionally followed by .gz; or it is text: a .txt file, or a folder of such files. The command
    reads it once, and prints a summary of it, the rules applied, and the expected quality and run time.
    """
    from pairflow.estimate.forecast import forecast_draft

    name = settings.name or name_of(file)
    target = experiment_file(configuration, name)
    require_free(configuration, name, force)
    rejects = configuration.parent / f"{name}.rejected.csv"
    require_apart({"--name": rejects}, [file])
    source, device = _relative(file, configuration), device_type(device)
    start = (published.name_of(parent) or _relative(parent, configuration)) if parent else ""
    request = DraftRequest(file, source, settings, parent, start, rejects, device, quiet)
    draft = draft_experiment(request)
    root = configuration.resolve().parent / "results" / name
    experiment, expected = forecast_draft(draft, root, device, recorded=not estimate, progress=not quiet)
    _write(configuration, target, experiment, draft, force)
    _write_rejected(rejects, draft.rejected)
    click.echo("\n\n".join(_describe(draft, name, experiment, expected if estimate else None)))
    folder = configuration.resolve().parent
    where = "" if folder == Path.cwd() else f" in {shlex.quote(str(folder))}"
    click.echo(f"\nExperiment '{name}' is in {target}. Run it{where} with:\n\n  pairflow run {name}")


def _describe(draft: Draft, name: str, entry: Entry, expected: "Forecast | None") -> Iterator[str]:
    """Yield the paragraphs to print: the summary of the file, and the expected quality and time, if known."""
    from pairflow.config import Experiment, check
    from pairflow.estimate import outlook

    experiment = check(Experiment, entry, name)
    yield draft.table
    yield from draft.advice
    if draft.quality:
        yield draft.quality(experiment)
    if expected:
        yield outlook.expect(name, expected, experiment.training.iterations, draft.hours, draft.most)


def _write(configuration: Path, target: Path, experiment: Entry, draft: Draft, force: bool) -> None:
    """Write the experiment into its file."""
    text = describe(configuration, target.stem, experiment, f"By `pairflow new`: {draft.content}")
    with sole_writer(configuration), atomic(target) as [temporary]:
        require_free(configuration, target.stem, force)  # again, because reading the file took a while
        temporary.write_text(text, encoding="utf-8")


def _write_rejected(path: Path, table: "pd.DataFrame") -> None:
    """Write all rejected rows with their numbers and reasons; if there are none, remove an earlier file."""
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


def _relative(file: Path, configuration: Path) -> str:
    """The path of the file relative to the folder of the configuration; an absolute path stays absolute."""
    return str(file) if file.is_absolute() else os.path.relpath(file, configuration.parent)


if __name__ == "__main__":
    main()
