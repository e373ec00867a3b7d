"""How far sources lie from their rows, over how far independent ones do, for many K, N, M and T.

    python benchmarks/coupling.py --out benchmarks/records/coupling.json --plot docs/figures/coupling.svg

Pairs rows of Tiny Shakespeare (27 symbols, and byte pairs), random rows by Zipf's law, up to a million with
the K and N of LM1B, and QM9, MNIST-Binary and CIFAR-10 where PAIRFLOW_DATA_DIR has them. `ratio` is the mean
Hamming distance over N (K - 1) / K: at 1 the pairs are those of independent sources. It stands beside
`expected`. It takes about ten minutes of two cores, and 4 GB.
"""

import argparse
import json
import lzma
import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import matplotlib
import matplotlib.figure
import numpy as np
from pairing import commit, machine, read_digits, read_images, read_molecules
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from pairflow.kinds.text.data_sets import DATA_SETS as TEXTS
from pairflow.kinds.text.prepare import normalise
from pairflow.kinds.text.settings import Text
from pairflow.kinds.text.tokenisers import Characters
from pairflow.metrics.coupling import diagnose, symbol_frequencies
from pairflow.pairing.pair import Pairer, compile_for

LENGTHS, ROWS, STEPS = (8, 16, 32, 64, 128), (1_000, 10_000, 100_000), (20, 100)
BYTE_PAIRS, WORDS = (256, 1024, 8192, 21_527), (256, 1024, 8192, 65_536)  # K; the text has 21,527 at most
LM1B = 30_522, (16, 32, 64, 128), 1_000_000  # K, N, M; the protocol has 3,500,000 rows
WALKS = 100_000  # tokens of the rows that walk, at most 3,000 rows: the standard error is about 0.001

Draw = Callable[[int, int], np.ndarray]
"""(M, N) to rows in a random order."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toy", action="store_true", help="seconds, at sizes that measure nothing")
    parser.add_argument("--out", type=Path, help="the JSON record")
    parser.add_argument("--plot", type=Path, help="a figure (.svg)")
    options = parser.parse_args()
    results = []
    for name, size, draw, lengths, rows in cases(options.toy):
        for length in lengths:
            for count in rows:
                found = measure(name, size, draw(count, length), STEPS[:1] if options.toy else STEPS)
                print(*map(json.dumps, found), sep="\n", flush=True)
                results += found
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "load_after": os.getloadavg()[0],
    }
    if options.out:
        lines = ",\n  ".join(map(json.dumps, results))  # a result on each line
        head = json.dumps(record, indent=1).removesuffix("\n}")
        options.out.write_text(f'{head},\n "results": [\n  {lines}\n ]\n}}\n', encoding="utf-8")
    if options.plot:
        plot(results, options.plot)


def cases(toy: bool) -> Iterator[tuple[str, int, Draw, Sequence[int], Sequence[int]]]:
    """Name, K, rows, all N and all M of each kind of data."""
    lengths, rows = (LENGTHS[:2], (200,)) if toy else (LENGTHS, ROWS)
    text = lzma.decompress(TEXTS["shakespeare"].fetch().read_bytes()).decode()
    settings = Text(source="shakespeare", tokeniser="characters", normalisation="letters", length=LENGTHS[0])
    letters = normalise(text, settings)
    yield "text", 27, partial(pieces, Characters.from_texts([letters]).encode(letters)), lengths, rows
    for size in () if toy else BYTE_PAIRS:
        yield "text", size, partial(pieces, byte_pairs(text, size)), lengths, rows
    for size in WORDS[: 1 if toy else None]:
        yield "zipf", size, partial(zipf, size), lengths, rows
    if toy:
        return
    size, lengths, count = LM1B
    yield "zipf", size, partial(zipf, size), lengths, (*rows, count)
    others = ("qm9", *read_molecules("qm9", 32)), ("mnist", read_digits(), 2), ("cifar10", read_images(), 256)
    for name, data, size in others:
        if data is not None:
            found = [count for count in rows if count <= len(data)]
            yield name, size, partial(some, data), data.shape[1:], found


def byte_pairs(text: str, size: int) -> np.ndarray:
    """Tokens of a text, by `size` symbols of a byte-pair encoding that is learnt from it."""
    tokenizer, pieces = Tokenizer(models.BPE()), pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer, alphabet = pieces, sorted(pieces.alphabet())
    lines = text.splitlines(keepends=True)
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    return np.array([token for line in tokenizer.encode_batch(lines) for token in line.ids], np.uint16)


def pieces(tokens: np.ndarray, count: int, length: int) -> np.ndarray:
    """Pieces of running text that begin at equal distances."""
    starts = np.linspace(0, len(tokens) - length, count).astype(int)
    return some(np.lib.stride_tricks.sliding_window_view(tokens, length)[starts], count, length)


def zipf(size: int, count: int, length: int) -> np.ndarray:
    """Random tokens of which the j-th most frequent has a share of about 1 / (j log K)."""
    generator = np.random.default_rng(0)
    rows = np.empty((count, length), dtype=np.uint16)
    for first in range(0, count, 100_000):
        part = rows[first : first + 100_000]
        part[:] = size ** generator.random(part.shape) - 1
    return rows


def some(data: np.ndarray, count: int, _length: int) -> np.ndarray:
    """`count` rows of the data in random order."""
    return data[np.random.default_rng(0).permutation(len(data))[:count]]


def measure(name: str, size: int, rows: np.ndarray, steps: Sequence[int]) -> list[dict]:
    """The ratio for each T: of some of the rows, which walk among all of them."""
    count, length = rows.shape
    walks = min(count, 3000, max(100, WALKS // length))
    frequencies = symbol_frequencies(rows[:100_000], size)
    compile_for(rows, vocabulary_size=size, backend="cpu")
    results = []
    for number in steps:
        rule = {"vocabulary_size": size, "steps": number, "subsets": 1, "seed": 0}
        started = time.process_time()
        sources = Pairer(rows, **rule, backend="cpu", threads=None, progress=False).sources((0, walks))
        seconds = time.process_time() - started
        facts = diagnose(sources, rows[:walks], size)
        results.append(
            {
                "data": name,
                "K": size,
                "N": length,
                "M": count,
                "T": number,
                "walks": walks,
                "ratio": round(facts["hamming_mean"] / facts["hamming_independent"], 4),
                "error": round(facts["hamming_std"] / facts["hamming_independent"] / walks**0.5, 4),
                "expected": round(expected(frequencies, length, count, number), 4),
                "cpu_seconds": round(seconds, 2),
            }
        )
    return results


def expected(frequencies: np.ndarray, length: int, count: int, steps: int) -> float:
    """The ratio for M rows of N independent tokens with these frequencies p, as N grows.

    A state at time t is a row seen through a K-ary symmetric channel, which tells N I(t) nats of it. While
    that is more than log M, only the row's own weight counts: w = 1 where its symbol is left. From then on
    all rows count, and w_i is the posterior of the symbol at i. See docs/results.md, "Large vocabularies".
    """
    size = len(frequencies)
    p = frequencies[frequencies > 0]
    stays = np.ones(len(p))  # probability that a position with this symbol in the data has it in the state
    for t in np.arange(steps, 0, -1) / steps:
        same, other = (1 + (size - 1) * t) / size, (1 - t) / size  # of the channel, for one symbol
        seen = t * p + other
        absent = (size - len(p)) * xlogx(other)
        information = size * xlogx(other) - xlogx(other) + xlogx(same) - xlogx(seen).sum() - absent
        own = length * information > np.log(count)
        rate = (size - 1) / (steps * size * same)
        comes_back = 0.0 if own else 1 / (size * steps)
        stays += (1 - stays) * comes_back - stays * rate * (1.0 if own else p * same / seen)
    return float((1 - p @ stays) / (1 - 1 / size))


def xlogx(x: float | np.ndarray) -> np.ndarray:
    """x log x, 0 at 0."""
    return x * np.log(np.maximum(x, 1e-300))


def plot(results: list[dict], path: Path) -> None:
    """The ratio over K, N and M: text in solid lines, Zipf's law in dashed ones; T = 20."""
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "pairflow", "font.size": 9})
    figure = matplotlib.figure.Figure(figsize=(10, 3.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    most = max(result["M"] for result in results if result["data"] == "text")
    drawn = [result for result in results if result["T"] == STEPS[0]]
    views = (("K", "N", {"M": most}), ("N", "K", {"M": most}), ("M", "K", {"N": 16}))
    for panel, (x, line, fixed) in zip(panels, views, strict=True):
        lines: dict[tuple, list[dict]] = {}
        for result in sorted(drawn, key=lambda result: (result["data"], result[line], result[x])):
            if result["data"] in ("text", "zipf") and fixed.items() <= result.items():
                lines.setdefault((result["data"], result[line]), []).append(result)
        values = sorted({value for _, value in lines})
        for (name, value), points in lines.items():
            colour, style = f"C{values.index(value)}", "-o" if name == "text" else "--s"
            label = f"{line} = {value:,}" if name == "text" or ("text", value) not in lines else None
            xs, ys = [point[x] for point in points], [point["ratio"] for point in points]
            panel.plot(xs, ys, style, color=colour, label=label, markersize=4)
        title = ", ".join(f"{key} = {value:,}" for key, value in fixed.items())
        panel.set(xlabel=x, xscale="log", title=f"{title}, T = {STEPS[0]}")
        panel.axhline(1, color="0.6", linewidth=0.8)
        panel.legend(fontsize=7)
    panels[0].set_ylabel("distance / independent")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
