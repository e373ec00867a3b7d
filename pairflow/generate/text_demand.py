"""Text on demand: samples of a model, decoded, as many as wanted."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from pairflow.artifacts import as_cell, require_apart
from pairflow.errors import InputError
from pairflow.generate.choice import choose
from pairflow.generate.demand import PATIENCE, GrowingTable, TooFewAccepted, require_writable
from pairflow.generate.given import given_places, given_text
from pairflow.kinds.molecules.settings import DemandSettings
from pairflow.kinds.text.tokenisers import load_tokeniser
from pairflow.runtime.progress import bar
from pairflow.training.model import Model

_OF_TEXT = (
    "count",
    "nfe",
    "unique",
    "seed",
    "sampler",
    "conversion",
    "greedy_tail",
    "prefix",
    "template",
)  # settings


class TextStream:
    """Text on demand: iterating gives `settings.count` texts of the model in `folder`.

    `folder` may also be that of a finished experiment: see `choose`. The texts are a function of the model,
    the settings and the kind of device; a smaller count gives the first of a larger one. With `unique` a text
    is given once, and TooFewAccepted is raised if none of the last 20,000 samples is new.
    """

    def __init__(self, folder: str | Path, settings: DemandSettings, device: str | torch.device = "cpu"):
        given = settings.model_dump(exclude_defaults=True, exclude=set(_OF_TEXT))
        if given:
            option = "--" + next(iter(given)).replace("_", "-").replace("three-d", "3d")
            raise InputError(f"{folder}: {option} is for molecules; this model makes text")
        self.choice = choose(Path(folder), settings.nfe)
        self.settings = settings.model_copy(update={"nfe": self.choice.nfe})
        self.model = Model.load(self.choice.folder, device=device)
        self.tokeniser = load_tokeniser(self.model.vocabulary_file())
        self.given = given_text(settings, self.tokeniser, self.model.length)
        self.inputs = self.choice.files
        self.drawn = 0

    def __iter__(self) -> Iterator[str]:
        seen: set[str] = set()
        delivered = idle = 0
        for tokens in self.model.rows_without_end(self.settings, self.choice.nfe, self.given):
            text = self.tokeniser.decode(tokens)
            self.drawn += 1
            if text in seen:
                idle += 1
                if idle >= PATIENCE:
                    raise TooFewAccepted(f"none of the last {PATIENCE:,} samples was new: ask for fewer")
                continue
            if self.settings.unique:
                seen.add(text)
            idle, delivered = 0, delivered + 1
            yield text
            if delivered == self.settings.count:
                return


def deliver_text(stream: TextStream, out: Path, quiet: bool) -> str:
    """Write the texts of a stream to `out`, and say how many.

    If it is interrupted, the texts so far are written to `<stem>.part<suffix>`, as `demand.deliver` does.
    """
    write, settings = _writer(out), stream.settings
    require_apart({"--out": out}, stream.inputs)
    require_writable(out)
    table = GrowingTable(out, settings.count, "texts", write)

    def collect() -> None:
        with bar(total=settings.count, unit=" texts", quiet=quiet) as texts:
            for number, text in enumerate(stream, 1):
                table.rows.append({"name": f"pairflow-{number}", "text": text})
                texts.update()

    table.fill(collect)
    kept = f" from {stream.drawn:,} samples" if stream.drawn > settings.count else ""
    if settings.prefix is not None and stream.given is not None:
        start = stream.tokeniser.decode(stream.given[: given_places(stream.given)].tolist())
        share = sum(row["text"].startswith(start) for row in table.rows) / settings.count
        kept += f" ({share:.1%} of them begin with the prefix)"
    return f"{settings.count:,} texts{kept}, seed {settings.seed} -> {out}"


def _writer(out: Path) -> Callable[[Path, list[dict[str, Any]]], None]:
    """The function that writes the format of a file's suffix; InputError for an unknown one."""
    if out.suffix == ".txt":
        return _write_lines
    if out.suffix == ".csv":
        return _write_csv
    raise InputError(f"{out}: unknown suffix {out.suffix!r}; expected .txt or .csv for text")


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    pd.DataFrame(rows).map(as_cell).to_csv(path, index=False, lineterminator="\n")


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    r"""A line for each text; line breaks in it are written as \n, and backslashes twice."""
    escapes = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})
    path.write_text("".join(row["text"].translate(escapes) + "\n" for row in rows), encoding="utf-8")
