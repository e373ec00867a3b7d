"""Settings of text: the raw data, and the language models (judges) that measure samples' perplexity."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from pairflow.limits import MAX_LENGTH
from pairflow.metrics.metric import Metric
from pairflow.settings.check import Seed, Settings, nearest
from pairflow.settings.fields import (
    ROWS,
    DataSettings,
    HeldOut,
    NewSettings,
    OwnFile,
    Share,
    SplitColumn,
    TrainingRows,
)
from pairflow.settings.sampling import RealDraws

Rows = Literal["packed", "lines"]
FASTA_SUFFIXES = (".fasta", ".fa", ".faa")
FILES = (".txt or FASTA", (".txt", *FASTA_SUFFIXES))  # what a folder may hold: name in messages, suffixes
COLUMN = "text"  # the usual name of a column with text


class KnownText(NamedTuple):
    """A text that pairflow knows by name.

    Attributes:
        file: the name of its file.
        format: how it is written: "plain" UTF-8; a file of the "package", compressed by xz; "letters" in a
            ZIP archive, as text8; or files of "sentences" in a tar archive, as LM1B.
        url, sha256: the address of the file, if it is not a part of the package, and perhaps its checksum.
        in_paper: whether it is in the paper's tables.
    """

    file: str
    format: Literal["plain", "package", "letters", "sentences"] = "plain"
    url: str | None = None
    sha256: str | None = None
    in_paper: bool = False


_LM1B = "1-billion-word-language-modeling-benchmark-r13output.tar.gz"
TEXTS = {
    # Tiny Shakespeare, 40,000 lines of his plays, in the public domain.
    "shakespeare": KnownText("shakespeare.txt.xz", "package"),
    "text8": KnownText(
        "text8.zip",
        "letters",
        "http://mattmahoney.net/dc/text8.zip",
        "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
    ),
    "lm1b": KnownText(
        _LM1B,
        "sentences",
        f"https://www.statmt.org/lm-benchmark/{_LM1B}",
        "01ba60381110baf7f189dfd2b8374de371e8c9a340835793f190bdae9e90a34e",
        in_paper=True,
    ),
}

_text = partial(Metric, real="held-out text")
_repeats = partial(_text, chart=False, group="repeats")
_four_grams = partial(
    _repeats,
    description="A 4-gram is four tokens in a row. `rep_4` is the share of repeated 4-grams within a "
    "sample, `distinct_4` the share of different 4-grams among all samples.",
    formula="mean over samples of 1 - different 4-grams / 4-grams; different 4-grams / 4-grams of all "
    "samples",
    unit="shares, 0 to 1",
    better="neither; near held-out text",
    pitfalls="`distinct_4` falls with the number of samples",
    source="Welleck et al. 2020; Li et al. 2016 (`pairflow/kinds/text/ngrams.py`)",
)
METRICS = {
    "judge_ppl": _text(
        "judge perplexity",
        "lowest",
        "the perplexity under the judge",
        log=True,
        description="Perplexity: between how many symbols the judge hesitates, on average.",
        formula="exp(-mean over all tokens of all samples of ln p(token | tokens before it in its row))",
        unit="none, from 1 to about the number of symbols",
        better="lower, at equal entropy",
        pitfalls="dull and repeated text has a low value, too; it is not the paper's `gen_ppl`",
        source="Kneser and Ney 1995; Chen and Goodman 1999 (`pairflow/kinds/text/kneser_ney.py`)",
    ),
    "gen_ppl": _text(
        "generative perplexity",
        "lowest",
        log=True,
        description="Perplexity of decoded samples by GPT-2 large. It needs `judge: {gen_ppl: true}`.",
        formula="exp(mean over tokens of -ln p(token | tokens before it)), without the first token of each "
        "sample. Samples are decoded without `[PAD]` and `[MASK]`, but with `[CLS]` and `[SEP]`. Only the "
        "first N of GPT-2's tokens of a sample count",
        unit="none, from 1 to 50,257",
        better="lower, at equal entropy",
        pitfalls="as for `judge_ppl`; compare only values with equal truncation and special tokens",
        source="Radford et al. 2019; Lou et al. 2024 (`pairflow/kinds/text/gpt2.py`)",
    ),
    "entropy": _text(
        "entropy (nats)",
        digits=2,
        description="How evenly a sample uses its symbols.",
        formula="mean over samples of -sum_a p_a ln p_a, with p_a the share of symbol a among the sample's "
        "tokens",
        unit="nats, 0 to ln N",
        better="neither; near held-out text",
        pitfalls="it sees neither the order of tokens nor whether all samples are alike",
        source="Shannon 1948 (`pairflow/kinds/text/ngrams.py`)",
    ),
    "known_words": _text(
        "share of known words",
        "highest",
        description="Share of the samples' words that also occur in the training text.",
        formula="number of such words / number of words. Of rows cut from running text (`rows: packed`) the "
        "first and last word do not count",
        unit="share, 0 to 1",
        better="higher, up to held-out text",
        pitfalls="a model that writes only short words has a high value",
        source="counted (`pairflow/kinds/text/ngrams.py`)",
    ),
    "js_trigram": _text(
        "trigram distance",
        "lowest",
        against="to held-out text",
        group="ngrams",
        description="How far samples are from held-out rows in the frequencies of trigrams (three tokens in "
        "a row).",
        formula="sqrt(1/2 KL(p || m) + 1/2 KL(q || m)) in bits, with frequencies p in samples, q in "
        "held-out rows, and m = (p + q) / 2",
        unit="none, 0 to 1",
        better="lower, down to the floor",
        pitfalls="with few samples any text has a large value, so compare only equal numbers",
        source="Lin 1991; Endres and Schindelin 2003 (`pairflow/kinds/text/ngrams.py`)",
    ),
    "rep_4": _four_grams("repeated 4-grams of a sample"),
    "distinct_4": _four_grams("distinct 4-grams of a trial"),
}
GROUPS = {"ngrams": "Frequencies of n-grams", "repeats": "Repeats"}


class TextFiles(NamedTuple):
    """The files of the text that samples are compared with, and that the judge, an n-gram model, learns."""

    tokens: Annotated[Path, "Training rows (Parquet)."]
    validation: Annotated[Path, "Held-out rows (Parquet)."]
    judge: Annotated[Path, "Rows of text that only the judge learns from (Parquet)."]
    vocabulary: Annotated[Path, "The tokeniser (JSON)."]


class Judge(Settings):
    """The language models that measure the perplexity of samples: an n-gram model, and perhaps GPT-2."""

    order: int = Field(
        6, ge=1, le=16, description="Tokens of n-grams: 6 suits characters, 3 pieces of words."
    )
    gen_ppl: bool = Field(False, description="Also measure gen_ppl, under GPT-2 large; needs pairflow[text].")


class JudgedDraws(RealDraws, Judge):
    """Settings of the floor (metrics of real text) and of the controls (trivial baselines)."""


class TextExperiment(Settings):
    """The keys that an experiment has only if its data are text."""

    judge: Judge | None = Field(
        None,
        description="The models that judge samples of text. Without `order` the n-gram model has order 6 for "
        "characters, 3 for pieces of words.",
    )


class Text(DataSettings):
    """Text, as rows of N tokens.

    The text is cut into three parts, in this order: training, validation, and a part for the judge
    only. The judge is a language model that measures the perplexity of samples.
    """

    kind = "text"
    names = tuple(TEXTS)
    paper = tuple(name for name, known in TEXTS.items() if known.in_paper)
    experiment_keys = TextExperiment
    keeps_symbols = True
    folder_files = FILES
    metrics, groups = METRICS, GROUPS
    prepared = ROWS | {
        "judge.parquet": "Rows that only the judge of samples learns from (Parquet).",
        "rejected.parquet": "Pieces of text that were left out, with reasons (Parquet).",
    }

    source: OwnFile = Field(
        description="Data set: shakespeare (included in the package), text8, lm1b, or the path of your own "
        "UTF-8 text file or of a folder of such files."
    )
    column: str | None = Field(
        None,
        description="Column with the text, if the file is a table (such as .csv, .jsonl or .parquet): each "
        "row has a text.",
    )
    sheet: str | None = Field(
        None, min_length=1, description="Sheet of an Excel file. Default: the first with that column."
    )
    format: Literal["plain", "fasta"] | None = Field(
        None,
        description="`plain`: lines of text. `fasta`: records of a header, which is left out, and a "
        "sequence. Default: found from the name and the content of the file.",
    )
    tokeniser: Literal["characters", "bert"] = Field(
        description="`characters`: each character is a symbol; `bert`: the word pieces of bert-base-uncased."
    )
    normalisation: Literal["none", "letters"] = Field(
        "none",
        description="`none` keeps the text as it is. `letters` makes it lower case, and turns every run of "
        "characters other than a to z into one space.",
    )
    length: int = Field(ge=4, le=MAX_LENGTH, description="Tokens per row (N).")
    rows: Rows = Field(
        "packed",
        description="`packed`: the text is cut into rows of N tokens. `lines`: each line is a row, with an "
        "end symbol and padding.",
    )
    stride: int | None = Field(
        None,
        ge=1,
        le=2**20,
        description="Tokens from the start of one packed training row to the start of the next. Default: "
        "rows do not overlap.",
    )
    validation_fraction: Share = Field(
        0.05,
        gt=0,
        description="Share of the text that is held out for validation; a published held-out set replaces "
        "it.",
    )
    split_column: SplitColumn = None
    held_out: HeldOut = None
    judge_fraction: Share = Field(
        0.05, gt=0, description="Share of the text, at its end, for the judge of samples."
    )
    split_seed: Seed = Field(42, description="Seed of the random subset of training rows.")
    training_rows: TrainingRows = None

    @classmethod
    def claims(cls, values: Mapping[str, object]) -> bool:
        return values.get("source") in TEXTS or "tokeniser" in values

    @field_validator("source")
    @classmethod
    def _a_name_or_a_path(cls, source: str) -> str:
        if source not in TEXTS and not set("/.") & set(source):
            expected = f"known are {', '.join(TEXTS)}, and paths of text files or folders (./{source})"
            raise ValueError(f"unknown name '{source}'{nearest(source, TEXTS)}: {expected}")
        return source

    @model_validator(mode="after")
    def _keys_fit(self) -> "Text":
        if self.stride is not None and self.rows == "lines":
            raise ValueError("stride: works only with packed rows; found rows: lines")
        if self.own_split and self.source in TEXTS:
            raise ValueError(f"split_column, held_out: only for text of your own, not for {self.source}")
        if (self.split_column or self.sheet) and self.column is None:
            raise ValueError("split_column, sheet: expected a table, whose column of text `column` names")
        if self.validation_fraction + self.judge_fraction >= 1:
            raise ValueError("validation_fraction and judge_fraction: expected a sum below 1")
        return self

    @property
    def file(self) -> str | None:
        """The user's file; None for a data set or a folder. A path without a suffix is a folder."""
        return self.source if PurePath(self.source).suffix else None

    @property
    def is_partial(self) -> bool:
        """Whether rows are left out that the paper does not leave out."""
        return self.source not in self.paper and super().is_partial

    @property
    def folder(self) -> str | None:
        """The user's folder; None for a data set or a file."""
        return None if self.file or self.source in TEXTS else self.source


def judge_settings(experiment: Any) -> Judge:
    """Return the settings of an experiment's judges; the n-gram order depends on the tokeniser by default."""
    judge = experiment.judge or Judge()
    if isinstance(experiment.data, Text) and "order" not in judge.model_fields_set:
        return judge.model_copy(update={"order": 6 if experiment.data.tokeniser == "characters" else 3})
    return judge


class NewText(NewSettings):
    """Settings of the command `pairflow new` for a user's text."""

    rows: Rows | None = Field(
        None,
        description="What a row of text is. `lines`: each line, such as a name or a sequence. `packed`: a "
        "piece of running text. Guessed from the file if not given.",
    )
