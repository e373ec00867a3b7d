"""Text to tokens and back: characters, subwords, and the word pieces of BERT.

Decoding needs no other library. Subwords and word pieces are encoded by the package `tokenizers`, an extra.
"""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from pairflow.artifacts import read_object, token_dtype
from pairflow.config import Settings
from pairflow.data.download import RawFile, git_blob_id
from pairflow.errors import InputError
from pairflow.limits import MAX_VOCABULARY

END, PADDING = "<end>", "<pad>"  # the last two symbols where rows are lines
BERT = RawFile(
    ("vocab.txt", "bert-base-uncased-vocab.txt"),
    "https://huggingface.co/google-bert/bert-base-uncased/resolve/main/vocab.txt",
    "fb140275c155a9c7c5a3b3e0e77a9e839594a938",
)
_PIECES = re.compile(r"[^\n]{1,9999}\n?|\n")  # what is encoded at once: a line, or a part of a long one
_BATCH = 1000  # pieces that `tokenizers` encodes in one call


def _role(name: str, text: str) -> Any:
    """A property of a tokeniser: a special symbol, None where the vocabulary has none for that."""
    return property(lambda tokeniser: tokeniser._roles.get(name), doc=text)


class Tokeniser(Settings, ABC):
    """The symbols of text; a token is the place of its symbol in `tokens`. With `lines` every row is one
    line: its tokens, an end symbol, then padding. Otherwise rows are pieces of running text."""

    kind: str
    lines: bool = False
    tokens: tuple[str, ...]

    margins: ClassVar[int] = 0  # symbols of a row that stand around its text

    @property
    def size(self) -> int:
        """K: the number of symbols, special ones included."""
        return len(self.tokens)

    @cached_property
    def _roles(self) -> dict[str, int]:
        """The special symbols by what they are for; only those that the vocabulary has."""
        return {"end": self.size - 2, "padding": self.size - 1} if self.lines else {}

    padding: ClassVar[Any] = _role("padding", "The symbol that fills rows up.")
    end: ClassVar[Any] = _role("end", "The symbol after which a row holds no more text.")
    mask: ClassVar[Any] = _role("mask", "The vocabulary's own mask.")
    start: ClassVar[Any] = _role("start", "The symbol that each row begins with.")
    unknown: ClassVar[Any] = _role("unknown", "The symbol of text that cannot be encoded.")

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the JSON, which must be the same for a model and its token files."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @abstractmethod
    def encode(self, text: str) -> np.ndarray:
        """The tokens (L,) of a text; InputError for a symbol that is not in the vocabulary."""

    def encode_known(self, text: str) -> np.ndarray:
        """`encode`; InputError also for a text of which a part is unknown."""
        tokens = self.encode(text)
        if self.unknown is not None and self.unknown in tokens:
            raise InputError("unknown symbol")
        return tokens

    @abstractmethod
    def spell(self, symbols: list[str]) -> str:
        """The text that symbols spell, none of them special."""

    def encode_all(self, texts: Iterable[str]) -> np.ndarray:
        """The tokens (L,) of texts, one after the other."""
        parts = [self.encode(text) for text in texts]
        return np.concatenate(parts) if parts else np.empty(0, token_dtype(self.size))

    def frame(self, rows: np.ndarray) -> np.ndarray:
        """Packed rows (M, N - margins) with the symbols that stand around them, (M, N)."""
        return rows

    def line(self, tokens: np.ndarray, length: int) -> np.ndarray:
        """One row (N,) of a line; InputError if it is too long."""
        room = length - 1
        if len(tokens) > room:
            raise InputError(f"too long ({len(tokens)} tokens, limit {room})")
        row = np.full(length, self.padding, token_dtype(self.size))
        row[: len(tokens)] = tokens
        row[len(tokens)] = self.end
        return row

    def decode(self, ids: Iterable[int]) -> str:
        """The text of a row, without padding and masks (also that which absorbing noise adds to the
        vocabulary); with `lines` it is cut at the first end symbol."""
        symbols = []
        for token in map(int, ids):
            if token == self.end:
                break
            if token not in (self.padding, self.mask) and token < self.size:
                symbols.append(self.tokens[token])
        return self.spell(symbols)

    def name(self, token: int) -> str:
        """How the report shows a single token."""
        return self.tokens[token]

    def to_json(self) -> str:
        """The content of vocabulary.json."""
        return json.dumps(self.model_dump(), ensure_ascii=False, separators=(",", ":"))


class Characters(Tokeniser):
    """Each character is a symbol, in the order of Unicode, so that decoding is exact."""

    kind: Literal["characters"] = "characters"

    @classmethod
    def from_texts(cls, texts: Iterable[str], lines: bool = False) -> "Characters":
        """The symbols are the characters that occur; InputError for too many."""
        symbols = sorted(set().union(*map(set, texts)))
        if len(symbols) > MAX_VOCABULARY - 2:
            raise InputError(
                f"the text has {len(symbols):,} distinct characters; expected at most "
                f"{MAX_VOCABULARY - 2:,}; use the tokeniser subwords"
            )
        return cls(tokens=(*symbols, END, PADDING) if lines else tuple(symbols), lines=lines)

    @cached_property
    def _places(self) -> np.ndarray:
        """Code point -> token; K for a character that is no symbol."""
        points = [ord(symbol) for symbol in self.tokens if len(symbol) == 1]
        table = np.full(max(points, default=0) + 2, self.size, np.int32)
        table[points] = np.arange(len(points))
        return table

    def encode(self, text: str) -> np.ndarray:
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        tokens = self._places[np.minimum(points, len(self._places) - 1)]
        if len(strange := np.flatnonzero(tokens == self.size)):
            raise InputError(f"unknown symbol {text[strange[0]]!r}")
        return tokens.astype(token_dtype(self.size))

    def spell(self, symbols: list[str]) -> str:
        return "".join(symbols)


class Subwords(Tokeniser):
    """Byte-level byte-pair encoding: symbols are sequences of bytes, of which single ones are all there.

    So every text can be encoded, and decoding is exact. Each line is encoded by itself. Bytes are written as
    the characters that GPT-2 gives them (a space as `Ġ`). `merges` are the pairs that encoding joins, in
    order.
    """

    kind: Literal["subwords"] = "subwords"
    merges: tuple[tuple[str, str], ...] = ()

    @classmethod
    def train(cls, texts: Iterable[str], size: int, lines: bool = False) -> "Subwords":
        """Learn `size` = K symbols from texts; InputError if they do not have as many pieces."""
        library, tokenizer = _library(), _byte_pairs()
        trainer = library.trainers.BpeTrainer(
            vocab_size=size - 2 * lines,
            initial_alphabet=sorted(library.pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        tokenizer.train_from_iterator((piece for text in texts for piece in _PIECES.findall(text)), trainer)
        model = json.loads(tokenizer.to_str())["model"]
        tokens = sorted(model["vocab"], key=model["vocab"].__getitem__) + [END, PADDING] * lines
        if len(tokens) != size:
            raise InputError(f"vocabulary_size: the text gives {len(tokens):,} at most; found {size:,}")
        return cls(tokens=tuple(tokens), lines=lines, merges=model["merges"])

    @cached_property
    def _encoder(self) -> Any:
        places = {token: place for place, token in enumerate(self.tokens)}
        return _byte_pairs(places, list(self.merges))

    def encode(self, text: str) -> np.ndarray:
        return _encode_pieces(self._encoder, _PIECES.findall(text), self.size)

    def spell(self, symbols: list[str]) -> str:
        content = bytes(_BYTES[character] for symbol in symbols for character in symbol)
        return content.decode("utf-8", errors="replace")

    def name(self, token: int) -> str:
        return self.tokens[token] if token >= self.size - 2 * self.lines else self.spell([self.tokens[token]])


class WordPieces(Tokeniser):
    """The word pieces of bert-base-uncased, whose normalisation (lower case, no accents) decoding keeps.

    Packed rows begin with [CLS] and end with [SEP], which also ends each text. Decoding puts one space
    between words and none before punctuation.
    """

    kind: Literal["bert"] = "bert"
    margins = 2

    @classmethod
    def read(cls, path: Path, lines: bool = False) -> "WordPieces":
        """The pieces in a published vocab.txt; InputError if it is another file, by its git blob id."""
        if git_blob_id(path) != BERT.git_blob:
            raise InputError(
                f"{path}: not the vocab.txt of bert-base-uncased: expected git blob {BERT.git_blob}, "
                f"found {git_blob_id(path)}"
            )
        return cls(tokens=tuple(path.read_text(encoding="utf-8").splitlines()), lines=lines)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {token: place for place, token in enumerate(self.tokens)}

    @cached_property
    def _roles(self) -> dict[str, int]:
        names = {"padding": "[PAD]", "mask": "[MASK]", "start": "[CLS]", "unknown": "[UNK]"}
        names |= {"end": "[SEP]"} if self.lines else {}
        return {role: self._places[symbol] for role, symbol in names.items()}

    @cached_property
    def _encoder(self) -> Any:
        library = _library()
        tokenizer = library.Tokenizer(library.models.WordPiece(self._places, unk_token="[UNK]"))
        tokenizer.normalizer = library.normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
        return tokenizer

    def encode(self, text: str) -> np.ndarray:
        return _encode_pieces(self._encoder, _PIECES.findall(text), self.size)

    def encode_all(self, texts: Iterable[str]) -> np.ndarray:
        return _encode_pieces(self._encoder, texts, self.size, end=self._places["[SEP]"])

    def frame(self, rows: np.ndarray) -> np.ndarray:
        first, last = self._places["[CLS]"], self._places["[SEP]"]
        return np.pad(rows, ((0, 0), (1, 1)), constant_values=((0, 0), (first, last)))

    def line(self, tokens: np.ndarray, length: int) -> np.ndarray:
        first = np.array([self._places["[CLS]"]], tokens.dtype)
        return super().line(np.concatenate([first, tokens]), length)

    def spell(self, symbols: list[str]) -> str:
        text = " ".join(symbols).replace(" ##", "")
        for mark in (".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"):
            text = text.replace(f" {mark}", mark)
        return text.replace(" ' ", "'")


KINDS: dict[str, type[Tokeniser]] = {"characters": Characters, "subwords": Subwords, "bert": WordPieces}


def load_tokeniser(path: str | Path) -> Tokeniser:
    """Read a vocabulary.json of text; InputError if the file is missing or has other content."""
    path = Path(path)
    try:
        content = read_object(path)
        tokeniser = KINDS[content["kind"]](**content)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a vocabulary") from None
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(f"{path}: not a vocabulary of text, which is one of {', '.join(KINDS)}") from None
    if len(set(tokeniser.tokens)) != tokeniser.size:
        raise InputError(f"{path}: a vocabulary holds every symbol once; found a repeated one")
    return tokeniser


def _encode_pieces(encoder: Any, pieces: Iterable[str], size: int, end: int | None = None) -> np.ndarray:
    """The tokens of pieces, one after the other, with `end` after each if it is given."""
    dtype, iterator = token_dtype(size), iter(pieces)
    tail = [] if end is None else [end]
    parts = [np.empty(0, dtype)]
    while batch := list(islice(iterator, _BATCH)):
        encoded = encoder.encode_batch(batch, add_special_tokens=False)
        parts.append(np.array([token for piece in encoded for token in (*piece.ids, *tail)], dtype))
    return np.concatenate(parts)


def _byte_pairs(*model: Any) -> Any:
    """The library's byte-pair encoding with these symbols and merges, or without any."""
    library = _library()
    tokenizer = library.Tokenizer(library.models.BPE(*model))
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def _library() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise InputError('subwords and bert need tokenizers: pip install "pairflow[text]"') from None
    return tokenizers


def _byte_characters() -> dict[str, int]:
    """Character -> byte, as GPT-2 writes bytes: printable ones stand for themselves, others follow 255."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + k): byte for k, byte in enumerate(others)}


_BYTES = _byte_characters()
