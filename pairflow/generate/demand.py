"""Samples on demand: decoded and filtered, until there are as many as requested."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import starmap
from pathlib import Path

import pandas as pd
import torch

from pairflow import published
from pairflow.artifacts import as_cell, atomic, require_apart, require_writable
from pairflow.config import DemandSettings
from pairflow.data.delivery import Rows
from pairflow.errors import InputError, Interrupted
from pairflow.generate.choice import MEASURED_WITH, choose, kind_in, with_grammar
from pairflow.generate.variants import vary_without_end
from pairflow.kinds import on_demand_kinds
from pairflow.kinds.kind import OnDemand
from pairflow.runtime import signals
from pairflow.runtime.progress import bar

PATIENCE = 20_000  # consecutive rejected samples after which the search ends
# After this time the search ends if all of at least this many samples were rejected.
SECONDS, FEWEST = 45, 500


class TooFewAccepted(InputError):
    """The search ended: the last 20,000 samples, or 500 or more in the first 45 s, were all rejected."""


class SampleStream:
    """Samples on demand: iterating gives `settings.count` SMILES, or texts, of the model in `folder`.

    `folder` may also be a finished experiment: its metrics then choose the model, and the number of steps if
    the settings have none. The samples are a function of the model, the settings and the kind of device; a
    smaller count gives the first samples of a larger one. Raises TooFewAccepted if the last 20,000 samples
    were all rejected, or at least 500 in the first 45 seconds. `inputs` are the files that no output may
    replace, and `delivery` decodes, filters and counts all samples.

        for smiles in SampleStream("models/pairflow", DemandSettings(count=100, nfe=4, unique=True)): ...

    Molecules need RDKit.
    """

    def __init__(self, folder: str | Path, settings: DemandSettings, device: str | torch.device = "cpu"):
        folder = published.locate(folder)
        if delivery := (kind := kind_in(folder)).delivery:
            _require_deliverable(delivery, kind.rows, folder, settings)
        self.choice = choose(folder, settings.nfe)
        measured = self.choice.measured.model_dump(include={*MEASURED_WITH}) if self.choice.measured else {}
        own = {name: value for name, value in measured.items() if name not in settings.model_fields_set}
        self.settings = settings.model_copy(update={**own, "nfe": self.choice.nfe})
        kind, model = self.choice.load(device)
        self.model = with_grammar(model) if self.settings.grammar else model
        assert kind.delivery  # `load` refuses other kinds
        self.delivery = kind.delivery.deliver(self.model, self.settings)

    @property
    def inputs(self) -> list[Path]:
        chosen_by = [self.choice.source] if self.choice.source else []
        return [*self.choice.files, *chosen_by, *self.delivery.inputs]

    def __iter__(self) -> Iterator[str]:
        self.delivery.begin()
        delivered, dropped, started = 0, 0, time.monotonic()
        for text in self._strings():
            kept = self.delivery.keep(text)
            if kept is None:
                dropped += 1
            else:
                yield kept
                delivered, dropped = delivered + 1, 0
            if delivered == self.settings.count:
                return
            if dropped >= PATIENCE:
                raise TooFewAccepted(f"none of the last {dropped:,} samples was {self.delivery.explain()}")
            seconds = time.monotonic() - started
            if not delivered and dropped >= FEWEST and seconds > SECONDS:
                which = f"first {dropped:,} samples, in {seconds:.0f} s,"
                raise TooFewAccepted(f"none of the {which} was {self.delivery.explain()}")

    def _strings(self) -> Iterator[str]:
        """Return an endless stream of decoded samples; variants of seeds, if the settings ask for them."""
        model, delivery, settings, nfe = self.model, self.delivery, self.settings, self.choice.nfe
        if delivery.seeds is None:
            return map(delivery.decode, model.rows_without_end(settings, nfe, delivery.given))
        varied = vary_without_end(model, settings, nfe, delivery.seeds, delivery.noises, delivery.given)
        return map(delivery.decode, starmap(delivery.note_origin, varied))


def _require_deliverable(delivery: OnDemand, rows: str, folder: Path, settings: DemandSettings) -> None:
    """Raise InputError if `settings` has a setting that the kind of data does not support on demand.

    `delivery` belongs to this kind, and `rows` says what the model in `folder` makes, such as "molecules".
    """
    fields = type(settings).model_fields.items()
    given = (name for name, field in fields if getattr(settings, name) != field.default)
    if name := next((name for name in given if name not in delivery.supports), ""):
        deliveries = {kind.rows: kind.delivery for kind in on_demand_kinds()}
        users = sorted(makes for makes, each in deliveries.items() if each and name in each.supports)
        option = "--" + name.replace("_", "-").replace("three-d", "3d")
        raise InputError(f"{folder}: {option} is for {' or '.join(users)}; this model makes {rows}")


def deliver(stream: SampleStream, out: Path, quiet: bool, threads: int | None = None) -> str:
    """Write the samples of a stream to `out`; return a message about their number, accepted share and time.

    Further lines of the message are warnings, if there are any. If `out` cannot be written, the samples are
    written as a CSV file, and InputError is raised. If the search is interrupted or accepts too few samples,
    the samples so far are written to `<stem>.part<suffix>`, and Interrupted or InputError is raised. SIGUSR1
    writes them there, too, and the search continues.
    """
    settings, delivery = stream.settings, stream.delivery
    lacking = delivery.prepare(out)
    write = delivery.writer(out)
    require_apart({"--out": out}, stream.inputs)
    require_writable(out)
    describe = delivery.describer(quiet, threads)
    rows: Rows = []

    def save(path: Path) -> None:
        try:
            with atomic(path) as [temporary]:
                write(temporary, rows)
        except Exception as error:  # the search may have taken hours
            raise InputError(f"{str(error) or type(error).__name__} ({_rescue(rows, out)})") from error

    def save_part() -> str:
        """Save the samples so far, if there are any, and return a message about them."""
        progress = f"{len(rows):,} of {settings.count:,} {delivery.noun} found"
        if not rows:
            return f"{progress}, nothing is written"
        save(part)
        parts.append(part)
        return f"{progress}, saved in {part}"

    part = out.with_name(f"{out.stem}.part{out.suffix}")
    parts: list[Path] = []
    started, replaced = time.perf_counter(), ", which replaces an earlier file" if out.exists() else ""
    try:
        with signals.interruptible(save_part):
            try:
                # The bar shows the share of samples that are delivered.
                with bar(total=settings.count, unit=f" {delivery.noun}", quiet=quiet) as progress:
                    for number, text in enumerate(stream, 1):
                        rows.append({"name": f"pairflow-{number}", **describe(text)})
                        share = f"{number / delivery.drawn:.1%} of samples kept"
                        progress.set_postfix_str(share, refresh=False)
                        progress.update()
                save(out)
            except signals.Stopped as stop:
                raise Interrupted(f"stopped: {save_part()}", stop.number) from None
    except TooFewAccepted as end:
        raise InputError(f"{end} ({save_part()})") from None
    for saved in parts:  # the search is complete, so its partial files are obsolete
        saved.unlink(missing_ok=True)
    seconds = time.perf_counter() - started
    summary = f"{settings.count:,} {delivery.summarise(rows, seconds)}, seed {settings.seed}"
    return "\n".join(filter(None, [f"{summary} -> {out}{replaced}", lacking, delivery.warn()]))


def _rescue(rows: Rows, out: Path) -> str:
    """Save the samples as a CSV file beside `out`, or else among the temporary files.

    Returns a message that says where they are, or that they are lost.
    """
    for folder in (out.parent, Path(tempfile.gettempdir())):
        path = folder / f"{out.stem}.part.csv"
        with suppress(Exception), atomic(path) as [temporary]:
            pd.DataFrame(rows).map(as_cell).to_csv(temporary, index=False, lineterminator="\n")
            return f"the {len(rows):,} found are saved in {path}"
    return f"the {len(rows):,} found are lost"
