"""Pairing beside other libraries that compute Hamming distances or weighted sums of keys, in one run.

    python -m venv rivals && rivals/bin/pip install -e . -r benchmarks/rivals-requirements.txt
    rivals/bin/python benchmarks/rivals.py --out benchmarks/records/rivals.json     (about five minutes)
    rivals/bin/python benchmarks/rivals.py --quick                                  (a minute, small sizes)
    rivals/bin/python benchmarks/rivals.py --table benchmarks/records/rivals.json   (the record as tables)

Needs the raw data sets in PAIRFLOW_DATA_DIR. KeOps compiles a formula at its first use, which is not timed.

What is measured: query-key pairs per second. The queries are rows noised to t = 1/2, the keys all rows.

- Distances: of each query to all keys, or to the nearest where a library returns only that. Ours is the start
  of a query that is unlike the one before it: one counter per key, in bit planes.
- A whole step: the local consensus w_i of each query, which one step of Algorithm 1 needs. Ours is what
  `pairing.py` measures: steps around t = 1/2 of trajectories, with their jumps, whose distances follow from
  those of the step before.
- A row for a random source, by the law of semidiscrete transport at tau = 0.2: all keys are weighed, and one
  is drawn. The potentials are normal numbers with a deviation of 0.4 positions, in whole units of tau / 4.
  faiss cannot draw: it gives the likeliest row, by inner products with one more dimension for potentials.

Each contender is compared with the float64 reference before it is timed; drawn rows by their mean distance.
Contenders take turns, and ratios are taken within a turn. NumPy, SciPy and NumKong have no threads of their
own: with several threads, each gets some of the queries. Where the keys in a library's format exceed 1 GiB,
it gets as many as fit.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.special
import torch
from pairing import (
    HALF,
    Engine,
    OneHotKeys,
    by_broadcasting,
    commit,
    machine,
    noised,
    read_digits,
    read_molecules,
    sample,
    spread,
)

from pairflow import rng
from pairflow.flow.schedule import gamma
from pairflow.pairing import local_consensus, oracle
from pairflow.pairing.cpu import engine as cpu
from pairflow.pairing.cpu.posterior import Posterior
from pairflow.pairing.posterior import UNITS
from pairflow.runtime.threads import available_cpus

LIBRARIES = ("numkong", "faiss-cpu", "pykeops", "torch", "scipy", "numpy")
MEMORY = 1 << 30  # of the keys in a library's own format
MOST_QUERIES = 256  # at once, for the distances take M numbers each
CHECKED = 3  # queries that are compared with the reference
TOLERANCE = 1e-3  # of w_i in single precision, which adds up to 1

Rows = np.ndarray
Compute = Callable[[Rows], np.ndarray]  # queries (B, N) to distances (B, M) or (B,), w (B, N), or rows (B,)
TAU = 0.2  # of rows that are drawn


class Unsuitable(Exception):
    """A library cannot do this, and why."""


class Rival(NamedTuple):
    """A way to compute distances or w; `build(data, K)` prepares the keys."""

    name: str
    result: str  # "distances", "step" or "row"
    build: Callable[[Rows, int], Compute]
    bytes_per_key: Callable[[int, int], float]  # of N and K
    own_threads: bool
    batch: int = 2  # it gets at least so many queries, because products of matrices need many


def numkong_bytes(data: Rows, symbols: int) -> Compute:
    import numkong

    if symbols > 256:
        raise Unsuitable(f"it compares bytes, and K is {symbols:,}")
    return lambda z: np.asarray(numkong.cdist(z, data, metric="hamming", dtype="uint8"))


def numkong_bits(data: Rows, symbols: int) -> Compute:
    import numkong

    keys = numkong.hammings_pack(bits(data, symbols), dtype="uint1")
    halves = 1 if symbols == 2 else 2  # two bits differ where two symbols do
    return lambda z: np.asarray(numkong.hammings_packed(bits(z, symbols), keys)) // halves


def faiss_nearest(data: Rows, symbols: int) -> Compute:
    import faiss

    codes = bits(data, symbols)
    index = faiss.IndexBinaryFlat(8 * codes.shape[1])
    index.add(codes)
    halves = 1 if symbols == 2 else 2
    return lambda z: index.search(bits(z, symbols), 1)[0][:, 0] // halves


def scipy_distances(data: Rows, symbols: int) -> Compute:
    from scipy.spatial.distance import cdist

    keys = data.astype(np.float64)
    return lambda z: cdist(z.astype(np.float64), keys, "hamming") * data.shape[1]


def numpy_distances(data: Rows, symbols: int) -> Compute:
    return lambda z: np.stack([np.count_nonzero(data != state, axis=1) for state in z])


def keops_variables(z: Rows, keys: Rows) -> tuple:
    """KeOps' formulas of [z^i differs from d_m^i] and of its sum over i."""
    from pykeops.numpy import LazyTensor

    differs = (LazyTensor(z.astype(np.float32)[:, None]) - LazyTensor(keys[None])).sign().abs()
    return differs, differs.sum(-1)


def keops_nearest(data: Rows, symbols: int) -> Compute:
    keys = data.astype(np.float32)
    return lambda z: keops_variables(z, keys)[1].min(axis=1)[:, 0]


def keops_step(data: Rows, symbols: int) -> Compute:
    keys, log_gamma = data.astype(np.float32), np.float32(np.log(gamma(0.5, symbols)))

    def step(z: Rows) -> np.ndarray:
        differs, distance = keops_variables(z, keys)
        return (distance * -log_gamma).sumsoftmaxweight(1 - differs, axis=1)

    return step


def torch_attention(data: Rows, symbols: int) -> Compute:
    one_hot, scale = OneHotKeys(data, symbols, "cpu"), float(np.log(gamma(0.5, symbols)))
    keys = one_hot.rows[None, None]

    def step(z: Rows) -> np.ndarray:
        index = torch.as_tensor(z.astype(np.int64))
        attend = torch.nn.functional.scaled_dot_product_attention
        posterior = attend(one_hot.encode(index).float()[None, None], keys, keys, scale=scale)
        return posterior.view(*index.shape, symbols).gather(2, index[..., None])[..., 0].numpy()

    return step


def torch_one_hot(data: Rows, symbols: int) -> Compute:
    keys = OneHotKeys(data, symbols, "cpu")
    return lambda z: keys.consensus(z).numpy()


def torch_plain(data: Rows, symbols: int) -> Compute:
    """Algorithm 1 as it is written: compare, weigh, add up, one query at a time."""
    keys = torch.as_tensor(data.astype(np.uint8 if symbols <= 256 else np.int32))
    log_gamma = float(np.log(gamma(0.5, symbols)))

    def consensus(state: torch.Tensor) -> torch.Tensor:
        agree = keys == state  # (M, N)
        weight = torch.softmax(agree.sum(1) * log_gamma, dim=0)
        return weight @ agree.float()

    return lambda z: torch.stack([consensus(state) for state in torch.as_tensor(z).to(keys.dtype)]).numpy()


def numpy_step(data: Rows, symbols: int) -> Compute:
    return lambda z: by_broadcasting(z, data, symbols)


def buckets_of(data: Rows) -> np.ndarray:
    """Potentials (M,), in units of tau / 4 below the greatest."""
    potentials = np.round(np.random.default_rng(6).normal(0, 0.4, len(data)) * UNITS / TAU).astype(np.int64)
    return potentials.max() - potentials


def draw_rows(scores: torch.Tensor) -> np.ndarray:
    """A row (B,) for each row of scores (B, M): the greatest after adding noise by Gumbel's law."""
    return (scores - torch.empty_like(scores).exponential_().log_()).argmax(dim=1).numpy()


def torch_row(data: Rows, symbols: int) -> Compute:
    keys, offsets = OneHotKeys(data, symbols, "cpu"), torch.from_numpy(-buckets_of(data) / UNITS).float()

    def row(z: Rows) -> np.ndarray:
        states = keys.encode(torch.as_tensor(z.astype(np.int64))).float()
        return draw_rows(torch.addmm(offsets, states, keys.rows.T, alpha=1 / TAU))

    return row


def numkong_row(data: Rows, symbols: int) -> Compute:
    distances, offsets = numkong_bytes(data, symbols), torch.from_numpy(-buckets_of(data) / UNITS).float()
    return lambda z: draw_rows(offsets - torch.from_numpy(distances(z)).float() / TAU)


def faiss_row(data: Rows, symbols: int) -> Compute:
    import faiss

    keys = OneHotKeys(data, symbols, "cpu")
    offsets = torch.from_numpy(-buckets_of(data) / UNITS * TAU).float()[:, None]
    index = faiss.IndexFlatIP(data.shape[1] * symbols + 1)
    index.add(torch.cat([keys.rows, offsets], dim=1).numpy())

    def row(z: Rows) -> np.ndarray:
        states = keys.encode(torch.as_tensor(z.astype(np.int64))).float()
        return index.search(torch.nn.functional.pad(states, (0, 1), value=1.0).numpy(), 1)[1][:, 0]

    return row


def code_bytes(length: int, symbols: int) -> float:
    return length * (1 if symbols == 2 else symbols) / 8


RIVALS = (
    Rival("NumKong, bytes", "distances", numkong_bytes, lambda n, k: n, False),
    Rival("NumKong, packed bits", "distances", numkong_bits, code_bytes, False),
    Rival("faiss-cpu IndexBinaryFlat, nearest", "distances", faiss_nearest, code_bytes, True),
    Rival("SciPy cdist", "distances", scipy_distances, lambda n, k: 8 * n, False),
    Rival("NumPy", "distances", numpy_distances, lambda n, k: n, False),
    Rival("KeOps, nearest", "distances", keops_nearest, lambda n, k: 4 * n, True),
    Rival("KeOps", "step", keops_step, lambda n, k: 4 * n, True),
    Rival("torch SDPA, one-hot", "step", torch_attention, lambda n, k: 4 * n * k, True, 32),
    Rival("torch products, one-hot", "step", torch_one_hot, lambda n, k: 4 * n * k, True, 32),
    Rival("torch, Algorithm 1 as written", "step", torch_plain, lambda n, k: 4 * n, True),
    Rival("NumPy", "step", numpy_step, lambda n, k: n, False),
    Rival("torch products, one-hot", "row", torch_row, lambda n, k: 4 * n * k, True, 32),
    Rival("NumKong, bytes, and torch", "row", numkong_row, lambda n, k: n, False),
    Rival("faiss-cpu IndexFlatIP, likeliest", "row", faiss_row, lambda n, k: 8 * n * k, True, 32),
)


def bits(rows: Rows, symbols: int) -> Rows:
    """Rows as packed bits, (B, N / 8) for K = 2, else one-hot (B, N K / 8): distances are twice as large."""
    if symbols == 2:
        return np.packbits(rows, axis=1)
    alphabet, block = np.arange(symbols), max(1, (1 << 27) // (rows.shape[1] * symbols))
    blocks = (rows[start : start + block, :, None] == alphabet for start in range(0, len(rows), block))
    return np.concatenate([np.packbits(block.reshape(len(block), -1), axis=1) for block in blocks])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="at most 2,000 keys, one short turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="time of one measurement")
    parser.add_argument("--only", help="only the data whose name contains this")
    parser.add_argument("--out", type=Path, help="the JSON record")
    parser.add_argument("--table", type=Path, help="print this record, and measure nothing")
    options = parser.parse_args()
    if options.table:
        return print(tables(json.loads(options.table.read_text())))
    if options.quick:
        options.turns, options.seconds = 1, 0.02
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "libraries": {name: installed(name) for name in LIBRARIES},
        "configuration": {"quick": options.quick, "turns": options.turns, "seconds": options.seconds},
        "load_before": os.getloadavg()[0],
        "shapes": [],
    }
    for name, read in SHAPES.items():
        if not options.only or options.only in name:
            data, symbols = read()
            data = sample(data, min(len(data), 2000)) if options.quick else data
            record["shapes"].append({"name": name, **side_by_side(data, symbols, options)})
            if options.out:
                options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    record["load_after"] = os.getloadavg()[0]
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(tables(record))


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def read_cifar10() -> tuple[Rows, int]:
    """The 10,000 training images of the subset that PAIRFLOW_DATA_DIR has, (10000, 3072)."""
    with np.load(Path(os.environ["PAIRFLOW_DATA_DIR"], "cifar10_subset.npz")) as arrays:
        return arrays["x_train"].reshape(len(arrays["x_train"]), -1), 256


def text_like() -> tuple[Rows, int]:
    """Synthetic: 50,000 rows of 64 independent symbols of 4,096, the r-th most frequent 1/r as frequent."""
    chances = 1 / np.arange(1, 4097)
    rows = np.random.default_rng(5).choice(4096, (50_000, 64), p=chances / chances.sum())
    return rows.astype(np.uint16), 4096


SHAPES = {
    "QM9": partial(read_molecules, "qm9", 32),
    "ZINC-250k": partial(read_molecules, "zinc250k", 74),
    "MNIST-Binary": lambda: (read_digits(), 2),
    "CIFAR-10": read_cifar10,
    "text-like": text_like,
}


class Contender(NamedTuple):
    """Something to be timed: `measure(count, threads)` gives the seconds of `count` queries (and `steps`).

    It gets `least` to `most` queries.
    """

    name: str
    result: str
    keys: int
    measure: Callable[[int, int], float]
    least: int = 2
    most: int = MOST_QUERIES
    steps: int = 1


def side_by_side(data: Rows, symbols: int, options: argparse.Namespace) -> dict:
    """All contenders on these keys: pairs per second, and how much faster ours is within each turn."""
    queries = noised(data, MOST_QUERIES, symbols)
    sources = rng.uniform_tokens(7, np.arange(MOST_QUERIES), data.shape[1], symbols)
    contenders, left_out = [*ours(data, queries, symbols), our_rows(data, symbols)], {}
    for rival in RIVALS:
        try:
            contenders.append(checked(rival, data, sources if rival.result == "row" else queries, symbols))
        except ImportError:
            left_out[f"{rival.name} ({rival.result})"] = "not installed"
        except Unsuitable as reason:
            left_out[f"{rival.name} ({rival.result})"] = str(reason)
    threads = {
        number: in_turns(contenders, number, options.turns, options.seconds)
        for number in sorted({1, available_cpus()})
    }
    shape = {"keys": len(data), "length": data.shape[1], "symbols": symbols}
    return {**shape, "left_out": left_out, "threads": threads}


def ours(data: Rows, queries: Rows, symbols: int) -> Iterator[Contender]:
    """The engine's starts and its steps, after its pairs have been compared with the reference's."""
    engine, rows = Engine(data, symbols), np.arange(CHECKED)
    settings = {"vocabulary_size": symbols, "steps": 4, "seed": 0}
    fast = cpu.pair_rows(data, data[rows], rows, **settings)
    if not np.array_equal(fast, oracle.pair_rows(data, data[rows], rows, **settings)):
        raise AssertionError("the engine's pairs are not those of the reference")
    walkers = np.random.default_rng(2).permutation(len(data))

    def steps(count: int, threads: int) -> float:
        chosen = np.resize(walkers, count)
        return engine.seconds(chosen, threads, HALF[0]) - engine.seconds(chosen, threads, HALF[1] + 1)

    def starts(count: int, threads: int) -> float:
        return engine.start_seconds(np.resize(queries, (count, data.shape[1])), threads)

    yield Contender("pairflow", "distances", len(data), starts, most=10_000)
    yield Contender("pairflow", "step", len(data), steps, most=10_000, steps=HALF[1] - HALF[0] + 1)


def our_rows(data: Rows, symbols: int) -> Contender:
    """The engine's rows for random sources."""
    law = Posterior(data, buckets_of(data), symbols, TAU)
    sources = rng.uniform_tokens(7, np.arange(10_000), data.shape[1], symbols)

    def compute(z: Rows, threads: int = 1) -> np.ndarray:
        return law.draw(z, np.arange(len(z)), 1, threads=threads)[0][:, 0]

    require_law(compute(sources[:MOST_QUERIES]), sources[:MOST_QUERIES], data, "pairflow")

    def measure(count: int, threads: int) -> float:
        start = time.perf_counter()
        compute(sources[:count], threads)
        return time.perf_counter() - start

    return Contender("pairflow", "row", len(data), measure, most=len(sources))


def require_law(rows: np.ndarray, sources: Rows, data: Rows, name: str) -> None:
    """AssertionError unless rows (B,) are as far from their sources as the law says, within five errors."""
    offsets, deviations, variance = -buckets_of(data) / UNITS, [], 0.0
    for source, row in zip(sources, rows, strict=True):
        distances = np.count_nonzero(data != source, axis=1)
        shares = scipy.special.softmax(offsets - distances / TAU)
        mean = shares @ distances
        deviations.append(distances[row] - mean)
        variance += shares @ (distances - mean) ** 2
    if name.startswith("faiss"):  # the likeliest rows are nearer
        return
    if not abs(sum(deviations)) <= 5 * variance**0.5 + 1e-9:
        raise AssertionError(f"{name}: not the law of semidiscrete transport")


def checked(rival: Rival, data: Rows, queries: Rows, symbols: int) -> Contender:
    """The rival on as many keys as fit, after it gave the reference's distances or w for some queries."""
    data = data[: max(1, int(MEMORY / rival.bytes_per_key(data.shape[1], symbols)))]
    compute, some = rival.build(data, symbols), queries[:CHECKED]
    if rival.result == "row":
        require_law(compute(queries[:64]), queries[:64], data, rival.name)
        return Contender(rival.name, "row", len(data), partial(timed, rival, compute, queries), rival.batch)
    actual = compute(some)
    if rival.result == "step":
        expected, tolerance = local_consensus(some, data, 0.5, vocabulary_size=symbols), TOLERANCE
    else:
        expected, tolerance = np.stack([np.count_nonzero(data != z, axis=1) for z in some]), 1e-6
        expected = expected.min(axis=1) if actual.ndim == 1 else expected
    if actual.shape != expected.shape or not np.abs(actual - expected).max() <= tolerance:
        raise AssertionError(f"{rival.name}: not the {rival.result} of the reference")
    return Contender(
        rival.name, rival.result, len(data), partial(timed, rival, compute, queries), rival.batch
    )


def timed(rival: Rival, compute: Compute, queries: Rows, count: int, threads: int) -> float:
    """Seconds of `count` queries, which are divided among the threads if the rival has none of its own."""
    parts = [queries[:count]] if rival.own_threads else np.array_split(queries[:count], threads)
    with ThreadPoolExecutor(len(parts)) as pool:
        start = time.perf_counter()
        list(pool.map(compute, [part for part in parts if len(part)]))
        return time.perf_counter() - start


def in_turns(contenders: list[Contender], threads: int, turns: int, seconds: float) -> list[dict]:
    """Pairs per second of each contender, and ours over them, as median, least and greatest of the turns."""
    with limited(threads):
        counts = [queries_for(contender, threads, seconds) for contender in contenders]
        rates = np.array(
            [
                [
                    each.keys * each.steps * count / each.measure(count, threads)
                    for each, count in zip(contenders, counts, strict=True)
                ]
                for _ in range(turns)
            ]
        ).T
    own = {each.result: rate for each, rate in zip(contenders, rates, strict=True) if each.name == "pairflow"}
    return [
        {
            "name": each.name,
            "result": each.result,
            "keys": each.keys,
            "queries": count,
            "pairs_per_second": spread(rate),
            "pairflow_over_this": spread(own[each.result] / rate),
        }
        for each, count, rate in zip(contenders, counts, rates, strict=True)
    ]


def queries_for(contender: Contender, threads: int, seconds: float) -> int:
    """As many queries as take about `seconds`, within the contender's limits; finding out warms up."""
    count = contender.least
    for _ in range(2):
        start = time.perf_counter()
        contender.measure(count, threads)
        fitting = round(count * seconds / (time.perf_counter() - start))
        count = min(contender.most, max(contender.least, fitting))
    return count


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """All libraries use this number of threads."""
    import threadpoolctl

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    with threadpoolctl.threadpool_limits(threads):
        yield
    torch.set_num_threads(before)


def tables(record: dict) -> str:
    """The record in Markdown, a table for each data set."""
    lines = []
    for shape in record["shapes"]:
        size = f"{shape['keys']:,} keys, N = {shape['length']:,}, K = {shape['symbols']:,}"
        heads = [f"{number} thread{'s' * (int(number) > 1)}" for number in shape["threads"]]
        columns = [column for head in heads for column in (head, "pairflow / this")]
        lines += ["", f"**{shape['name']}** ({size})", "", f"| | result | {' | '.join(columns)} |"]
        lines += ["|" + "---|" * (2 + len(columns))]
        for entries in zip(*shape["threads"].values(), strict=True):
            cells = [entries[0]["name"] + few_keys(entries[0], shape), entries[0]["result"]]
            for entry in entries:
                ratio = (
                    "" if entry["name"] == "pairflow" else in_words(entry["pairflow_over_this"], ratio_text)
                )
                cells += [in_words(entry["pairs_per_second"], "{:.2g}".format), ratio]
            lines.append(f"| {' | '.join(cells)} |")
        lines += [f"| {name} | {reason} |{' |' * len(columns)}" for name, reason in shape["left_out"].items()]
    return "\n".join(lines)


def ratio_text(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2g}"


def few_keys(entry: dict, shape: dict) -> str:
    return "" if entry["keys"] == shape["keys"] else f" ({entry['keys']:,} keys)"


def in_words(value: dict, form: Callable[[float], str]) -> str:
    median, least, most = (form(value[name]) for name in ("median", "min", "max"))
    return f"{median} ({least} to {most})"


if __name__ == "__main__":
    main()
