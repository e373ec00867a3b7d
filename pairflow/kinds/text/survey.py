"""Reads a user's text for `pairflow new`, describes it, and suggests an experiment."""

from pathlib import Path

from pairflow.config import suggest
from pairflow.data.draft import Draft, DraftRequest, Entry, table_lines
from pairflow.data.source import DatasetSize
from pairflow.errors import InputError
from pairflow.kinds.text.data_sets import OwnText
from pairflow.kinds.text.prepare import PARTS, PreparedText
from pairflow.kinds.text.settings import Text

LENGTH, SUBWORDS = 32, 1024  # N and, for subwords, K of a suggested experiment
MOST_CHARACTERS = 256  # a text with more different characters is cut into subwords
MINIMUM = 100  # rows for training
_SETTINGS = {"name", "validation_fraction", "compare"}  # settings of `pairflow new` that work for text


def draft_text(request: DraftRequest) -> Draft:
    """Read a text and suggest an experiment on it, for `pairflow new`. Raises InputError for too little text,
    and for settings that work only for molecules."""
    path, settings = request.file, request.settings
    if request.parent:
        raise InputError(f"{path}: text; --from is for molecules. Add `from` to the experiment yourself")
    if unsupported := settings.model_dump(exclude_defaults=True, exclude=_SETTINGS):
        raise InputError(f"{path}: text; --{next(iter(unsupported)).replace('_', '-')} is for molecules")
    source = request.source if set("/.") & set(request.source) else f"./{request.source}"
    text = OwnText(path)
    data: Entry = {"source": source, "tokeniser": "characters", "length": LENGTH}
    data |= {"validation_fraction": settings.validation_fraction, "judge_fraction": 0.05}
    prepared = text.read(Text(**data))
    if prepared.tokeniser.size > MOST_CHARACTERS:
        data |= {"tokeniser": "subwords", "vocabulary_size": SUBWORDS}
        prepared = text.read(Text(**data))
    most = suggest.training_rows(10**9, request.device) or 10**9
    # A row starts every 8 tokens, or less often in a long text.
    data["stride"] = min(LENGTH, max(LENGTH // 4, -(-len(prepared.train) * LENGTH // most)))
    if len(prepared.train) * LENGTH // data["stride"] > most:
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
        **suggest.experiment(LENGTH, symbols, rows, request.device, settings.compare),
    }
    return Draft(
        experiment=experiment,
        size=DatasetSize(rows, len(prepared.validation), symbols, LENGTH),
        content=f"{rows:,} training rows of text.",
        table=table_lines(f"{path} (text)", _lines(prepared, data, len(text.files()))),
        rejected=prepared.rejected,
    )


def _lines(prepared: PreparedText, data: Entry, files: int) -> list[tuple[str, int, str]]:
    """Make the lines that describe the text, each a label, a number and a remark."""
    rows = {name: len(getattr(prepared, name)) for name in PARTS}
    return [
        ("files", files, ""),
        ("rejected pieces", len(prepared.rejected), ""),
        ("N, tokens per row", data["length"], f"a training row every {data['stride']} tokens"),
        ("K, symbols", prepared.tokeniser.size, f"tokeniser: {data['tokeniser']}"),
        ("rows for training", rows["train"], ""),
        ("rows for validation", rows["validation"], f"{data['validation_fraction']:.0%} of the text"),
        ("rows for the judge", rows["judge"], f"{data['judge_fraction']:.0%} of the text"),
    ]
