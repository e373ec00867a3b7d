"""Molecules as publications on ZINC-250k and QM9 measure them, beside controls: docs/results.md.

    for n in 1 2 4 8 32; do
        pairflow sample --model zinc250k --nfe $n --raw --count 10000 --out field/calls_$n.smi
    done
    python benchmarks/field.py controls zinc250k --model pairflow/models/zinc250k --out field
    python benchmarks/field.py measure zinc250k field/*.smi --out benchmarks/records/field.json

Needs `pip install "pairflow[fcd]"` and the raw data set in PAIRFLOW_DATA_DIR. The controls need no network:
training molecules; with a carbon inserted; rows of the model's tokens of which each position is drawn by its
frequency among training molecules (`independent`); and rows of which each token is drawn by its frequency
there after the token before it (`chain`).
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pairing import commit, machine

from pairflow.errors import InputError
from pairflow.kinds.molecules.data.prepare import Vocabulary
from pairflow.kinds.molecules.data.survey import read_found
from pairflow.kinds.molecules.measures.plausible import add_carbon, draw_independent
from pairflow.kinds.molecules.measures.standard import Standard, read_published, spell

COUNT = 10_000
ENCODED = 50_000  # training molecules, at most, whose tokens are counted


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["controls", "measure"])
    parser.add_argument("standard", help="the published data set: zinc250k or qm9")
    parser.add_argument("files", nargs="*", type=Path, help="files of molecules to measure")
    parser.add_argument("--model", type=Path, help="folder of the model whose tokens the controls have")
    parser.add_argument("--out", type=Path, required=True, help="folder of the controls, or record (JSON)")
    options = parser.parse_args()
    if options.what == "controls":
        write_controls(options.standard, options.model, options.out)
    else:
        measure(options.standard, options.files, options.out)


def write_controls(name: str, model: Path, out: Path) -> None:
    """Write a file of molecules for each control."""
    generator = np.random.default_rng(0)
    train, _ = read_published(name)
    smiles = [train[row] for row in generator.permutation(len(train))]
    words = Vocabulary.load(model / "vocabulary.json")
    rows = np.array(
        [*encoded(words, smiles[:ENCODED], json.loads((model / "model.json").read_text())["length"])]
    )
    known = frozenset(train)
    controls = {
        "training": smiles[:COUNT],
        "one_carbon": [*add_carbon(smiles[:COUNT], known, generator)],
        "independent": [words.decode(row) for row in draw_independent(rows, COUNT, generator)],
        "chain": [words.decode(row) for row in draw_chain(rows, COUNT, generator)],
    }
    out.mkdir(parents=True, exist_ok=True)
    for control, texts in controls.items():
        (out / f"{control}.smi").write_text("".join(f"{text or '*invalid*'}\n" for text in texts))
        print(f"{control}: {len(texts):,} molecules")


def encoded(words: Vocabulary, smiles: list[str], length: int) -> Iterator[np.ndarray]:
    """Yield the token rows of the molecules that the vocabulary can write."""
    for text in smiles:
        with suppress(InputError):
            yield words.encode(text, length)


def draw_chain(rows: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """Draw `count` rows (B, N), whose pairs of neighbouring tokens are as frequent as in `rows` (M, N): each
    token is that of a random row with the same token before it."""
    drawn = np.empty((count, rows.shape[1]), rows.dtype)
    drawn[:, 0] = generator.choice(rows[:, 0], count)
    for position in range(1, rows.shape[1]):
        order = np.argsort(rows[:, position - 1], kind="stable")
        before = rows[order, position - 1]
        first, last = (np.searchsorted(before, drawn[:, position - 1], side) for side in ("left", "right"))
        drawn[:, position] = rows[order[generator.integers(first, last)], position]
    return drawn


def measure(name: str, files: list[Path], out: Path) -> None:
    """Measure each file, and write the values as a record."""
    standard = Standard.read(name, progress=True)
    record = {
        "standard": name,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": commit(),
        "machine": machine(),
    }
    values = {}
    for file in files:
        values[file.stem] = standard.measure(spell(read_found(file)), progress=True)._asdict()
        print(file.stem, values[file.stem], flush=True)
        out.write_text(json.dumps(record | {"values": values}, indent=1) + "\n")


if __name__ == "__main__":
    main()
