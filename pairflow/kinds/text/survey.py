"""What a user's own text holds, and an experiment on it, before anything is computed."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pairflow.config import suggest
from pairflow.data.source import DatasetSize
from pairflow.errors import InputError
from pairflow.kinds.molecules.survey import is_molecule
from pairflow.kinds.text.prepare import PARTS, PreparedText
from pairflow.kinds.text.settings import Text
from pairflow.kinds.text.sources import OwnText

LENGTH, SUBWORDS = 32, 1024  # N, and K of subwords, of a suggested experiment
MOST_CHARACTERS = 256  # a text of more distinct ones is cut into subwords
MINIMUM = 100  # rows for training
_SAMPLED_LINES = 200


@dataclass(frozen=True)
class TextSurvey:
    """A prepared text, and the experiment on it; `files` is how many files it has."""

    prepared: PreparedText
    experiment: dict[str, Any]
    files: int

    @property
    def size(self) -> DatasetSize:
        prepared = self.prepared
        rows, length = prepared.train.shape
        return DatasetSize(rows, len(prepared.validation), prepared.tokeniser.size, length)

    @property
    def table(self) -> list[tuple[str, int, str]]:
        """What was found, in lines of a label, a number and a remark."""
        prepared, data = self.prepared, self.experiment["data"]
        rows = {name: len(getattr(prepared, name)) for name in PARTS}
        return [
            ("files", self.files, ""),
            ("rejected pieces", len(prepared.rejected), ""),
            ("N, tokens per row", data["length"], f"a training row every {data['stride']} tokens"),
            ("K, symbols", prepared.tokeniser.size, f"tokeniser: {data['tokeniser']}"),
            ("rows for training", rows["train"], ""),
            ("rows for validation", rows["validation"], f"{data['validation_fraction']:.0%} of the text"),
            ("rows for the judge", rows["judge"], f"{data['judge_fraction']:.0%} of the text"),
        ]


def is_text(path: Path) -> bool:
    """Whether a path is that of text: a folder, or a .txt file whose lines mostly begin with no molecule."""
    if path.is_dir():
        return True
    if path.suffix.lower() != ".txt" or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        lines = list(islice((line for line in file if line.strip()), _SAMPLED_LINES))
    return sum(is_molecule(line.split()[0]) for line in lines) <= len(lines) / 2


def survey_text(
    path: Path, source: str, validation_fraction: float, device: str, compare: bool
) -> TextSurvey:
    """Read a text, and suggest an experiment that names it `source`; InputError for too little text."""
    own = OwnText(path)
    data: dict[str, Any] = {"source": source, "tokeniser": "characters", "length": LENGTH}
    data |= {"validation_fraction": validation_fraction, "judge_fraction": 0.05}
    prepared = own.read(Text(**data))
    if prepared.tokeniser.size > MOST_CHARACTERS:
        data |= {"tokeniser": "subwords", "vocabulary_size": SUBWORDS}
        prepared = own.read(Text(**data))
    most = suggest.training_rows(10**9, device) or 10**9
    # A row every 8 tokens, or fewer rows of a long text.
    data["stride"] = min(LENGTH, max(LENGTH // 4, -(-len(prepared.train) * LENGTH // most)))
    if len(prepared.train) * LENGTH // data["stride"] > most:
        data["training_rows"] = most
    prepared = own.read(Text(**data))
    if len(prepared.train) < MINIMUM:
        raise InputError(
            f"{path}: {len(prepared.train)} rows are too few to train on; expected at least {MINIMUM}"
        )
    size = prepared.tokeniser.size
    experiment = {
        "description": f"The text of {Path(source).name}, at a scale for this machine",
        "scale": "reduced",
        "seeds": [0],
        "data": data,
        **suggest.scale(LENGTH, size, len(prepared.train), device, compare),
    }
    return TextSurvey(prepared, experiment, len(own.files()))
