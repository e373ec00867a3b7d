"""What the page shows of text and of a user's own token rows: some rows and pairs."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pairflow.artifacts import read_table, token_array
from pairflow.config import Experiment
from pairflow.kinds.images.page.pictures import TIMES, draw_pairs
from pairflow.kinds.text.tokenisers import load_tokeniser
from pairflow.plan import paths

_PAIRS = 3  # of each coupling
SHOWN = 8  # rows of a method at a number of steps
_LONGEST = 400  # tokens of a row that are shown
_BREAKS = str.maketrans("\n\r\t", "↵↵⇥")
Rows = Mapping[str, Mapping[int, np.ndarray]]  # method -> NFE -> (B, N)


def read_rows(root: Path, _: Experiment, samples: Rows) -> dict[str, Any]:
    """The fields of `Contents` that only token rows have: samples, and training rows under `data`."""
    return {"rows": _spell_rows(root, samples, _numbers)}


def read_text(root: Path, experiment: Experiment, samples: Rows) -> dict[str, Any]:
    """The same for text, in words, the names of the symbols, and some pairs of each coupling."""
    tokeniser = load_tokeniser(paths.data(root, "vocabulary.json"))
    symbols = {token: _visible(tokeniser.name(token)) for token in range(tokeniser.size)}
    rows = _spell_rows(root, samples, lambda row: tokeniser.decode(row).translate(_BREAKS))
    names = experiment.couplings()
    pairs = {name: _spell_pairs(root, experiment.seeds[0], name, symbols) for name in names}
    return {"rows": rows, "symbols": symbols, "text_pairs": pairs}


def _spell_pairs(root: Path, seed: int, coupling: str, symbols: Mapping[int, str]) -> list[list[str]]:
    """Some pairs, each as lines `t = 1 <x1>` to `t = 0 <x0>` with the states between."""
    x1, states, x0 = draw_pairs(root, seed, coupling, _PAIRS)
    way = np.concatenate([x1[:, None], states, x0[:, None]], axis=1)  # (B, S + 2, N)
    return [
        [
            f"t = {time:<5.3g} {''.join(symbols[token] for token in row)}"
            for time, row in zip((1.0, *TIMES, 0.0), pair[:, :_LONGEST].tolist(), strict=True)
        ]
        for pair in way
    ]


def _spell_rows(root: Path, samples: Rows, spell: Callable[[np.ndarray], str]) -> dict[str, list[str]]:
    """`data` -> the first training rows, `udlm, NFE 4` -> its first rows, each as a line."""
    train = token_array(read_table(paths.data(root, "train.parquet"), "tokens")[0]["tokens"])
    named = {"data": train} | {
        f"{method}, NFE {nfe}": tokens
        for method, by_nfe in samples.items()
        for nfe, tokens in sorted(by_nfe.items())
    }
    return {name: [spell(row) for row in tokens[:SHOWN]] for name, tokens in named.items()}


def _numbers(row: np.ndarray) -> str:
    return " ".join(map(str, row[:_LONGEST])) + " …" * (len(row) > _LONGEST)


def _visible(symbol: str) -> str:
    """A symbol of text with a sign for each space and line break."""
    return symbol.replace(" ", "␣").translate(_BREAKS)
