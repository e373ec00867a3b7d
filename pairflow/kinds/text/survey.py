"""Reads a user's text for `pairflow new`, describes it, and suggests an experiment."""

from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path

from pairflow.config import suggest
from pairflow.data.draft import Draft, DraftRequest, Entry, own_split, table_lines
from pairflow.data.source import DatasetSize
from pairflow.errors import InputError
from pairflow.kinds.text.data_sets import OwnText, SplitText
from pairflow.kinds.text.prepare import PARTS, PreparedText
from pairflow.kinds.text.settings import Text

LENGTH = 32  # N of a suggested experiment
MINIMUM = 100  # rows for training
MOST_WORDS = 3  # of a line that is a row of its own, such as a name or a sequence
MOST = 0.95  # share of lines with so few words that makes all lines rows, and that is no longer than N
LONGEST = 256  # N of lines at most
# Settings of `pairflow new` that work for text.
_SETTINGS = {"name", "validation_fraction", "compare", "rows", "held_out"}


def draft_text(request: DraftRequest) -> Draft:
    """Read a text and suggest an experiment on it, for `pairflow new`. Raises InputError for too little text,
    and for settings that work only for molecules."""
    path, settings = request.file, request.settings
    if request.parent:
        raise InputError(f"{path}: text; --from is for molecules. Add `from` to the experiment yourself")
    if unsupported := settings.model_dump(exclude_defaults=True, exclude=_SETTINGS):
        raise InputError(f"{path}: text; --{next(iter(unsupported)).replace('_', '-')} is for molecules")
    source = request.source if set("/.") & set(request.source) else f"./{request.source}"
    text = SplitText(path, held_out=OwnText(Path(settings.held_out))) if settings.held_out else OwnText(path)
    lines = [line for line in text.lines() if line.strip()]
    kind = settings.rows or ("lines" if are_rows(lines) else "packed")
    if not lines:  # which is refused below
        kind = "packed"
    data: Entry = {"source": source, "tokeniser": "characters", "length": LENGTH}
    own = own_split(request)
    data |= own or {"validation_fraction": settings.validation_fraction}
    data["judge_fraction"] = 0.05
    most = suggest.training_rows(10**9, request.device) or 10**9
    if kind == "lines":
        data |= {"length": length_of(lines), "rows": "lines"}
        available = len(lines)
    else:
        prepared = text.read(Text(**data))
        # A row starts every 8 tokens, or less often in a long text.
        data["stride"] = min(LENGTH, max(LENGTH // 4, -(-len(prepared.train) * LENGTH // most)))
        available = len(prepared.train) * LENGTH // data["stride"]
    if available > most:
        data["training_rows"] = most
    prepared = text.read(Text(**data))
    if len(prepared.train) < MINIMUM:
        raise InputError(
            f"{path}: {len(prepared.train)} rows are too few to train on; expected at least {MINIMUM}"
        )
    rows, symbols = len(prepared.train), prepared.tokeniser.size
    experiment = {
        "description": f"The text of {Path(source).name}, at a scale for this machine",
        "scale": "reduced",
        "seeds": [0],
        "data": data,
        **suggest.experiment(data["length"], symbols, rows, request.device, settings.compare),
    }
    return Draft(
        experiment=experiment,
        size=DatasetSize(rows, len(prepared.validation), symbols, data["length"]),
        content=f"{rows:,} training rows of text.",
        table=table_lines(f"{path} (text)", _lines(prepared, data, len(text.files()))),
        rejected=prepared.rejected,
        advice=tuple(_advice(kind, lines, guessed=settings.rows is None)),
    )


def are_rows(lines: Sequence[str]) -> bool:
    """Whether lines look like rows of their own, such as names or sequences, and not like running text."""
    few = sum(len(line.split()) <= MOST_WORDS for line in lines)
    return len(lines) >= MINIMUM and few >= MOST * len(lines)


def length_of(lines: Sequence[str]) -> int:
    """The number of tokens N with which most lines, and an end symbol, fit into a row."""
    lengths = sorted(map(len, lines))
    return max(4, min(LONGEST, lengths[ceil(MOST * len(lengths)) - 1] + 1))


def _advice(kind: str, lines: Sequence[str], guessed: bool) -> Iterator[str]:
    """Yield how rows were chosen, and what is wrong with the order of lines."""
    if guessed and kind == "lines":
        yield (
            f"Each line is a row, because {MOST:.0%} of the lines have at most {MOST_WORDS} words. "
            "For running text: --rows packed."
        )
    elif guessed:
        yield "Rows are pieces of running text. If each line stands by itself: --rows lines."
    if kind == "lines" and [*lines] == sorted(lines):
        yield (
            "The lines are sorted, and the last of them are held out, so that these are of another kind. "
            "Shuffle the file first (`shuf`)."
        )


def _remark(data: Entry) -> str:
    if "stride" in data:
        return f"a training row every {data['stride']} tokens"
    return "a line and its end symbol; longer lines are left out"


def _lines(prepared: PreparedText, data: Entry, files: int) -> list[tuple[str, int, str]]:
    """Make the lines that describe the text, each a label, a number and a remark."""
    rows = {name: len(getattr(prepared, name)) for name in PARTS}
    share = data.get("held_out") or f"{data['validation_fraction']:.0%} of the text"
    return [
        ("files", files, ""),
        ("rejected pieces", len(prepared.rejected), ""),
        ("N, tokens per row", data["length"], _remark(data)),
        ("K, symbols", prepared.tokeniser.size, f"tokeniser: {data['tokeniser']}"),
        ("rows for training", rows["train"], ""),
        ("rows for validation", rows["validation"], share),
        ("rows for the judge", rows["judge"], f"{data['judge_fraction']:.0%} of the text"),
    ]
