"""Sources of text. A new data set is an entry of `TEXTS` in the settings."""

import hashlib
import lzma
import re
import tarfile
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from pathlib import Path

from pairflow.artifacts import digest
from pairflow.data.download import RawFile
from pairflow.data.source import DatasetSize, DataSource, PublishedFile, RowFile, files
from pairflow.data.split import held_out_rows
from pairflow.data.status import Finding, described
from pairflow.errors import InputError
from pairflow.files import (
    fault,
    read_bytes,
    read_text,
    require_plausible,
    require_regular,
    split_lines,
    unify_line_ends,
)
from pairflow.kinds.text.prepare import Parts, PreparedText, Rejected, cut_parts, normalise, prepare
from pairflow.kinds.text.records import Record, is_fasta, read_column, read_fasta
from pairflow.kinds.text.settings import FILES, TEXTS, KnownText, Text
from pairflow.kinds.text.tokenisers import Tokeniser

MOST_BYTES = 2**32  # of a file of text, which is read into memory as a whole
BERT_SIZE, LETTERS = 30_522, 27  # K of bert-base-uncased; K of a to z and the space
_BINARY = "a NUL character, so that it is binary data and not text"

TRAINING = [f"news.en-{number:05}-of-00100" for number in range(1, 100)]
HELD_OUT = [f"news.en.heldout-{number:05}-of-00050" for number in range(50)]

_RULES = [  # remove spaces that LM1B has before punctuation and inside brackets, in this order
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(https?) : / / ", r"\1://"),
        (r" '(\w+)", r"'\1"),
        (r" (\w+) \.(?= |$)", r" \1."),
        (r" ([?!])(?= |$)", r"\1"),
        (r" ([,:;]) ", r"\1 "),
        (r" / ", "/"),
        (r'" ([^"]+) "', r'"\1"'),
        (r"' ([^']+) '", r"'\1'"),
        (r"\( ([^()]+) \)", r"(\1)"),
        (r"\[ ([^\[\]]+) \]", r"[\1]"),
        (r"([$£]) ", r"\1"),
    )
]


Content = str | list[Record]  # of a file: its text, or its records


class TextSource(DataSource):
    """A source of text: a data set, or a user's files."""

    @abstractmethod
    def fetch(self) -> Path:
        """Return a local path of the text, which is downloaded if need be."""

    @abstractmethod
    def parts(self, settings: Text, rejected: list[Rejected]) -> Parts:
        """Read the text and cut it into parts for training, for validation and for the judge. Files that
        cannot be read are added to `rejected`."""

    def digest(self) -> str:
        """Return the SHA-256 (hex) of the text's files."""
        return digest(self.fetch())

    def read(self, settings: Text, parent: Tokeniser | None = None) -> PreparedText:
        """Read, tokenise and split the text, with the tokeniser of a parent model if there is one."""
        rejected: list[Rejected] = []
        return prepare(self.parts(settings, rejected), settings, rejected, parent)


def cut_plain(path: Path, settings: Text) -> Parts:
    """Read a plain file in UTF-8 and cut it into parts: for training, for validation and for the judge."""
    return cut_parts(read_text(path, MOST_BYTES), settings)


@dataclass(frozen=True)
class PublishedText(PublishedFile, TextSource):
    """A text that is published or comes with the package.

    `cut` reads the file and returns its parts for training, validation and the judge. `tokens` returns the
    numbers of training and held-out tokens, if they are known before the download.
    """

    cut: Callable[[Path, Text], Parts]
    tokens: Callable[[Text], tuple[int, int]] | None

    def parts(self, settings: Text, rejected: list[Rejected]) -> Parts:
        return self.cut(self.fetch(), settings)

    def measure(self, settings: Text) -> DatasetSize:
        """Estimate the size of the data set in packed rows if the numbers of tokens are known; otherwise
        read the file."""
        if self.tokens is None:
            return super().measure(settings)
        tokens, held_out = self.tokens(settings)
        bert = settings.tokeniser == "bert"
        width = settings.length - 2 * bert
        symbols = BERT_SIZE if bert else LETTERS
        return DatasetSize(tokens // (settings.stride or width), held_out // width, symbols).limited(settings)

    def guess(self, settings: Text) -> DatasetSize:
        return self.measure(settings) if self.tokens else super().guess(settings)


def detokenise(sentence: str) -> str:
    """Remove most of the spaces that a sentence of LM1B has before punctuation and inside brackets.

    The rules are from MDLM's authors (Sahoo et al. 2024). They leave the space in `) .`.
    """
    for pattern, replacement in _RULES:
        sentence = pattern.sub(replacement, sentence)
    return sentence


def cut_embedded(path: Path, settings: Text) -> Parts:
    """Read the text that comes with the package, compressed by xz, and cut it into parts: for training, for
    validation and for the judge."""
    content = lzma.decompress(path.read_bytes())
    if hashlib.sha256(content).hexdigest() != _SHAKESPEARE:
        raise InputError(f"{path}: not the text of this package; install it again")
    return cut_parts(content.decode("utf-8"), settings)


def cut_text8(path: Path, settings: Text) -> Parts:
    """Cut text8, the first 10^8 letters and spaces of the English Wikipedia (M. Mahoney 2006), into parts:
    for training, for validation and for the judge."""
    try:
        with zipfile.ZipFile(path) as archive:
            require_plausible(path, archive.getinfo("text8").file_size)
            text = archive.read("text8").decode("ascii")
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: not the archive of text8: {described(error)}") from None
    return cut_parts(text, settings)


def count_text8(settings: Text) -> tuple[int, int]:
    """Return the numbers of training and held-out characters of text8."""
    held_out = round(settings.validation_fraction * 10**8)
    return 10**8 - held_out - round(settings.judge_fraction * 10**8), held_out


def cut_lm1b(path: Path, settings: Text) -> Parts:
    """Cut the One Billion Word Benchmark (Chelba et al. 2013), sentences in a random order, into parts.

    The 50 held-out files are for validation. Of the 99 other files, the last, a share of `judge_fraction`,
    are for the judge, and the first for training.
    """
    judge = ceil(Fraction(str(settings.judge_fraction)) * len(TRAINING))
    names = {"train": TRAINING[:-judge], "validation": HELD_OUT, "judge": TRAINING[-judge:]}
    return {part: _sentences(path, set(files), settings) for part, files in names.items()}


def _sentences(path: Path, names: set[str], settings: Text) -> Iterator[str]:
    """Yield the sentences of the files with these names, in the order of the archive, with natural spaces
    and normalised as the settings say."""
    try:
        with tarfile.open(path, "r|gz") as archive:
            for member in archive:
                if member.name.rpartition("/")[2] in names and (file := archive.extractfile(member)):
                    require_plausible(path, member.size)
                    # str.splitlines cuts at more than line ends; without it the data set would change.
                    for line in file.read().decode("utf-8").splitlines():
                        yield normalise(detokenise(line), settings)
    except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error) as error:
        raise InputError(f"{path}: not the archive of LM1B: {described(error)}") from None


@dataclass(frozen=True)
class OwnText(RowFile, TextSource):
    """A user's UTF-8 file, or a folder whose files are read in the order of their names.

    Attributes:
        form: "plain" or "fasta"; None if the name and content of each file decide.
        column: the column of texts, if the file is a table.
        part: the column with the user's own split, and whether to read the held-out rows or the others.
        sheet: the sheet of an Excel file.
    """

    form: str | None = None
    column: str | None = None
    part: tuple[str, bool] | None = None
    sheet: str | None = None

    def fetch(self) -> Path:
        if not self.path.exists():
            raise InputError(f"{self.path}: no such file or folder")
        if not self.path.is_dir():
            require_regular(self.path)
        return self.path

    def files(self, left_out: dict[str, str] | None = None) -> list[Path]:
        """List the file, or all files of the folder. Raises InputError if there is none. What else is in the
        folder is added to `left_out`."""
        return files(self.path, *FILES, left_out) if self.fetch().is_dir() else [self.path]

    def digest(self) -> str:
        content = hashlib.sha256()
        for path in self.files():
            content.update(bytes.fromhex(digest(path)))
        return content.hexdigest()

    def parts(self, settings: Text, rejected: list[Rejected]) -> Parts:
        contents = [*self.contents(rejected)]
        if settings.rows == "lines":
            return cut_parts(rows_of(contents), settings)
        texts = [content if isinstance(content, str) else join(content) for content in contents]
        ends = (text if text.endswith("\n") else f"{text}\n" for text in texts[:-1])
        return cut_parts("".join([*ends, texts[-1]]), settings)

    def with_split(self, column: str | None, held_out: Path | None) -> "OwnText":
        """Return the same text with the user's own split, if there is one: a column, or a second file or
        folder."""
        if column:
            other = replace(self, part=(column, True))
            return SplitText(self.path, self.form, self.column, (column, False), self.sheet, held_out=other)
        if held_out:
            other = replace(self, path=held_out)
            return SplitText(self.path, self.form, self.column, None, self.sheet, held_out=other)
        return self

    def contents(self, rejected: list[Rejected]) -> Iterator[Content]:
        """Yield the text of each file, or its records if it is FASTA or a table; what cannot be read is
        added to `rejected`. Raises InputError if nothing can be read."""
        if self.column is not None:
            records = read_column(self.path, self.column, self.sheet)
            if self.part:
                labels = (record.text for record in read_column(self.path, self.part[0], self.sheet))
                held_out = {*held_out_rows(labels, f"{self.path}: column {self.part[0]!r}")}
                records = [record for row, record in enumerate(records) if (row in held_out) == self.part[1]]
            reasons = [row.reason or _BINARY * ("\0" in row.text) for row in records]
            pairs = [*zip(records, reasons, strict=True)]
            rejected += (Rejected(f"row {row.number}", row.text, reason) for row, reason in pairs if reason)
            yield [record for record, reason in pairs if not reason]
            return
        forms = set[str]()
        left_out: dict[str, str] = {}
        for path in self.files(left_out):
            if reason := fault(path):
                rejected.append(Rejected(path.name, "", reason))
                continue
            content = read_bytes(path, MOST_BYTES)
            try:
                text = unify_line_ends(content.decode("utf-8-sig"))
            except UnicodeDecodeError as error:
                reason = f"not UTF-8 text (byte {error.start} is {content[error.start]:#04x})"
                rejected.append(Rejected(path.name, content.decode("utf-8", errors="replace"), reason))
                continue
            if not text.strip():
                rejected.append(Rejected(path.name, "", "empty"))
                continue
            if "\0" in text:
                before, _, after = text.partition("\0")
                place = f"{_BINARY} (line {before.count(chr(10)) + 1})"
                rejected.append(Rejected(path.name, after, place))
                continue
            forms.add(form := self.form or ("fasta" if is_fasta(path, text) else "plain"))
            if len(forms) > 1:
                raise InputError(
                    f"{self.path}: expected FASTA or other text in a folder, found both, the second in "
                    f"{path.name}; use two folders, or read all as plain text (`format: plain`, --as text)"
                )
            if form != "fasta":
                yield text
                continue
            records = read_fasta(path, text)
            broken = [record for record in records if record.reason]
            rejected += (Rejected(f"{path.name}, line {row.number}", row.text, row.reason) for row in broken)
            yield [record for record in records if not record.reason]
        rejected += [Rejected(name, "", reason) for name, reason in left_out.items()]
        if not forms:
            first = "" if self.path.is_file() else f"no text: {rejected[0].place}: "
            raise InputError(f"{self.path}: {first}{rejected[0].reason}")

    def status(self, offline: bool = False) -> Finding:
        try:
            self.files()
        except InputError as error:
            return Finding.attention(str(error), f"ls -l {self.path.parent}")
        return Finding.ok(str(self.path))


@dataclass(frozen=True)
class SplitText(OwnText):
    """A user's text whose part for validation is another text, `held_out`."""

    held_out: OwnText = field(kw_only=True)

    def digest(self) -> str:
        return hashlib.sha256(f"{super().digest()} {self.held_out.digest()}".encode()).hexdigest()

    def parts(self, settings: Text, rejected: list[Rejected]) -> Parts:
        unsplit = settings.model_copy(update={"validation_fraction": 0.0})
        whole = unsplit.model_copy(update={"judge_fraction": 0.0})
        validation = self.held_out.parts(whole, rejected)["train"]
        return {**super().parts(unsplit, rejected), "validation": validation}


def rows_of(contents: Iterable[Content]) -> list[str]:
    """Return the rows of some contents: the lines of texts, and the texts of records."""
    rows = list[str]()
    for content in contents:
        rows += split_lines(content) if isinstance(content, str) else (record.text for record in content)
    return rows


def join(records: Iterable[Record]) -> str:
    """Return the texts of records as running text."""
    return "\n".join(record.text for record in records)


_SHAKESPEARE = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"  # SHA-256 of its UTF-8
_FORMATS = {  # the functions `cut` and `tokens` of `PublishedText`
    "plain": (cut_plain, None),
    "package": (cut_embedded, None),
    "letters": (cut_text8, count_text8),
    # Word pieces of bert-base-uncased, [SEP] included: 30,301,028 and 306,688 sentences of about 29.
    "sentences": (cut_lm1b, lambda settings: (880_000_000, 8_900_000)),
}


def _known_source(name: str, known: KnownText) -> PublishedText:
    embedded = None if known.url else Path(__file__).with_name(known.file)
    file = RawFile((known.file,), known.url, sha256=known.sha256, embedded=embedded)
    return PublishedText(name, file, *_FORMATS[known.format])


DATA_SETS = {name: _known_source(name, known) for name, known in TEXTS.items()}
