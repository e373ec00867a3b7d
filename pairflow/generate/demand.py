"""Molecules on demand: samples of a model, decoded and filtered, until there are as many as wanted."""

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch

from pairflow import published
from pairflow.artifacts import Metadata, atomic, read_metadata, require_apart
from pairflow.errors import InputError, Interrupted
from pairflow.generate.choice import choose, no_molecules
from pairflow.generate.given import describe_kept, given_molecule, given_places
from pairflow.kinds.molecules.settings import DemandSettings
from pairflow.limits import USABLE
from pairflow.runtime import signals
from pairflow.runtime.progress import bar
from pairflow.runtime.threads import available_cpus
from pairflow.training.model import Model

if TYPE_CHECKING:
    from pairflow.kinds.molecules.selection import Selection

PATIENCE = 20_000  # samples in a row that may all be dropped before the search ends


class TooFewAccepted(InputError):
    """None of the last 20,000 samples passed the filters, so that the next are not worth waiting for."""


class MoleculeStream:
    """Molecules on demand: iterating gives `settings.count` SMILES strings of the model in `folder`.

    `folder` may also be that of a finished experiment, whose metrics then choose the model, and the number of
    steps if the settings have none. The molecules are a function of the model, the settings and the kind of
    device; a smaller count gives the first of a larger one. Raises TooFewAccepted if none of the last 20,000
    samples passed the filters. `inputs` are the files that are read; `selection` counts all samples.

        for smiles in MoleculeStream("models/pairflow", DemandSettings(count=100, nfe=4, unique=True)): ...

    Needs RDKit.
    """

    def __init__(self, folder: str | Path, settings: DemandSettings, device: str | torch.device = "cpu"):
        from pairflow.data.known import KnownMolecules
        from pairflow.kinds.molecules.filters import filters_from
        from pairflow.kinds.molecules.prepare import Vocabulary

        folder = published.locate(folder)
        self.choice = choose(folder, settings.nfe)
        self.settings = settings.model_copy(update={"nfe": self.choice.nfe})
        self.inputs = self.choice.files
        if self.choice.reason:
            self.inputs.append(folder / "metrics.parquet")
        self.filters = filters_from(settings)
        self.model = Model.load(self.choice.folder, device=device)
        if self.model.shape or not self.model.vocabulary:
            raise no_molecules(folder, "images" if self.model.shape else "token rows")
        self.vocabulary = Vocabulary.load(self.model.vocabulary_file())
        self.given = given_molecule(settings, self.vocabulary, self.model.length)
        self.known: Any = KnownMolecules.load(self.model.known_file()) if settings.novel else None
        self.training_smiles = self._training_smiles() if settings.nearest else None

    def _training_smiles(self) -> Path:
        """The file of the training molecules; InputError if there is none, or only that of other data."""
        from pairflow.kinds.molecules.nearest import training_smiles

        model, folder = self.model, self.choice.folder
        path = training_smiles(folder)
        metadata = read_metadata(path)
        metadata.require_same_vocabulary(model.vocabulary, path, folder)
        metadata.require_same_data(model.data, path, folder)
        self.inputs.append(path)
        return path

    def __iter__(self) -> Iterator[str]:
        from pairflow.kinds.molecules.selection import Selection

        settings, delivered = self.settings, 0
        self.selection = Selection(settings.raw, settings.unique, self.known, self.filters)
        for text in self._strings():
            smiles = self.selection.keep(text)
            if smiles is not None:
                yield smiles
                delivered += 1
            if delivered == settings.count:
                return
            if self.selection.since.total() >= PATIENCE:
                raise TooFewAccepted(_reason(self.selection.since))

    def _strings(self) -> Iterator[str]:
        """Decoded samples without end; `early` counts those that end within the template."""
        from pairflow.kinds.molecules.prepare import EOS

        self.early = 0
        places = 0 if self.given is None else given_places(self.given)
        for ids in self.model.rows_without_end(self.settings, self.choice.nfe, self.given):
            self.early += EOS in ids[:places]
            yield self.vocabulary.decode(ids)


_ADVICE = {
    "invalid": "try a larger --nfe or a model trained longer",
    "known": "the model makes little beside what it was trained on; leave out --novel",
    "repeated": "the model makes little else with these settings; ask for fewer, or leave out --unique",
}


def _reason(since: Counter[str]) -> str:
    shares = ", ".join(f"{count / since.total():.0%} {verdict}" for verdict, count in since.most_common())
    [(most, _)] = since.most_common(1)
    advice = _ADVICE.get(most, f"widen or leave out {most.removeprefix('refused by ')}")
    return f"none of the last {since.total():,} samples was accepted ({shares}): {advice}"


def deliver(stream: MoleculeStream, out: Path, quiet: bool, threads: int | None = None) -> str:
    """Write the molecules of a stream to `out`; a line about their number, the shares kept and the time.

    If the search is interrupted or accepts too few samples, the molecules found so far are written to
    `<stem>.part<suffix>` instead, and Interrupted or InputError is raised. SIGUSR1 writes them there too, and
    the search continues.
    """
    from pairflow.kinds.molecules import files as molecule_files

    settings, model = stream.settings, stream.model
    columns = settings.properties or settings.nearest
    write = molecule_files.writer(out, not settings.raw, columns, settings.three_d)
    require_apart({"--out": out}, stream.inputs)
    require_writable(out)
    metadata = Metadata(
        kind="molecules",
        vocabulary=model.vocabulary,
        parameters={"method": model.method, **settings.model_dump(mode="json")},
        inputs={"model": str(model.weights)},
    )
    table = GrowingTable(
        out, settings.count, "molecules", lambda path, rows: write(path, pd.DataFrame(rows), metadata)
    )
    describe = _describer(stream, quiet, threads)
    started, replaced = time.perf_counter(), ", which replaces an earlier file" if out.exists() else ""
    table.fill(lambda: _collect(stream, table.rows, describe, quiet))
    seconds = time.perf_counter() - started
    noun = "strings" if settings.raw else "molecules"
    summary = (
        f"{settings.count:,} {noun}{_describe_known(stream, table.rows)}"
        f"{describe_kept(settings, [row['smiles'] for row in table.rows])} from {_shares(stream.selection)}"
        f"{_early_ends(stream)}, "
        f"{seconds:,.1f} s, seed {settings.seed} -> {out}{replaced}"
    )
    valid = stream.selection.shares()["valid"]
    if valid >= USABLE or settings.raw:
        return summary
    culprit = (
        "The model is not usable yet" if stream.given is None else "The model rarely completes this start"
    )
    return (
        f"{summary}\n{culprit}: only {valid:.1%} of its samples are valid. Valid means "
        "that RDKit can read them, not that they are stable: look at the structures before you use them."
    )


class GrowingTable:
    """The molecules or texts found so far (`noun`); `write(path, rows)` puts them into a file."""

    def __init__(self, out: Path, count: int, noun: str, write: Callable[[Path, list[dict[str, Any]]], None]):
        self.out, self.count, self.noun, self.write = out, count, noun, write
        self.part, self.part_saved = out.with_name(f"{out.stem}.part{out.suffix}"), False
        self.rows: list[dict[str, Any]] = []

    def fill(self, collect: Callable[[], None]) -> None:
        """Save the rows that `collect` appends; see `deliver` for what happens if that is cut short."""
        try:
            with signals.interruptible(self.save_part):
                try:
                    collect()
                    self.save(self.out)
                except signals.Stopped as stop:
                    raise Interrupted(f"stopped: {self.save_part()}", stop.number) from None
        except TooFewAccepted as end:
            raise InputError(f"{end} ({self.save_part()})") from None
        self.remove_part()

    def save(self, path: Path) -> None:
        with atomic(path) as [temporary]:
            self.write(temporary, self.rows)

    def save_part(self) -> str:
        """Save what is found so far, if anything is, and say so."""
        progress = f"{len(self.rows):,} of {self.count:,} {self.noun} found"
        if not self.rows:
            return f"{progress}, nothing is written"
        self.save(self.part)
        self.part_saved = True
        return f"{progress}, saved in {self.part}"

    def remove_part(self) -> None:
        """Remove the file of `save_part`, if this search has written one."""
        if self.part_saved:
            self.part.unlink(missing_ok=True)


def _describer(
    stream: MoleculeStream, quiet: bool, threads: int | None
) -> Callable[[str], Mapping[str, Any]]:
    """The function that gives the columns of a molecule that the settings ask for, beside name and SMILES."""
    from rdkit import Chem

    from pairflow.kinds.molecules.conformers import embed
    from pairflow.kinds.molecules.descriptors import describe
    from pairflow.kinds.molecules.nearest import TrainingNeighbours

    settings, parts = stream.settings, list[Callable[[str], Mapping[str, Any]]]()
    if settings.properties:
        parts.append(lambda smiles: describe(Chem.MolFromSmiles(smiles)))
    if stream.training_smiles:
        neighbours = TrainingNeighbours(stream.training_smiles, threads or available_cpus(), not quiet)
        parts.append(neighbours.describe)
    if settings.three_d:
        parts.append(lambda smiles: {"conformer": embed(smiles, settings.seed)})
    return lambda smiles: {name: value for part in parts for name, value in part(smiles).items()}


def _collect(
    stream: MoleculeStream,
    rows: list[dict[str, Any]],
    describe: Callable[[str], Mapping[str, Any]],
    quiet: bool,
) -> None:
    """Append a row per molecule, under a bar with the share of accepted samples."""
    settings = stream.settings
    with bar(total=settings.count, unit=" molecules", quiet=quiet) as molecules:
        for number, smiles in enumerate(stream, 1):
            rows.append({"name": f"pairflow-{number}", "smiles": smiles, **describe(smiles)})
            molecules.set_postfix_str(
                f"{number / stream.selection.counts.total():.1%} of samples kept", refresh=False
            )
            molecules.update()


def _describe_known(stream: MoleculeStream, rows: list[dict[str, Any]]) -> str:
    """How many of the molecules are in the model's data set, if the model has a list of those."""
    if stream.settings.raw or stream.settings.novel or stream.model.known is None:
        return ""
    from pairflow.data.known import KnownMolecules

    known = KnownMolecules.load(stream.model.known_file())
    return f" ({sum(row['smiles'] in known for row in rows):,} of them in the data set)"


def _early_ends(stream: MoleculeStream) -> str:
    """The share of samples that lack the rest of a template, as their string ends in an open place."""
    if stream.settings.template is None:
        return ""
    return f", {stream.early / stream.selection.counts.total():.1%} of them end within the template"


def _shares(selection: "Selection") -> str:
    """The number of samples, the share of valid ones, and what each filter kept of those that reached it."""
    valid, *filters = selection.shares().items()
    kept = ", ".join(f"{name} kept {share:.1%}" for name, share in filters)
    shares = f"{valid[1]:.1%} valid" + f"; of those that reached each filter, {kept}" * bool(kept)
    return f"{selection.counts.total():,} samples ({shares})"


def require_writable(out: Path) -> None:
    """InputError unless a file can be written at `out`; makes its folder."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out.parent).close()
    except OSError as error:
        raise InputError(f"{out}: cannot be written there: {error.strerror}") from None
