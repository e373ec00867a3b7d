"""How the cost of each job grows with the number of rows, from a raw file to a report.

    python benchmarks/growth.py WORK --rows 10000 100000 1000000 --unpaired 10000000 \\
        --out record.json --plot growth.svg

Three libraries are made up: molecules of fragments that are joined at random, rows of tokens in clusters,
and text whose words follow Zipf's law; `--kinds records` has the molecules in an SDF file. Each goes through
the workflow by `pairflow run`, with the same small training and the same number of samples. Their pairs are
found in subsets (`subsets: auto`). At the sizes --unpaired the method is udlm, which needs no pairs.

Snakemake measures the seconds and the memory of each job, its processes together. A slope is that of
log(cost) over log(rows) between the two largest sizes: 1 if ten times the rows cost ten times as much. What
is finished in the folder WORK is not made again.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from pairing import clusters, commit, machine

KEYS = 20_000  # most rows that are paired with one another
CORES = 2
SYMBOLS = 64
HEADS = ["C", "CC", "CO", "Cl", "F", "N#C", "CN(C)", "C1CC1", "CC(C)", "CC(=O)", "FC(F)(F)", "CS(=O)(=O)"]
LINKS = ["", "C", "O", "N", "C(=O)N", "NC(=O)", "CO", "OC", "S(=O)(=O)N", "CN", "C(C)", "CC"]
RINGS = ["c1ccc(cc1)", "c1cc(ccc1)", "C1CCN(CC1)", "N1CCC(CC1)", "c1ncc(cn1)", "N1CCN(CC1)", "C1CCC(CC1)"]
RINGS += ["c1csc(n1)", "c1coc(c1)", "c1cnn(c1)", "c1ccc(nc1)", "C1CN(C1)"]
TAILS = ["C", "CC", "O", "N", "F", "Cl", "C(=O)O", "C#N", "OC", "c1ccccc1", "C1CC1", "C(F)(F)F"]
PARTS = [HEADS, LINKS, RINGS, LINKS, RINGS, LINKS, LINKS, TAILS]  # 12^8 ways to join them
STRIDE = 2_654_435_761  # a prime, so that multiples of it are all different modulo 12^8
BATCH = 100_000  # molecules that are written at a time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path, help="an empty folder, or the one of an earlier run")
    parser.add_argument("--kinds", nargs="+", choices=LIBRARIES, default=list(KINDS))
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--unpaired", type=int, nargs="*", default=[], help="sizes without a pairing")
    parser.add_argument("--out", type=Path, help="the JSON record")
    parser.add_argument("--plot", type=Path, help="the chart (.svg)")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if not (options.work / "Snakefile").exists():
        subprocess.run([sys.executable, "-m", "pairflow", "init", str(options.work)], check=True)
    methods = dict.fromkeys(options.rows, "pairflow") | dict.fromkeys(options.unpaired, "udlm")
    costs = {
        kind: {rows: measured(options.work, kind, rows, method) for rows, method in sorted(methods.items())}
        for kind in options.kinds
    }
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "configuration": {"methods": methods, "keys": KEYS, "cores": CORES},
        "costs": costs,
        "slopes": {kind: slopes(by_rows) for kind, by_rows in costs.items()},
    }
    print(json.dumps(record, indent=1))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        draw(costs, options.plot)


def molecules(path: Path, rows: int) -> dict:
    """Different SMILES, one per line."""
    with path.with_suffix(".smi").open("w") as file:
        for first in range(0, rows, BATCH):
            numbers = np.arange(first, min(first + BATCH, rows)) * STRIDE % math.prod(map(len, PARTS))
            places = np.unravel_index(numbers, [*map(len, PARTS)])
            for row in zip(*places, strict=True):
                file.write("".join(part[i] for part, i in zip(PARTS, row, strict=True)) + "\n")
    return {"source": f"{path.name}.smi", "representation": "smiles", "length": 80}


def records(path: Path, rows: int) -> dict:
    """The same molecules as records of an SDF file, without coordinates."""
    from rdkit import Chem

    data, smiles = molecules(path, rows), path.with_suffix(".smi")
    with smiles.open() as lines, Chem.SDWriter(str(path.with_suffix(".sdf"))) as writer:
        for line in lines:
            writer.write(Chem.MolFromSmiles(line))
    smiles.unlink()
    return data | {"source": f"{path.name}.sdf"}


def tokens(path: Path, rows: int) -> dict:
    """Rows of 32 tokens of 64 symbols, in clusters."""
    np.save(path.with_suffix(".npy"), clusters(rows, 32, SYMBOLS))
    return {"source": "tokens", "file": f"{path.name}.npy", "vocabulary_size": SYMBOLS}


def text(path: Path, rows: int) -> dict:
    """Letters for that number of pieces of 32."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 10, 5_000)
    words = np.array(["".join(rng.choice(list("etaoinshrdlu"), length)) for length in lengths])
    with path.with_suffix(".txt").open("w") as file:
        for first in range(0, rows, BATCH):
            drawn = rng.zipf(1.3, 6 * min(BATCH, rows - first)) % len(words)
            file.write(" ".join(words[drawn])[: 33 * min(BATCH, rows - first)] + "\n")
    return {"source": f"{path.name}.txt", "tokeniser": "characters", "normalisation": "letters", "length": 32}


KINDS: dict[str, Callable[[Path, int], dict]] = {"molecules": molecules, "tokens": tokens, "text": text}
LIBRARIES = KINDS | {"records": records}


def measured(work: Path, kind: str, rows: int, method: str) -> dict:
    """The costs of an experiment, which is run if it is not finished."""
    name = f"{kind}_{rows}"
    root = work / "results" / name
    if not (root / "report.html").exists():
        data = LIBRARIES[kind](work / name, rows)
        describe(work / "experiments" / f"{name}.yaml", name, data, method)
        command = [sys.executable, "-m", "pairflow", "run", name, "--cores", str(CORES)]
        subprocess.run(command, cwd=work, env=os.environ, check=True)
    return {**times(root), "bytes": {"raw": size(work / name), **sizes_of(root)}}


def times(root: Path) -> dict[str, dict[str, float]]:
    """Seconds and MB of memory of each kind of job. Snakemake looks at the memory every few seconds, and the
    step knows the peak of its own process."""
    seconds: dict[str, float] = {}
    memory: dict[str, float] = {}
    for file in sorted((root / "benchmarks").rglob("*.tsv")):
        job, row = re.split("-(pairflow|udlm|main)", file.stem)[0], pd.read_csv(file, sep="\t").iloc[-1]
        seconds[job] = round(seconds.get(job, 0.0) + float(row.s), 2)
        memory[job] = max(memory.get(job, 0.0), float(row.max_rss))
    for job, pattern in RECORDS.items():
        for file in root.glob(f"{pattern}.provenance.json"):
            peak = json.loads(file.read_text())["peak_memory_mb"]
            memory[job] = max(memory.get(job, 0.0), peak)
    return {"seconds": seconds, "peak_memory_mb": {job: round(peak) for job, peak in memory.items()}}


RECORDS = {  # job -> where its steps record their peaks
    "preprocess": "data/train.parquet",
    "describe-molecules": "reference/molecules.parquet",
    "pair": "seed0/pairs/*",
    "diagnose": "seed0/metrics/*/coupling.parquet",
    "train": "seed0/models/*/*",
    "sample": "seed0/samples/*/*/*",
    "evaluate": "seed0/metrics/*/main/*",
    "report": "report.html",
}


def describe(path: Path, name: str, data: dict, method: str) -> None:
    """Write an experiment whose training and samples do not depend on the number of rows."""
    training = {"batch_size": 64, "iterations": 200, "learning_rate": 1e-3, "validate_every": 200}
    experiment = {
        "description": "Made-up rows",
        "scale": "reduced",
        "seeds": [0],
        "data": data,
        "network": {"name": "mlp", "width": 64},
        "pairing": {"subsets": "auto", "keys": KEYS},
        "training": training,
        "methods": [method],
        "evaluations": {"main": {"nfe": [4], "samples": 256, "trials": 2}},
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump({"experiments": {name: experiment}}, sort_keys=False))


def sizes_of(root: Path) -> dict[str, int]:
    """The bytes of each folder of results."""
    folders = [root / "data", root / "reference", *sorted((root / "seed0").iterdir())]
    return {folder.name: total for folder in folders if (total := size(folder))}


def size(path: Path) -> int:
    """The bytes of the files in a folder, or of the files whose name is `path` and a suffix."""
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}.*")
    return sum(file.stat().st_size for file in files if file.is_file())


def slopes(by_rows: dict[int, dict]) -> dict:
    """Of every cost between the two largest sizes at which it was measured."""
    made: dict[str, dict[str, float]] = {}
    for few, many in pairwise(by_rows):
        for measure, costs in by_rows[many].items():
            for name, cost in costs.items():
                if before := by_rows[few][measure].get(name):
                    slope = math.log(cost / before) / math.log(many / few)
                    made.setdefault(measure, {})[name] = round(slope, 2)
    return made


def draw(costs: dict[str, dict[int, dict]], path: Path) -> None:
    """Charts for each kind: seconds and memory of every job against rows, all logarithmic."""
    import matplotlib.pyplot as plt

    labels = {"seconds": "seconds", "peak_memory_mb": "MB of memory"}
    every = [*dict.fromkeys(job for by in costs.values() for each in by.values() for job in each["seconds"])]
    colours = {job: f"C{number}" for number, job in enumerate(every)}
    figure, axes = plt.subplots(2, len(costs), figsize=(4 * len(costs), 7), sharey="row", squeeze=False)
    for column, (kind, by_rows) in enumerate(costs.items()):
        for axis, (measure, label) in zip(axes[:, column], labels.items(), strict=True):
            axis.set(xscale="log", yscale="log", title=kind, xlabel="rows", ylabel=label)
            for job, colour in colours.items():
                points = [
                    (rows, each[measure][job]) for rows, each in by_rows.items() if job in each[measure]
                ]
                axis.plot(*zip(*points, strict=True) if points else ([], []), "o-", color=colour, label=job)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncol=5)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path)


if __name__ == "__main__":
    main()
