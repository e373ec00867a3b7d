"""Adds an experiment on a user's own file, in experiments/ next to workflow_config.yaml."""

import re
import shlex
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pairflow import published
from pairflow.artifacts import as_cell, atomic, require_apart, sole_writer
from pairflow.config.file import describe, experiment_file, require_free
from pairflow.data.draft import NO_START, Draft, DraftRequest, Entry, relative
from pairflow.files import bare_name, escaped
from pairflow.kinds import READINGS, draft_experiment, new_settings
from pairflow.limits import LONGEST_NAME
from pairflow.settings.fields import NewSettings
from pairflow.steps.command import step
from pairflow.steps.options import configuration, device, device_type, model_folder, quiet

if TYPE_CHECKING:
    import pandas as pd

    from pairflow.estimate.forecast import Forecast

    Forecasted = tuple[Draft, Entry, Forecast]


@step(new_settings())
@click.argument("file", type=click.Path(path_type=Path))
@configuration("The configuration, next to which experiments/NAME.yaml is written.")
@click.option("--force", is_flag=True, help="Replace an experiment of that name.")
@click.option(
    "--estimate/--no-estimate",
    default=True,
    help="Measure for up to a minute how long the experiment will take on this machine.  [default: yes]",
)
@click.option(
    "--as",
    "taken_as",
    type=click.Choice(READINGS),
    help="What FILE holds, whatever its name. `rows`: text in which each line or record is a row. `table`: "
    "a table with a column of molecules or of text.  [default: found from name and content]",
)
@model_folder(
    "--from",
    "parent",
    help="Model of molecules to start from (fine-tuning): a folder, or the name of a model that comes with "
    "pairflow (zinc250k). The experiment keeps its weights, length, network and symbols. `none` starts "
    "from scratch. The default for fewer than 20,000 drug-like molecules is a model that comes with "
    "pairflow.",
)
@device
@quiet
def main(
    settings: NewSettings,
    file: Path,
    configuration: Path,
    force: bool,
    estimate: bool,
    taken_as: str | None,
    parent: Path | None,
    device: str,
    quiet: bool,
):
    """Write an experiment on your own molecules or text to experiments/NAME.yaml, and print how to run it.

    FILE has SMILES (.smi, .txt: a field of each line), a table with a column of SMILES or of text (.csv,
    .tsv, .jsonl, .parquet, .xlsx), an SDF file (.sdf), FASTA (.fasta) or text (.txt). It may be compressed
    (.gz, .bz2, .zst, .zip). FILE may also be a folder of .txt files. The command reads FILE once, and prints
    what it took FILE for, a summary, the rules that it applied, and the expected run time.
    """
    name = settings.name or name_of(file)
    target = experiment_file(configuration, name)
    require_free(configuration, name, force)
    rejects, unused = (configuration.parent / f"{name}.{end}.csv" for end in ("rejected", "condition"))
    for path in (rejects, unused):
        require_apart({"--name": path}, [file])
    source, device = relative(file, configuration), device_type(device)
    read = file, source, settings, *_start(parent, configuration)
    draft = draft_experiment(DraftRequest(*read, rejects, unused, device, quiet, configuration, taken_as))
    folder = configuration.resolve().parent
    forecasts = [*_forecast(draft, folder / "results" / name, device, estimate, quiet)]
    _write(configuration, target, forecasts[0][1], draft, force)
    _write_table(rejects, draft.rejected)
    _write_table(unused, draft.unused)
    click.echo("\n\n".join(_describe(name, forecasts, estimate)))
    where = "" if folder == Path.cwd() else f" in {shlex.quote(str(folder))}"
    ending = escaped(f"Experiment '{name}' is in {target}. Run it{where} with:")
    click.echo(f"\n{ending}\n\n  pairflow run {name}")


def _forecast(draft: Draft, root: Path, device: str, estimate: bool, quiet: bool) -> "Iterator[Forecasted]":
    """Yield (draft, its fitted experiment, the forecast), and the same for the draft without a model to start
    from, if there is one."""
    from pairflow.estimate.forecast import forecast_draft

    for each in (draft, draft.scratch):
        if each:
            yield each, *forecast_draft(each, root, device, recorded=not estimate, progress=not quiet)


def _describe(name: str, forecasts: "list[tuple[Draft, Entry, Forecast]]", estimate: bool) -> Iterator[str]:
    """Yield the paragraphs to print: the summary of the file, advice, and for each of `forecasts` what is
    trained and, with `estimate`, how long it takes. If the first starts from a model, a second one may be
    for a training from scratch."""
    from pairflow.config import Experiment, check
    from pairflow.report import outlook

    [draft, *_], *_ = forecasts
    yield draft.table
    yield from map(escaped, draft.advice)
    for each, entry, expected in forecasts:
        experiment = check(Experiment, entry, name)
        scratch = "" if each is draft else f" from scratch (`--from {NO_START}`)"
        yield (
            f"Training{scratch}: {experiment.network.name}, {experiment.training.iterations:,} iterations on "
            f"{each.size.rows:,} rows of up to {each.size.length} tokens."
        )
        if estimate:
            details = name if each is draft else None
            yield outlook.expect(details, expected, experiment.training.iterations, each.hours, each.most)


def _write(configuration: Path, target: Path, experiment: Entry, draft: Draft, force: bool) -> None:
    """Write the experiment into its file."""
    text = describe(configuration, target.stem, experiment, f"By `pairflow new`: {draft.content}")
    with sole_writer(configuration), atomic(target) as [temporary]:
        require_free(configuration, target.stem, force)  # again, because reading the file took a while
        temporary.write_text(text, encoding="utf-8")


def _start(parent: Path | None, configuration: Path) -> tuple[Path | None, str]:
    """Return the folder of the model to start from, if any, and its name or path in the experiment: NO_START
    if the user refuses a model, empty if none was named."""
    if parent is None or str(parent) == NO_START:
        return None, NO_START if parent else ""
    return parent, published.name_of(parent) or relative(parent, configuration)


def _write_table(path: Path, table: "pd.DataFrame | None") -> None:
    """Write rows, with their numbers and reasons, to a CSV file; if there are none, remove an earlier
    file."""
    if table is None or table.empty:
        path.unlink(missing_ok=True)
    else:
        with atomic(path) as [temporary]:
            table.map(as_cell).to_csv(temporary, index=False, lineterminator="\n")


def name_of(file: Path) -> str:
    """Return a name for an experiment, of letters, digits, _ and -, derived from the name of a file."""
    stem = file.name if file.is_dir() else bare_name(file).rpartition(".")[0]
    plain = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_-]+", "_", plain)[:LONGEST_NAME].strip("_-") or "library"


if __name__ == "__main__":
    main()
