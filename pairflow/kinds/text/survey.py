"""Reads a user's text for `pairflow new`, describes it, and suggests an experiment."""

from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path

from pairflow.config import suggest
from pairflow.data import tabular
from pairflow.data.draft import Draft, DraftRequest, Entry, own_split, table_lines
from pairflow.data.source import DatasetSize
from pairflow.data.tabular import is_table
from pairflow.errors import InputError
from pairflow.files import suffix_of
from pairflow.kinds.text.data_sets import Content, OwnText, rows_of
from pairflow.kinds.text.prepare import PARTS, PreparedText
from pairflow.kinds.text.settings import COLUMN, FASTA_SUFFIXES, Text

LENGTH = 32  # N of a suggested experiment
MINIMUM = 100  # rows for training
MOST_WORDS = 3  # of a line that is a row of its own, such as a name or a sequence
MOST = 0.95  # share of lines with so few words that makes all lines rows, and that is no longer than N
LONGEST = 256  # N of lines at most
# Settings of `pairflow new` that work for text.
_SETTINGS = {
    *("name", "column", "sheet", "validation_fraction", "compare", "rows", "held_out", "split_column")
}


def recognise(request: DraftRequest) -> str:
    """Return why the file `request.file` is taken for text, once no other kind of data has recognised it;
    empty if it is no text. Raises InputError for a table in which no column is known to hold text."""
    file, suffix = request.file, suffix_of(request.file)
    if request.taken_as in ("text", "rows"):
        return f"by --as {request.taken_as}"
    if request.taken_as == "table" or is_table(file):
        return _recognise_column(file, request.settings.column, request.settings.sheet)
    if file.is_dir():
        return "because it is a folder"
    if suffix in FASTA_SUFFIXES:
        return "by its suffix"
    by_content = "because most of its lines hold no molecule"
    return ("because you say what a row is" if request.settings.rows else by_content) * (suffix == ".txt")


def _recognise_column(file: Path, column: str | None, sheet: str | None) -> str:
    sheets, chosen = dict(tabular.columns(file, 1, sheet)), column or COLUMN
    texts = [text for fields in sheets.values() for text in fields.get(chosen, ())]
    has_formulas = None not in sheets and any(text.startswith("=") for text in texts)
    has_column = column or any(chosen in fields for fields in sheets.values())
    if has_formulas or not has_column:
        found = tabular.describe_sheets(sheets)
        raise InputError(
            f"{file}: no column holds SMILES in most rows; found {found}; --column names one with text"
        )
    return "which holds no SMILES"


def draft_text(request: DraftRequest, reason: str) -> Draft:
    """Read the text `request.file` and suggest an experiment on it, for `pairflow new`. `reason` is the
    result of `recognise`. Raises InputError for too little text, and for settings that work only for
    molecules."""
    path, settings = request.file, request.settings
    if request.parent:
        raise InputError(f"{path}: text; --from is for molecules. Add `from` to the experiment yourself")
    if unsupported := settings.model_dump(exclude_defaults=True, exclude=_SETTINGS):
        raise InputError(f"{path}: text; --{next(iter(unsupported)).replace('_', '-')} is for molecules")
    source = request.source if set("/.") & set(request.source) else f"./{request.source}"
    text, contents, reason = _read(request, reason)
    has_records = any(isinstance(content, list) for content in contents)
    data: Entry = {"source": source, "tokeniser": "characters", "length": LENGTH}
    chosen = {"column": text.column, "sheet": text.sheet, "format": text.form}
    data |= {key: value for key, value in chosen.items() if value}
    lines = [line for line in rows_of(contents) if line.strip()]
    if not lines:
        raise InputError(f"{path}: empty; no row holds text")
    if has_records and not settings.rows and 2 * sum(len(line) >= LONGEST for line in lines) > len(lines):
        raise InputError(
            f"{path}: most records have more than {LONGEST - 1} characters, too many for a row; "
            "--rows packed cuts the text into pieces"
        )
    by_rows = has_records or request.taken_as == "rows" or are_rows(lines)
    kind = settings.rows or ("lines" if by_rows else "packed")
    text = text.with_split(settings.split_column, Path(settings.held_out) if settings.held_out else None)
    data |= own_split(request) or {"validation_fraction": settings.validation_fraction}
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
        table=table_lines(f"{path} (text, {reason})", _lines(prepared, data, len(text.files()))),
        rejected=prepared.rejected,
        advice=(
            *prepared.notes,
            *_advice(kind, lines, has_records, guessed=not (settings.rows or request.taken_as == "rows")),
        ),
    )


def _read(request: DraftRequest, reason: str) -> tuple[OwnText, list[Content], str]:
    """Read the file `request.file` as what it is taken for. Returns the source, the text or the records of
    each file, and in words what it is taken for, and why; `reason` is the result of `recognise`."""
    path, column = request.file, request.settings.column
    if column or is_table(path) or request.taken_as == "table":
        column = column or COLUMN
        text = OwnText(path, column=column, sheet=request.settings.sheet)
        where = f"{tabular.describe_sheet(path, column, text.sheet)}, column {column!r}".removeprefix(", ")
        return text, [*text.contents([])], f"{where}, {reason}"
    if request.settings.sheet:
        raise InputError(f"{path}: no sheet {request.settings.sheet!r}: only Excel files have sheets")
    text = OwnText(path)
    contents = [*text.contents([])]
    if all(isinstance(content, str) for content in contents):
        return text, contents, reason
    if request.taken_as == "text":
        text = OwnText(path, "plain")
        return text, [*text.contents([])], reason
    by_content = "because its first line begins with >"
    return text, contents, f"FASTA, {by_content if suffix_of(path) == '.txt' else reason}"


def are_rows(lines: Sequence[str]) -> bool:
    """Return whether lines look like rows of their own, such as names or sequences, and not like running
    text."""
    few = sum(len(line.split()) <= MOST_WORDS for line in lines)
    return len(lines) >= MINIMUM and few >= MOST * len(lines)


def length_of(lines: Sequence[str]) -> int:
    """Return the number of tokens N with which most lines, and an end symbol, fit into a row."""
    lengths = sorted(map(len, lines))
    return max(4, min(LONGEST, lengths[ceil(MOST * len(lengths)) - 1] + 1))


def _advice(kind: str, lines: Sequence[str], has_records: bool, guessed: bool) -> Iterator[str]:
    """Yield sentences on how rows were chosen, unless the user said what a row is, and on lines that are
    sorted. `kind` is what a row is: lines, or packed."""
    if guessed and has_records:
        yield "Each record is a row. For running text: --rows packed."
    elif guessed and kind == "lines":
        yield (
            f"Each line is a row, because {MOST:.0%} of the lines have at most {MOST_WORDS} words. "
            "For running text: --rows packed."
        )
    elif guessed:
        yield "Rows are pieces of running text. If each line stands by itself: --rows lines."
    if kind == "lines" and [*lines] == sorted(lines):
        yield (
            "The lines are sorted and the last ones are held out, so they differ from the training lines. "
            "Shuffle the file first (`shuf`)."
        )


def _lines(prepared: PreparedText, data: Entry, files: int) -> list[tuple[str, int, str]]:
    """Make the lines that describe the text, each a label, a number and a remark. `data` is the
    experiment's section `data`, and `files` the number of files."""
    rows = {name: len(getattr(prepared, name)) for name in PARTS}
    share = (
        data.get("split_column") or data.get("held_out") or f"{data['validation_fraction']:.0%} of the text"
    )
    remark = "a row and its end symbol; longer rows are left out"
    if "stride" in data:
        remark = f"a training row every {data['stride']} tokens"
    return [
        ("files", files, ""),
        ("rejected pieces", len(prepared.rejected), ""),
        ("N, tokens per row", data["length"], remark),
        ("K, symbols", prepared.tokeniser.size, f"tokeniser: {data['tokeniser']}"),
        ("rows for training", rows["train"], ""),
        ("rows for validation", rows["validation"], share),
        ("rows for the judge", rows["judge"], f"{data['judge_fraction']:.0%} of the text"),
    ]
