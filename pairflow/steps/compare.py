"""Finished experiments, or the methods of one, to a page and a table that set them against one another."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pairflow.artifacts import Metadata, Provenance, atomic, digest, write_table
from pairflow.config import nearest
from pairflow.errors import InputError
from pairflow.plan import paths
from pairflow.report.results import results_of
from pairflow.steps.command import out, step

if TYPE_CHECKING:
    from pairflow.report.compare import Run

_METRICS = "metrics.parquet"


@step()
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    metavar="METHOD",
    help="Of a single folder: the method that the others are set against.  [default: udlm, else the first]",
)
@out("--out", help="The page, .html; its numbers go beside it, .parquet.")
def main(folders: tuple[Path, ...], baseline: str | None, out: Path):
    """Compare finished experiments, or the methods of one.

    Each FOLDER is a results/<experiment> whose report has been made. Every method is set against the same one
    in the first folder; of a single folder, the methods against one of them:

    \b
      pairflow compare results/demo results/demo_wide --out comparison.html
      pairflow compare results/qm9 --baseline udlm+dcd --out methods.html

    Means, intervals and tests are over training seeds (`seeds: [0, 1, 2]` in the configuration), or where
    there is one seed over its sampling trials, which the page says. Other data, numbers of samples,
    references or extractors are shown apart.
    """
    from pairflow.report.compare import frame, render, sections

    provenance = Provenance()
    numbers = _beside(out, folders)
    runs = [_run(folder, name) for folder, name in _named(folders).items()]
    _require_method(baseline, runs)
    found = sections(runs, baseline)
    if not any(section.grids for section in found):
        raise InputError(f"{folders[0] / _METRICS}: has no value of any evaluation")
    inputs = {
        f"{run.name}/{_METRICS}": digest(folder / _METRICS) for run, folder in zip(runs, folders, strict=True)
    }
    made = Metadata(
        kind="comparison",
        parameters={"experiments": [run.name for run in runs], "baseline": found[0].baseline},
        inputs=inputs,
    )
    page = render(found, numbers.name, _same(runs, [*inputs.values()]))
    with atomic(out, numbers) as [new_page, new_numbers]:
        new_page.write_text(page, encoding="utf-8")
        write_table(new_numbers, frame(found), made)
    provenance.write(out, numbers)


def _beside(page: Path, folders: tuple[Path, ...]) -> Path:
    """Where the numbers go; InputError where a file of an experiment is already."""
    if page.suffix != ".html":
        raise InputError(f"--out {page}: expected a name that ends in .html")
    numbers = page.with_suffix(".parquet")
    for folder in folders:
        for own in ("report.html", _METRICS, "timings.parquet"):
            if (folder / own).resolve() in (page.resolve(), numbers.resolve()):
                raise InputError(f"--out {page}: would take the place of {folder / own}; choose another name")
    return numbers


def _named(folders: tuple[Path, ...]) -> dict[Path, str]:
    """Folder -> its name, or its path where another one has the same name."""
    places = [folder.resolve() for folder in folders]
    for folder, count in Counter(places).items():
        if count > 1:
            raise InputError(f"{folders[places.index(folder)]}: named twice")
    names = Counter(place.name for place in places)
    return {
        folder: place.name if names[place.name] == 1 else folder.as_posix()
        for folder, place in zip(folders, places, strict=True)
    }


def _run(folder: Path, name: str) -> "Run":
    """A finished experiment; InputError unless its folder has what the report wrote."""
    from pairflow.report.compare import Run

    if not folder.is_dir():
        found = "is a file, expected the folder of an experiment" if folder.exists() else "no such folder"
        raise InputError(f"{folder}: {found}")
    path = folder / _METRICS
    if not path.is_file():
        raise InputError(
            f"{folder}: not a finished experiment, {_METRICS} is not there: it comes with report.html"
        )
    found = results_of(folder)
    tokens = paths.data(folder, "train.parquet")
    run = Run(
        name=name,
        settings=found.experiment.model_dump(mode="json"),
        metrics=found.metrics,
        timings=found.timings,
        provenance=found.provenance,
        rows=digest(tokens) if tokens.is_file() else None,
    )
    if run.repeated:
        raise InputError(f"{path}: has two values of {run.repeated}")
    return run


def _require_method(method: str | None, runs: list["Run"]) -> None:
    """InputError unless a baseline that was asked for can be one."""
    if method is None:
        return
    if len(runs) > 1:
        raise InputError(
            "--baseline: names a method of a single folder; of several, the first is the baseline"
        )
    known = runs[0].settings["methods"]
    if method not in known:
        raise InputError(
            f"--baseline {method}: not a method of {runs[0].name}{nearest(method, known)}: {', '.join(known)}"
        )


def _same(runs: list["Run"], digests: list[str]) -> list[tuple[str, str]]:
    """Pairs of runs with the same bytes of metric rows."""
    return [
        (runs[digests.index(each)].name, run.name)
        for i, (run, each) in enumerate(zip(runs, digests, strict=True))
        if digests.index(each) < i
    ]


if __name__ == "__main__":
    main()
