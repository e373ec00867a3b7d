"""A file of molecules to an experiment in workflow_config.yaml."""

import os
import re
import shlex
import unicodedata
from collections import Counter
from pathlib import Path

import click
import numpy as np

from pairflow.artifacts import atomic
from pairflow.config import LONGEST, MOLECULE_SOURCES, Molecules, NewSettings, Standardisation
from pairflow.config.append import append, require_free
from pairflow.config.file import read_text
from pairflow.errors import InputError
from pairflow.steps.command import configuration, device, quiet, step

MINIMUM = 100  # distinct molecules


@step(NewSettings)
@click.argument("file", type=click.Path(path_type=Path))
@configuration("Where the experiment is written.")
@click.option("--force", is_flag=True, help="Replace an experiment of that name.")
@device
@quiet
def main(settings: NewSettings, file: Path, configuration: Path, force: bool, device: str, quiet: bool):
    """Make an experiment of your own molecules, and say how to run it.

    FILE holds SMILES (.smi, .txt: the first field of each line), a table (.csv, .tsv) or an SDF file (.sdf),
    each also with .gz. It is read and canonicalised once; what was found is printed.
    """
    from pairflow.data import library
    from pairflow.data.survey import find_column, survey

    text = read_text(configuration)
    name = settings.name or name_of(file)
    if not force:
        require_free(text, name, configuration)
    kind = library.format_of(file)
    column = settings.column or "smiles"
    if kind == "CSV" and settings.column is None:
        column = find_column(file)
    rules = Standardisation(**{key: getattr(settings, key) for key in Standardisation.model_fields})
    rows = library.rows(file, column, progress=not quiet)
    found = survey(rows, rules, scaffolds=settings.split == "scaffold")
    source = _from(configuration, file)
    data = {"source": source, **({"column": column} if kind == "CSV" else {})}
    experiment, sizes = plan(found, settings, data, _device(device))
    comment = f"By `pairflow new`: {found.rows:,} rows, {len(found.lengths):,} distinct molecules."
    extended = append(text, name, experiment, comment, configuration)
    with atomic(configuration.resolve()) as [temporary]:
        temporary.write_text(extended, encoding="utf-8", newline="")
    click.echo(
        _table(f"{file} ({kind}{f', column {column!r}' if kind == 'CSV' else ''})", found, experiment, sizes)
    )
    folder = configuration.resolve().parent
    where = "" if folder == Path.cwd() else f" in {shlex.quote(str(folder))}"
    click.echo(f"\nExperiment '{name}' is in {configuration}. This runs it{where}:\n")
    click.echo(f"  snakemake --cores {len(os.sched_getaffinity(0))} -- results/{name}/report.html")


def name_of(file: Path) -> str:
    """A name for an experiment, of letters, digits, _ and -, from that of a file."""
    stem = file.name.removesuffix(".gz").rpartition(".")[0]
    plain = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_-") or "library"


def plan(found, settings: NewSettings, data: dict, device: str) -> tuple[dict, Counter]:
    """The experiment, and how many molecules are for training, for validation and a mere reference.

    Raises InputError where the molecules are too few or too long, or cannot be split as asked for.
    """
    from pairflow.config import suggest
    from pairflow.data.split import split_rows

    length = found.length(settings.max_too_long_share)
    fitting = found.lengths <= length
    total = np.count_nonzero(fitting)
    if total < MINIMUM:
        raise InputError(
            f"{total} distinct molecules are too few to train on and hold some out: {MINIMUM} are needed"
        )
    if length > LONGEST:
        raise InputError(
            f"molecules of {length} tokens are too long: {LONGEST} is the limit (--max-too-long-share)"
        )
    seed = Molecules.model_fields["split_seed"].default
    groups = None if found.scaffolds is None else found.scaffolds[fitting]

    def split(rows):
        return Counter(split_rows(range(total), settings.validation_fraction, None, seed, rows, groups))

    training_rows = suggest.training_rows(split(None)["train"], device)
    sizes = split(training_rows)
    choices = {key: getattr(settings, key) for key in (*Standardisation.model_fields, "split")}
    data = {
        **data,
        "length": length,
        "drop_duplicates": True,
        **choices,
        "validation_fraction": settings.validation_fraction,
        "max_too_long_share": settings.max_too_long_share,
        **({"training_rows": training_rows} if training_rows else {}),
    }
    experiment = {
        "description": f"{total:,} molecules of {Path(data['source']).name}, at a scale for this machine",
        "scale": "reduced",
        "seeds": [0],
        "data": data,
        **suggest.scale(length, found.vocabulary_size(length), sizes["train"], device),
    }
    return experiment, sizes


def _from(configuration, file):
    """The file's path as the workflow finds it: from the configuration's folder, unless it is absolute."""
    path = str(file) if file.is_absolute() else os.path.relpath(file, configuration.parent)
    if path in MOLECULE_SOURCES:
        raise InputError(f"{file}: has the name of a data set that the workflow knows; rename it")
    return path


def _device(name):
    """`cpu` or `cuda`; torch, which takes seconds to import, is asked only where it must be."""
    if name == "cpu":
        return name
    from pairflow.runtime.device import choose

    return choose(name, None).type


def _table(title, found, experiment, sizes):
    """What was found, in lines of a label, a number and a remark."""
    data = experiment["data"]
    length, distinct = data["length"], len(found.lengths)
    rejected = [
        (f"  {reason}", number, f"the first: row {row}, {text[:40]!r}")
        for reason, (number, row, text) in list(found.rejected.items())[:8]
    ]
    rules = [f"{key}: {data[key]}" for key in ("fragments", "charges", "isotopes", "stereo", "stereo")]
    too_long = np.count_nonzero(found.lengths > length)
    quantiles = np.quantile(found.lengths, [0.05, 0.5, 0.95, 1], method="lower")
    lines = [
        ("rows", found.rows, "counted from 0"),
        ("rejected", sum(number for number, _, _ in found.rejected.values()), ""),
        *rejected,
        ("duplicates", found.duplicates, "drop_duplicates: true"),
        *((name, number, rule) for (name, number), rule in zip(found.features.items(), rules, strict=True)),
        ("distinct molecules", distinct, ""),
        ("  longer than N", too_long, f"left out; up to {data['max_too_long_share']:.2%} may be"),
        ("  for training", sizes["train"], f"split: {data['split']}"),
        ("  for validation", sizes["validation"], ""),
        *(
            [("  a reference only", sizes["reference"], "known when novelty is counted")]
            if sizes["reference"]
            else []
        ),
        ("N, tokens per row", length, "of rows 5 %: {}, 50 %: {}, 95 %: {}, longest: {}".format(*quantiles)),
        ("K, symbols", found.vocabulary_size(length), ""),
    ]
    return "\n".join(
        [title, *(f"  {label:<28}{number:>12,}  {remark}".rstrip() for label, number, remark in lines)]
    )


if __name__ == "__main__":
    main()
