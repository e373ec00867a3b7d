"""How fast pairing is: our engines, NumPy broadcasting and a one-hot matrix product in torch, in one run.

    python benchmarks/pairing.py --out benchmarks/records/pairing.json      (ten minutes and more)
    python benchmarks/pairing.py --quick                                    (half a minute, small sizes)

Needs the raw data sets in PAIRFLOW_DATA_DIR. Writes a JSON record and, beside it, a plot (.svg).

What is measured: query-key pairs per second and step. The baselines compute the local consensus w_i of
queries noised to t = 1/2, a few queries against all keys: one step, without the jumps. The engine is measured
on the steps around t = 1/2 of trajectories with T = 20 (t = 0.6 to 0.4, jumps included): the time of the
trajectories down to t = 0.4 less that of the same down to t = 0.65. The GPU engine is measured over all 20
steps, if CuPy and a GPU are present. Contenders take turns, and ratios are taken within a turn.

The arithmetic floor is the time for one AND, one POPCNT and one ADD of 512 bits for every 512 comparisons of
a query's symbol with a key's, M N T / 512 per query, at the rate that one thread reaches on data in its
first-level cache. An engine that counted every comparison could not be faster; ours may skip some.
"""

import argparse
import gzip
import io
import json
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import llvmlite.binding
import numba
import numpy as np
import torch

from pairflow.artifacts.provenance import checkout
from pairflow.flow.schedule import gamma
from pairflow.pairing import rule
from pairflow.pairing.cpu import block, keys
from pairflow.pairing.cpu import engine as cpu
from pairflow.pairing.cpu.trajectory import pair_queries
from pairflow.pairing.cpu.workspace import workspace
from pairflow.pairing.gpu import engine as gpu
from pairflow.runtime.threads import available_cpus

STEPS = 20
HALF = (8, 12)  # the first and the last of the steps around t = 1/2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, one turn")
    parser.add_argument("--out", type=Path, help="the JSON record; the plot goes beside it")
    parser.add_argument("--only-runs", action="store_true", help="only the whole pairings")
    parser.add_argument("--beside", type=Path, help="another checkout, which pairs in turns with this one")
    options = parser.parse_args()
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "configuration": {"quick": options.quick, "steps": STEPS, "load_before": os.getloadavg()[0]},
    }
    turns = 1 if options.quick else 3
    qm9, qm9_symbols = read_molecules("qm9", 32)
    sizes = [1000, 10_000] if options.quick else [1000, 10_000, 30_000, len(qm9)]
    record["floor_blocks_per_second"] = floor_rate()
    if not options.only_runs:
        record["at_half"] = [side_by_side(sample(qm9, size), qm9_symbols, turns) for size in sizes]
        record["growth"] = growth(qm9, qm9_symbols, options.quick)
    record["runs"] = runs(qm9, qm9_symbols, options.quick, options.beside)
    record["load_after"] = os.getloadavg()[0]
    show(record)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        if not options.only_runs:
            plot(record, options.out.with_suffix(".svg"))


def commit(folder: Path = Path(__file__).parent) -> str | None:
    """The commit of a checkout, by default of this one."""
    return checkout(folder)


def machine() -> dict:
    """The machine and the libraries that the figures depend on."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return {
        "processor": model or platform.processor(),
        "llvm_target": numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name(),
        "threads": available_cpus(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "torch": torch.__version__,
    }


def read_molecules(name: str, length: int) -> tuple[np.ndarray, int]:
    """The training rows of a source, and K."""
    from pairflow.kinds.molecules.data import library
    from pairflow.kinds.molecules.data import prepare as molecules
    from pairflow.kinds.molecules.data.data_sets import DATA_SETS  # needs RDKit, unlike the rest
    from pairflow.kinds.molecules.settings import Molecules

    source = DATA_SETS[name]
    rows = library.read_rows(source.fetch())
    split = source.validation_rows()
    prepared = molecules.prepare(rows, Molecules(source="qm9", length=length), split)
    return prepared.train, prepared.vocabulary.size


def read_digits() -> np.ndarray | None:
    """Binary MNIST, (60000, 784), if the data folder has it."""
    path = Path(os.environ.get("PAIRFLOW_DATA_DIR", "")) / "mnist" / "train-images-idx3-ubyte.gz"
    if not path.is_file():
        return None
    with gzip.open(path) as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16)
    return (pixels >= 128).astype(np.uint8).reshape(-1, 784)


def read_images() -> np.ndarray | None:
    """10,000 training images of CIFAR-10, (10000, 3072), if the data folder has them."""
    path = Path(os.environ.get("PAIRFLOW_DATA_DIR", "")) / "cifar10_subset.npz"
    return np.load(path)["x_train"].transpose(0, 3, 1, 2).reshape(-1, 3072) if path.is_file() else None


def read_text() -> tuple[np.ndarray, int]:
    """A million overlapping pieces of 32 letters of the embedded text, and K."""
    from pairflow.kinds.text.data_sets import DATA_SETS
    from pairflow.kinds.text.settings import Text

    shares = {"validation_fraction": 0.02, "judge_fraction": 0.02}
    cut = {"tokeniser": "characters", "normalisation": "letters", "length": 32, "stride": 1}
    prepared = DATA_SETS["shakespeare"].read(Text(source="shakespeare", **cut, **shares))
    return prepared.train[:1_000_000], prepared.tokeniser.size


def sample(data: np.ndarray, size: int) -> np.ndarray:
    """`size` random rows, the same every time."""
    return data[np.sort(np.random.default_rng(0).choice(len(data), size, replace=False))]


def noised(data: np.ndarray, count: int, symbols: int) -> np.ndarray:
    """Queries at t = 1/2: rows of which every position is uniform noise with probability 1/2."""
    rng = np.random.default_rng(1)
    rows = data[rng.choice(len(data), count)]
    return np.where(rng.random(rows.shape) < 0.5, rows, rng.integers(0, symbols, rows.shape)).astype(
        data.dtype
    )


def by_broadcasting(z: np.ndarray, data: np.ndarray, symbols: int) -> np.ndarray:
    """w_i by NumPy, one query at a time, which keeps its (M, N) comparisons closest to the cache."""
    ratio = gamma(0.5, symbols)
    consensus = np.empty(z.shape)
    for query, state in enumerate(z):
        agree = data == state  # (M, N)
        distance = np.count_nonzero(~agree, axis=1)
        weight = ratio ** -(distance - distance.min()).astype(np.float32)
        consensus[query] = weight @ agree.astype(np.float32) / weight.sum()
    return consensus


class OneHotKeys:
    """Keys as one-hot rows (M, N K) in torch: w_i of a batch of queries by two matrix products.

    `precision` is "float32", "TF32", "bfloat16" (sums in float32), or "int8": distances in integers, and
    weights times keys in bfloat16. Products of integers want a multiple of 8 keys.
    """

    def __init__(self, data: np.ndarray, symbols: int, device: str, precision: str = "float32"):
        self.symbols, self.precision = symbols, precision
        kind = {"bfloat16": torch.bfloat16, "int8": torch.bfloat16}.get(precision, torch.float32)
        self.rows = self.encode(torch.as_tensor(data.astype(np.int64), device=device)).to(kind)
        self.counted = self.rows.to(torch.int8) if precision == "int8" else self.rows

    def consensus(self, z: np.ndarray) -> torch.Tensor:
        """w_i (B, N) of queries z (B, N) at t = 1/2."""
        torch.set_float32_matmul_precision("high" if self.precision == "TF32" else "highest")
        index = torch.as_tensor(z.astype(np.int64), device=self.rows.device)
        states = self.encode(index).to(self.counted.dtype)  # (B, N K)
        multiply = torch._int_mm if self.precision == "int8" else product
        agree = multiply(states, self.counted.T).float()  # (B, M)
        weight = torch.softmax(agree * float(np.log(gamma(0.5, self.symbols))), dim=1)
        sums = product(weight.to(self.rows.dtype), self.rows)  # (B, N K)
        return sums.view(*index.shape, self.symbols).gather(2, index[..., None])[..., 0]

    def encode(self, index: torch.Tensor) -> torch.Tensor:
        """Symbols (B, N) as one-hot rows (B, N K) of bytes."""
        columns = index + torch.arange(index.shape[1], device=index.device) * self.symbols
        size = len(index), index.shape[1] * self.symbols
        return torch.zeros(size, dtype=torch.uint8, device=index.device).scatter_(1, columns, 1)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a b in float32, whatever the precision of the factors."""
    if a.dtype == torch.float32:
        return a @ b
    return torch.mm(a, b, out_dtype=torch.float32) if a.is_cuda else a.float() @ b.float()


def seconds_of(work) -> float:
    """Wall time of one call; CUDA is waited for."""
    start = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


class Engine:
    """The CPU engine on fixed keys, for the time of any range of steps."""

    def __init__(self, data: np.ndarray, symbols: int):
        self.data, self.symbols = data, symbols
        self.keys = keys.prepare(data, symbols)
        self.rates = rule.step_rates(STEPS, symbols)
        self.tables = rule.level_tables(STEPS, data.shape[1], symbols)

    def seconds(self, queries: np.ndarray, threads: int, first_step: int) -> float:
        """Time to walk from the data (t = 1) to the end of step `first_step` (of 1..T)."""
        chosen = slice(first_step - 1, None)
        return self._walk(self.data[queries], queries, self.rates[chosen], self.tables[chosen], threads)

    def start_seconds(self, states: np.ndarray, threads: int) -> float:
        """Time to find the distances of all keys to these states: at a rate of 0 nothing else happens."""
        return self._walk(states, np.arange(len(states)), np.zeros(1), self.tables[-1:], threads)

    def _walk(self, states, numbers, rates, tables, threads):
        work = [workspace(self.keys) for _ in range(threads)]

        def walk_all(thread):
            own, margin = slice(thread, None, threads), rule.margin(len(self.data))
            rows = np.ascontiguousarray(states[own]), numbers[own].astype(np.uint64)
            pair_queries(self.keys, *rows, rates, tables, margin, np.uint64(0), self.symbols, work[thread])

        with ThreadPoolExecutor(threads) as pool:
            return seconds_of(lambda: list(pool.map(walk_all, range(threads))))


def side_by_side(data: np.ndarray, symbols: int, turns: int) -> dict:
    """All contenders around t = 1/2 on these keys: pairs per second and step, and ratios within each turn."""
    engine, all_threads = Engine(data, symbols), available_cpus()
    rng = np.random.default_rng(2)
    walkers = rng.choice(len(data), min(len(data), 4000))
    few, many = (noised(data, count, symbols) for count in (8, 64))
    work = {
        f"pairflow, {count} thread{'s' * (count > 1)}": (
            lambda count=count: (
                engine.seconds(walkers, count, HALF[0]) - engine.seconds(walkers, count, HALF[1] + 1)
            ),
            len(walkers) * (HALF[1] - HALF[0] + 1),
        )
        for count in sorted({1, all_threads})
    }
    if gpu.missing() is None:
        work["pairflow, GPU"] = (lambda: gpu_seconds(data, symbols, walkers), len(walkers) * STEPS)
    work["NumPy broadcasting"] = (lambda: seconds_of(lambda: by_broadcasting(few, data, symbols)), len(few))
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        torch.set_num_threads(all_threads)
        one_hot = OneHotKeys(data, symbols, device)
        work[f"torch one-hot, {device}"] = (
            lambda one_hot=one_hot: seconds_of(lambda: one_hot.consensus(many)),
            len(many),
        )
    rates = {name: [] for name in work}
    for turn in range(turns + 1):
        for name, (measure, query_steps) in work.items():
            seconds = measure()
            if turn > 0:  # the first turn warms up
                rates[name].append(query_steps * len(data) / seconds)
    ratios = {
        f"{ours} / {other}": spread(np.divide(rates[ours], rates[other]))
        for ours in rates
        for other in rates
        if ours.startswith("pairflow") and not other.startswith("pairflow")
    }
    return {
        "keys": len(data),
        "length": data.shape[1],
        "symbols": symbols,
        "pairs_per_second_and_step": {name: spread(values) for name, values in rates.items()},
        "ratios": ratios,
    }


def gpu_seconds(data: np.ndarray, symbols: int, rows: np.ndarray) -> float:
    """Time of whole trajectories on the GPU, with transfers: single steps cannot be timed from outside."""
    settings = {"vocabulary_size": symbols, "steps": STEPS, "seed": 0}
    layout = gpu.KernelLayout.choose(data.shape[1], symbols)
    return seconds_of(lambda: gpu.GpuPairer(gpu.Cuda(), layout).pair_rows(data, data[rows], rows, **settings))


def spread(values) -> dict:
    """Median, least and greatest."""
    return {"median": float(np.median(values)), "min": float(np.min(values)), "max": float(np.max(values))}


def floor_rate() -> float:
    """Blocks of 512 bits that one thread can AND, POPCNT and ADD in a second, on 16 KiB of data."""

    @numba.njit
    def count(rows, masks, repeats):
        n0 = n1 = n2 = n3 = block.fill(np.uint64(0))
        for _ in range(repeats):
            for place in range(0, len(rows), 4):
                n0 = block.plus(n0, block.popcount(block.load(rows, place) & block.load(masks, place)))
                n1 = block.plus(
                    n1, block.popcount(block.load(rows, place + 1) & block.load(masks, place + 1))
                )
                n2 = block.plus(
                    n2, block.popcount(block.load(rows, place + 2) & block.load(masks, place + 2))
                )
                n3 = block.plus(
                    n3, block.popcount(block.load(rows, place + 3) & block.load(masks, place + 3))
                )
        return block.total(n0), block.total(n1), block.total(n2), block.total(n3)

    rows, masks, repeats = block.zero_blocks(128), block.zero_blocks(128), 200_000
    count(rows, masks, 1)
    return max(128 * repeats / seconds_of(lambda: count(rows, masks, repeats)) for _ in range(3))


def pair_seconds(data: np.ndarray, symbols: int, queries: np.ndarray, steps: int = STEPS) -> float:
    """Wall time to pair some queries among all rows of `data` with all threads, index and all."""
    settings = {"vocabulary_size": symbols, "steps": steps, "seed": 0, "threads": None}
    return seconds_of(lambda: cpu.pair_rows(data, data[queries], queries, **settings))


def growth(qm9: np.ndarray, qm9_symbols: int, quick: bool) -> dict:
    """Microseconds per query as M, N, K, T and P grow: M, T and P on QM9, N and K on clusters."""
    count = 200 if quick else 2000
    top = 10_000 if quick else len(qm9)

    def cost(data, symbols, steps=STEPS):
        queries = np.arange(0, len(data), max(1, len(data) // count))
        return min(pair_seconds(data, symbols, queries, steps) for _ in range(2)) / len(queries) * 1e6

    sizes = [size for size in (1000, 3000, 10_000, 30_000, 100_000) if size <= top]
    rows = 2000 if quick else 20_000
    return {
        "M": {size: cost(sample(qm9, size), qm9_symbols) for size in sizes},
        "N": {length: cost(clusters(rows, length, 32), 32) for length in (16, 32, 64, 128, 256)},
        "K": {symbols: cost(clusters(rows, 32, symbols), symbols) for symbols in (2, 8, 32, 128, 512, 4096)},
        "T": {steps: cost(sample(qm9, top // 4), qm9_symbols, steps) for steps in (5, 10, 20, 40, 80)},
        "P": {parts: cost(sample(qm9, top // parts), qm9_symbols) for parts in (1, 2, 4, 8)},
    }


def clusters(rows: int, length: int, symbols: int) -> np.ndarray:
    """Synthetic rows: 50 random centres, of which every position is redrawn with probability 1/4."""
    rng = np.random.default_rng(3)
    data = rng.integers(0, symbols, (50, length))[rng.integers(0, 50, rows)]
    redrawn = rng.random(data.shape) < 0.25
    return np.where(redrawn, rng.integers(0, symbols, data.shape), data).astype(
        np.min_scalar_type(symbols - 1)
    )


def runs(qm9: np.ndarray, qm9_symbols: int, quick: bool, beside: Path | None) -> dict:
    """Whole pairings with all threads, in full; `beside` is another checkout that does the same in turns."""
    if quick:
        return {"QM9, 5,000 rows": whole_run(sample(qm9, 5000), qm9_symbols, STEPS, 1, beside)}
    results = {"QM9": whole_run(qm9, qm9_symbols, STEPS, 3, beside)}
    lack = gpu.missing()
    results["QM9, GPU"] = {"not measured": f"the GPU engine {lack}"} if lack else gpu_run(qm9, qm9_symbols)
    results["ZINC-250k"] = whole_run(*read_molecules("zinc250k", 74), 64, 1, beside)
    digits, images = read_digits(), read_images()
    if digits is not None:
        results["MNIST-Binary"] = whole_run(digits, 2, STEPS, 1, beside)
    if images is not None:
        results["CIFAR-10, 10,000 rows"] = whole_run(images, 256, STEPS, 1, beside)
    results["Shakespeare, 1,000,000 rows"] = whole_run(*read_text(), STEPS, 1, None, part=20_000)
    return results


def whole_run(
    data: np.ndarray, symbols: int, steps: int, turns: int, beside: Path | None, part: int = 0
) -> dict:
    """A pairing in full, in processes of their own: wall time, peak memory, and a hash of the sources.

    If only a `part` of the rows is paired, among all, the time of all is estimated from it.
    """
    code = (
        "import hashlib, io, json, re, sys, time; import numpy as np, pairflow\n"
        "data = np.load(io.BytesIO(sys.stdin.buffer.read()))\n"
        f"settings = dict(vocabulary_size={symbols}, steps={steps}, backend='cpu', progress=False)\n"
        "pairflow.pair(data[:3], **settings); start = time.perf_counter()\n"  # compiles
        f"sources = pairflow.pair(data, rows=(0, {part or len(data)}), **settings)\n"
        f"seconds = (time.perf_counter() - start) * {len(data) / (part or len(data))}\n"
        "status = open('/proc/self/status').read()\n"  # getrusage would count what the parent had
        "memory = int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) / 2**10\n"
        "print(json.dumps([seconds, memory, hashlib.sha256(sources.tobytes()).hexdigest()]))"
    )
    rows = io.BytesIO()
    np.save(rows, data)
    folders = [Path(__file__).parent.parent] + [beside] * (beside is not None)
    found: dict[Path, list] = {folder: [] for folder in folders}
    for _ in range(turns):
        for folder in folders:
            run = subprocess.run(
                [sys.executable, "-c", code],
                input=rows.getvalue(),
                capture_output=True,
                check=True,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(folder)},
            )
            found[folder].append(json.loads(run.stdout))
    seconds, memory, hashes = zip(*found[folders[0]], strict=True)
    result = {"rows": len(data), "length": data.shape[1], "symbols": symbols, "steps": steps}
    result |= {"seconds": spread(seconds), "peak_memory_mb": max(memory), "sources": hashes[0]}
    result |= {"estimated_from_rows": part} if part else {}
    if beside is not None:
        other, other_memory, others = zip(*found[beside], strict=True)
        result["beside"] = {
            "commit": commit(beside),
            "seconds": spread(other),
            "peak_memory_mb": max(other_memory),
            "ratio": spread(np.divide(other, seconds)),
            "same_bytes": set(others) == set(hashes),
        }
    return result


def gpu_run(data: np.ndarray, symbols: int) -> dict:
    """A pairing on the GPU in full, warmed up."""
    rows = np.arange(len(data))
    seconds = [gpu_seconds(data, symbols, rows) for _ in range(4)][1:]
    shape = {"rows": len(data), "length": data.shape[1], "symbols": symbols, "steps": STEPS}
    return shape | {"seconds": spread(seconds)}


def share_of_floor(run: dict, record: dict) -> float:
    """The share of the arithmetic floor that a run reached."""
    comparisons = run["rows"] ** 2 * run["length"] * run["steps"]
    floor = comparisons / block.BITS / record["floor_blocks_per_second"] / record["machine"]["threads"]
    return floor / run["seconds"]["median"]


def show(record: dict) -> None:
    """The record as text."""
    print(json.dumps(record["machine"]))
    for result in record.get("at_half", []):
        print(f"\nt = 1/2, M = {result['keys']}, N = {result['length']}, K = {result['symbols']}")
        for name, rate in result["pairs_per_second_and_step"].items():
            print(f"  {name:24} {rate['median']:.3g} pairs/s  ({rate['min']:.3g} to {rate['max']:.3g})")
        for name, ratio in result["ratios"].items():
            print(f"  {name:46} {ratio['median']:.0f}x  ({ratio['min']:.0f} to {ratio['max']:.0f})")
    print()
    for name, costs in record.get("growth", {}).items():
        print(
            f"{name}: " + ", ".join(f"{size}: {cost:.0f} us" for size, cost in costs.items()) + " per query"
        )
    print()
    for name, run in record["runs"].items():
        if "not measured" in run:
            print(f"{name}: not measured: {run['not measured']}")
            continue
        seconds = run["seconds"]
        print(
            f"{name}: {seconds['median']:.1f} s ({seconds['min']:.1f} to {seconds['max']:.1f})"
            f"{', estimated' if 'estimated_from_rows' in run else ''}"
            f", {share_of_floor(run, record):.0%} of the floor"
        )
        if "beside" in run:
            ratio, same = run["beside"]["ratio"], run["beside"]["same_bytes"]
            print(
                f"  {ratio['median']:.2f}x ({ratio['min']:.2f} to {ratio['max']:.2f}) as fast as "
                f"{run['beside']['commit']}, {'the same' if same else 'OTHER'} bytes"
            )


def plot(record: dict, path: Path) -> None:
    """Rates over the number of keys, and the growth of the engine's cost."""
    import matplotlib.figure  # which a machine with a GPU may lack

    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "pairflow", "font.size": 9})
    figure = matplotlib.figure.Figure(figsize=(10, 6), layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    sizes = [result["keys"] for result in record["at_half"]]
    for name in record["at_half"][-1]["pairs_per_second_and_step"]:
        rates = [result["pairs_per_second_and_step"][name] for result in record["at_half"]]
        middle, low, high = ([rate[key] for rate in rates] for key in ("median", "min", "max"))
        line = panels[0].plot(sizes, middle, marker="o", label=name)[0]
        panels[0].fill_between(sizes, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    panels[0].set(xlabel="keys M", ylabel="pairs per second and step, t = 1/2", xscale="log", yscale="log")
    panels[0].legend(fontsize=7)
    names = {"M": "keys M", "N": "positions N", "K": "symbols K", "T": "steps T", "P": "subsets P"}
    for panel, (name, costs) in zip(panels[1:], record["growth"].items(), strict=True):
        panel.plot(list(costs), list(costs.values()), marker="o")
        panel.set(xlabel=names[name], ylabel="µs per query", xscale="log", yscale="log")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
