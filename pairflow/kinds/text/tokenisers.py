"""Turns text into tokens (characters, or the word pieces of BERT), and tokens into text.

Only encoding word pieces needs another library, the optional package `tokenizers`.
"""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np

from pairflow.artifacts import read_object, token_dtype
from pairflow.config import Settings
from pairflow.data.download import RawFile, git_blob_id
from pairflow.errors import InputError
from pairflow.limits import MAX_VOCABULARY

END, PADDING = "<end>", "<pad>"  # the last two symbols of a tokeniser of lines
_BERT_ROLES = {"padding": "[PAD]", "mask": "[MASK]", "start": "[CLS]", "unknown": "[UNK]", "end": "[SEP]"}
BERT = RawFile(
    ("vocab.txt", "bert-base-uncased-vocab.txt"),
    "https://huggingface.co/google-bert/bert-base-uncased/resolve/main/vocab.txt",
    "fb140275c155a9c7c5a3b3e0e77a9e839594a938",
)
_PIECES = re.compile(r"[^\n]{1,9999}\n?|\n")  # a line, or a part of a long line, is encoded by itself
_BATCH = 1000  # pieces that `tokenizers` encodes in one call


def _role(name: str, text: str) -> Any:
    """Make a property of a tokeniser: the token of a special symbol, or None if the vocabulary has none."""
    return property(lambda tokeniser: tokeniser._roles.get(name), doc=text)


class Tokeniser(Settings, ABC):
    """Turns text into tokens and back; a token is the index of its symbol in the vocabulary `tokens`.

    With `lines` every row is one line of text: its tokens, an end symbol, then padding. Without, rows are
    packed: pieces of running text, of N tokens each.
    """

    kind: str
    lines: bool = False
    tokens: tuple[str, ...]

    margins: ClassVar[int] = 0  # special symbols at the two ends of a row

    @property
    def size(self) -> int:
        """The number K of symbols, special symbols included."""
        return len(self.tokens)

    @cached_property
    def _roles(self) -> dict[str, int]:
        """The token of each special symbol that the vocabulary has, by purpose, such as `padding`."""
        return {"end": self.size - 2, "padding": self.size - 1} if self.lines else {}

    def needed(self) -> set[str]:
        """Return symbols that the vocabulary must have."""
        return {END, PADDING} if self.lines else set()

    padding: ClassVar[int | None] = _role("padding", "The token that fills rows up.")
    end: ClassVar[int | None] = _role("end", "The token that ends the text of a row.")
    mask: ClassVar[int | None] = _role("mask", "The mask of the vocabulary.")
    start: ClassVar[int | None] = _role("start", "The first token of each row.")
    unknown: ClassVar[int | None] = _role("unknown", "The token of text that cannot be encoded.")

    @property
    def hash(self) -> str:
        """The SHA-256 (hex) of vocabulary.json, which must be the same for a model and its token files."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @abstractmethod
    def encode(self, text: str) -> np.ndarray:
        """Return the tokens (L,) of a text. Raises InputError for a symbol that is not in the vocabulary."""

    def encode_known(self, text: str) -> np.ndarray:
        """Return the tokens (L,) of a text. Raises InputError also for what `encode` turns into `unknown`."""
        tokens = self.encode(text)
        if self.unknown is not None and self.unknown in tokens:
            raise InputError("unknown symbol")
        return tokens

    @abstractmethod
    def spell(self, symbols: list[str]) -> str:
        """Join symbols, none of which is special, into a text."""

    def encode_all(self, texts: Iterable[str]) -> np.ndarray:
        """Return the tokens (L,) of all texts, joined."""
        parts = [self.encode(text) for text in texts]
        return np.concatenate(parts) if parts else np.empty(0, token_dtype(self.size))

    def frame(self, rows: np.ndarray) -> np.ndarray:
        """Add the special symbols at both ends of packed rows (M, N - margins); returns rows (M, N)."""
        return rows

    def line(self, tokens: np.ndarray, length: int) -> np.ndarray:
        """Make a row of N = `length` tokens from a line's tokens: these, the end symbol and padding.
        Raises InputError if there are too many."""
        room = length - 1
        if len(tokens) > room:
            raise InputError(f"too long ({len(tokens)} tokens, limit {room})")
        row = np.full(length, self.padding, token_dtype(self.size))
        row[: len(tokens)] = tokens
        row[len(tokens)] = self.end
        return row

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of a row of tokens up to the end symbol, if it has one, without padding and masks.
        Absorbing noise may use the number K as a mask."""
        tokens = ids.tolist() if hasattr(ids, "tolist") else [*map(int, ids)]
        if self.end in tokens:
            tokens = tokens[: tokens.index(self.end)]
        return self.spell([self._shown[token] for token in tokens if token in self._shown])

    @cached_property
    def _shown(self) -> dict[int, str]:
        """The symbols that texts show, by their tokens: all but padding and mask."""
        hidden = (self.padding, self.mask)
        return {token: symbol for token, symbol in enumerate(self.tokens) if token not in hidden}

    def to_json(self) -> str:
        """Return the content of vocabulary.json."""
        return json.dumps(self.model_dump(), ensure_ascii=False, separators=(",", ":"))


class Characters(Tokeniser):
    """A tokeniser in which each character is a symbol, in the order of Unicode. Decoding is exact."""

    kind: Literal["characters"] = "characters"

    @classmethod
    def from_texts(cls, texts: Iterable[str], lines: bool = False) -> "Characters":
        """Make a tokeniser of the characters in the texts, with symbols for end and padding if rows are
        `lines`. Raises InputError if there are too many characters."""
        symbols = sorted(set().union(*map(set, texts)))
        if len(symbols) > MAX_VOCABULARY - 2:
            raise InputError(
                f"the text has {len(symbols):,} distinct characters; expected at most {MAX_VOCABULARY - 2:,}"
            )
        return cls(tokens=(*symbols, END, PADDING) if lines else tuple(symbols), lines=lines)

    @cached_property
    def _tokens_by_code(self) -> np.ndarray:
        """An array with the token of each Unicode code point; K for a character that is no symbol."""
        points = [ord(symbol) for symbol in self.tokens if len(symbol) == 1]
        table = np.full(max(points, default=0) + 2, self.size, np.int32)
        table[points] = np.arange(len(points))
        return table

    def encode(self, text: str) -> np.ndarray:
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        tokens = self._tokens_by_code[np.minimum(points, len(self._tokens_by_code) - 1)]
        if len(unknown := np.flatnonzero(tokens == self.size)):
            raise InputError(f"unknown symbol {text[unknown[0]]!r}")
        return tokens.astype(token_dtype(self.size))

    def spell(self, symbols: list[str]) -> str:
        return "".join(symbols)


class WordPieces(Tokeniser):
    """The tokeniser of bert-base-uncased, whose symbols are pieces of words.

    Encoding makes text lower case and removes accents. Packed rows begin with [CLS] and end with [SEP], which
    also ends each text. Decoding puts one space between words, but none before `.`, `?`, `!` and `,`.
    """

    kind: Literal["bert"] = "bert"
    margins = 2

    @classmethod
    def read(cls, path: Path, lines: bool = False) -> "WordPieces":
        """Read the published vocab.txt from `path`. Raises InputError if the file has another git blob id."""
        if git_blob_id(path) != BERT.git_blob:
            raise InputError(
                f"{path}: not the vocab.txt of bert-base-uncased: expected git blob {BERT.git_blob}, "
                f"found {git_blob_id(path)}"
            )
        return cls(tokens=tuple(path.read_text(encoding="utf-8").splitlines()), lines=lines)

    def needed(self) -> set[str]:
        return {*_BERT_ROLES.values()}

    @cached_property
    def _roles(self) -> dict[str, int]:
        roles = {role: self._index[symbol] for role, symbol in _BERT_ROLES.items()}
        return roles if self.lines else {role: token for role, token in roles.items() if role != "end"}

    @cached_property
    def _index(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.tokens)}

    @cached_property
    def _encoder(self) -> Any:
        library = _library()
        tokenizer = library.Tokenizer(library.models.WordPiece(self._index, unk_token="[UNK]"))
        tokenizer.normalizer = library.normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
        return tokenizer

    def encode(self, text: str) -> np.ndarray:
        return self._encode_pieces(_PIECES.findall(text), [])

    def encode_all(self, texts: Iterable[str]) -> np.ndarray:
        return self._encode_pieces(texts, [self._index["[SEP]"]])

    def _encode_pieces(self, pieces: Iterable[str], tail: list[int]) -> np.ndarray:
        """Return the tokens of all pieces, joined, with the tokens `tail` after each piece."""
        dtype, iterator = token_dtype(self.size), iter(pieces)
        parts = [np.empty(0, dtype)]
        while batch := list(islice(iterator, _BATCH)):
            encoded = self._encoder.encode_batch(batch, add_special_tokens=False)
            parts.append(np.array([token for piece in encoded for token in (*piece.ids, *tail)], dtype))
        return np.concatenate(parts)

    def frame(self, rows: np.ndarray) -> np.ndarray:
        ends = self._index["[CLS]"], self._index["[SEP]"]
        return np.pad(rows, ((0, 0), (1, 1)), constant_values=((0, 0), ends))

    def line(self, tokens: np.ndarray, length: int) -> np.ndarray:
        first = np.array([self.start], tokens.dtype)
        return super().line(np.concatenate([first, tokens]), length)

    def spell(self, symbols: list[str]) -> str:
        text = " ".join(symbols).replace(" ##", "")
        for mark in (".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"):
            text = text.replace(f" {mark}", mark)
        return text.replace(" ' ", "'")


KINDS: dict[str, type[Tokeniser]] = {"characters": Characters, "bert": WordPieces}


def load_tokeniser(path: str | Path) -> Tokeniser:
    """Read a tokeniser from a vocabulary.json. Raises InputError if it is missing or has other content."""
    path = Path(path)
    try:
        content = read_object(path)
        tokeniser = KINDS[content["kind"]](**content)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a vocabulary") from None
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(f"{path}: expected a vocabulary of text ({', '.join(KINDS)})") from None
    if len(set(tokeniser.tokens)) != tokeniser.size:
        raise InputError(f"{path}: a vocabulary holds every symbol once; found a repeated one")
    if unknown := tokeniser.needed() - {*tokeniser.tokens}:
        raise InputError(
            f"{path}: a vocabulary of {tokeniser.kind} has the symbol {min(unknown)}; found none"
        )
    return tokeniser


def _library() -> ModuleType:
    try:
        import tokenizers
    except ImportError:
        raise InputError('bert needs tokenizers: pip install "pairflow[text]"') from None
    return tokenizers
