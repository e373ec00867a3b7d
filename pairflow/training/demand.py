"""Molecules on demand: draws until there are enough, tells how it goes, writes what was asked for."""

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click
import pandas as pd
from tqdm import tqdm

from pairflow.artifacts import Metadata, atomic
from pairflow.config import DemandSettings
from pairflow.errors import InputError
from pairflow.runtime import signals


def deliver(settings: DemandSettings, model: Path, out: Path, device, quiet: bool) -> None:
    """Write `settings.count` molecules of a model into `out`, and say at what rate they came.

    What was found before Ctrl-C or SIGTERM, or before it became hopeless, goes into `<stem>.part<suffix>`
    instead; on SIGUSR1 likewise what is found by then, and the search goes on.
    """
    from pairflow.data import molecule_files
    from pairflow.training.generate import Hopeless, Molecules

    write = molecule_files.writer(out, settings.parsed, settings.properties)
    _require_writable(out)
    molecules = Molecules(model, settings, device)
    made = Metadata(
        kind="molecules",
        vocabulary=molecules.facts["vocabulary"],
        parameters={"method": molecules.facts["method"], **settings.model_dump(mode="json")},
        inputs={"model": molecules.facts["weights"]},
    )
    rows: list[dict[str, Any]] = []
    part = out.with_name(f"{out.stem}.part{out.suffix}")

    def save(path: Path) -> None:
        with atomic(path) as [temporary]:
            write(temporary, pd.DataFrame(rows), made)

    def keep() -> str:
        """Save what there is so far, if anything, and say so."""
        found = f"{len(rows):,} of {settings.count:,} molecules found"
        if not rows:
            return f"{found}, nothing is written"
        save(part)
        return f"{found}, kept in {part}"

    warned: list[str] = []
    started = time.perf_counter()
    try:
        with signals.raised(lambda: warned.append(keep())):
            try:
                _collect(molecules, settings, rows, quiet)
                save(out)
            except signals.Stopped as stop:
                click.echo(f"pairflow sample: stopped: {keep()}", err=True)
                raise click.exceptions.Exit(128 + stop.number) from None
    except Hopeless as end:
        raise InputError(f"{end} ({keep()})") from None
    if warned:
        part.unlink(missing_ok=True)
    rate = settings.count / (time.perf_counter() - started)
    click.echo(
        f"{settings.count:,} molecules from {_shares(molecules.selection.counts)}, "
        f"{rate:,.4g} per second, seed {settings.seed} -> {out}",
        err=True,
    )


def _collect(molecules, settings: DemandSettings, rows: list[dict[str, Any]], quiet: bool) -> None:
    """Append a row for each molecule, under a bar with the share of samples that are kept."""
    with tqdm(total=settings.count, unit=" molecules", disable=quiet, mininterval=0.5) as bar:
        for number, smiles in enumerate(molecules, 1):
            properties = _properties(smiles) if settings.properties else {}
            rows.append({"name": f"pairflow-{number}", "smiles": smiles, **properties})
            counts = molecules.selection.counts
            bar.set_postfix_str(f"{number / counts.total():.1%} of samples kept", refresh=False)
            bar.update()


def _properties(smiles: str) -> dict[str, float]:
    from rdkit import Chem

    from pairflow.metrics.descriptors import PROPERTIES

    molecule = Chem.MolFromSmiles(smiles)
    return {name: value(molecule) for name, value in PROPERTIES.items()}


def _shares(counts: Counter[str]) -> str:
    total = counts.total()
    verdicts = ["kept", *(verdict for verdict, _ in counts.most_common() if verdict != "kept")]
    return f"{total:,} samples ({', '.join(f'{counts[name] / total:.1%} {name}' for name in verdicts)})"


def _require_writable(out: Path) -> None:
    """InputError unless a file can be made where `out` is to be; makes its folder."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out.parent).close()
    except OSError as error:
        raise InputError(f"{out}: cannot be written there: {error.strerror}") from None
