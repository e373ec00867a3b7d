"""Sources of text: the embedded text, published ones, and a user's own file or folder."""

import hashlib
import lzma
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pairflow.artifacts import digest
from pairflow.config import DataSettings
from pairflow.data.download import RawFile
from pairflow.data.folders import files
from pairflow.data.source import DatasetSize, DataSource, quoted
from pairflow.data.status import Finding, described
from pairflow.data.unpack import require_plausible
from pairflow.errors import InputError
from pairflow.files import read_bytes, read_text, require_regular
from pairflow.kinds.text.prepare import Parts, PreparedText, Rejected, cut_parts, join, prepare
from pairflow.kinds.text.settings import FILES, Text
from pairflow.kinds.text.tokenisers import Tokeniser

MOST_BYTES = 2**32  # of a file of text, which is held in memory as a whole
BERT_SIZE, LETTERS = 30_522, 27  # K of bert-base-uncased, and of a to z with the space


class TextSource(DataSource):
    """One text, and a name for it."""

    @abstractmethod
    def fetch(self) -> Path:
        """A local path of the text, which is downloaded if need be."""

    @abstractmethod
    def parts(self, settings: Text, rejected: list[Rejected]) -> Parts:
        """The text in three parts; files that cannot be read are added to `rejected`."""

    def digest(self) -> str:
        """The hash of what is read."""
        return digest(self.fetch())

    def read(self, settings: Text, parent: Tokeniser | None = None) -> PreparedText:
        """Read, tokenise and split the text, by the tokeniser of a parent if there is one."""
        rejected: list[Rejected] = []
        parts = self.parts(settings, rejected)
        return prepare(parts, settings, rejected, parent)

    def measure(self, settings: DataSettings, progress: bool = True) -> DatasetSize:
        assert isinstance(settings, Text)
        prepared = self.read(settings)
        rows, held_out = len(prepared.train), len(prepared.validation)
        return DatasetSize(rows, held_out, prepared.tokeniser.size, settings.length)


@dataclass(frozen=True)
class EmbeddedText(TextSource):
    """A text that is part of the package, packed by xz, with the SHA-256 of its UTF-8 bytes."""

    name: str
    file: RawFile
    sha256: str

    def fetch(self) -> Path:
        return self.file.fetch()

    def parts(self, settings: Text, rejected: list[Rejected]) -> Parts:
        content = lzma.decompress(self.fetch().read_bytes())
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise InputError(f"{self.fetch()}: not the text of this package; install it again")
        return cut_parts(content.decode("utf-8"), settings)

    def status(self, offline: bool = False, torchvision: bool = True) -> Finding:
        return Finding.ok("part of pairflow")


@dataclass(frozen=True)
class PublishedText(TextSource):
    """A text that is downloaded, or read from the folder that PAIRFLOW_DATA_DIR names."""

    name: str
    file: RawFile

    def fetch(self) -> Path:
        return self.file.fetch()

    def parts(self, settings: Text, rejected: list[Rejected]) -> Parts:
        """The parts of a plain file in UTF-8; a file that is packed has a class of its own."""
        return cut_parts(read_text(self.fetch(), MOST_BYTES), settings)

    def status(self, offline: bool = False, torchvision: bool = True) -> Finding:
        return self.file.status(offline)


@dataclass(frozen=True)
class Text8(PublishedText):
    """text8: the first 10^8 letters and spaces of the English Wikipedia (M. Mahoney 2006)."""

    def parts(self, settings: Text, rejected: list[Rejected]) -> Parts:
        path = self.fetch()
        try:
            with zipfile.ZipFile(path) as archive:
                require_plausible(path, archive.getinfo("text8").file_size)
                text = archive.read("text8").decode("ascii")
        except (OSError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(f"{path}: not the archive of text8: {described(error)}") from None
        return cut_parts(text, settings)

    def measure(self, settings: DataSettings, progress: bool = True) -> DatasetSize:
        assert isinstance(settings, Text)
        held_out = round(settings.validation_fraction * 10**8)
        return expected_size(settings, 10**8 - held_out - round(settings.judge_fraction * 10**8), held_out)


def expected_size(settings: Text, tokens: int, held_out: int) -> DatasetSize:
    """About the size of packed rows of so many training and held-out tokens, of data that may not be here."""
    bert = settings.tokeniser == "bert"
    width = settings.length - 2 * bert
    symbols = settings.vocabulary_size or (BERT_SIZE if bert else LETTERS)
    return DatasetSize(tokens // (settings.stride or width), held_out // width, symbols).limited(settings)


@dataclass(frozen=True)
class OwnText(TextSource):
    """A user's own UTF-8 file, or a folder whose files are read in the order of their names."""

    path: Path

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.path.name

    def fetch(self) -> Path:
        if not self.path.exists():
            raise InputError(f"{self.path}: no such file or folder")
        if not self.path.is_dir():
            require_regular(self.path)
        return self.path

    def files(self) -> list[Path]:
        """The file, or those of the folder; InputError if there is none."""
        return files(self.path, *FILES) if self.fetch().is_dir() else [self.path]

    def digest(self) -> str:
        content = hashlib.sha256()
        for path in self.files():
            content.update(bytes.fromhex(digest(path)))
        return content.hexdigest()

    def parts(self, settings: Text, rejected: list[Rejected]) -> Parts:
        texts = list(self._texts(rejected))
        if not texts:
            place = "" if self.path.is_file() else f"no text: {rejected[0].place}: "
            raise InputError(f"{self.path}: {place}{rejected[0].reason}")
        return cut_parts("".join(join(texts)), settings)

    def _texts(self, rejected: list[Rejected]) -> Iterator[str]:
        for path in self.files():
            content = read_bytes(path, MOST_BYTES)
            try:
                text = content.decode("utf-8-sig")
                if not text.strip():
                    raise InputError("empty")
            except UnicodeDecodeError as error:
                reason = f"not UTF-8 text (byte {error.start} is {content[error.start]:#04x})"
                start = content.decode("utf-8", errors="replace")
                rejected.append(Rejected.piece(path.name, start, reason))
            except InputError as error:
                rejected.append(Rejected.piece(path.name, "", str(error)))
            else:
                yield text

    def status(self, offline: bool = False, torchvision: bool = True) -> Finding:
        try:
            files = self.files()
        except InputError as error:
            return Finding.attention(str(error), f"ls {quoted(self.path.parent)}")
        return Finding.ok(str(self.path) + f", {len(files):,} files" * (files != [self.path]))
