"""Whether noise by frequency gives better samples than uniform noise: docs/couplings.md.

    python benchmarks/noise.py digits qm9 --out benchmarks/records/noise.json
    python benchmarks/noise.py --table --out benchmarks/records/noise.json

For each data set it trains every method with both noises, three seeds each, and else with the same settings.
It works like `couplings.py`: in the folder it is called in, and what is finished is not made again. One
metric of each data set is tested: the differences between the two noises of a method, paired over the seeds,
by Student's t with Holm's correction over all methods and numbers of steps of a table.
"""

import argparse
import json
import shutil
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml
from couplings import EXPERIMENTS, Case, make, values
from pairing import commit, machine

from pairflow.config.file import read
from pairflow.report.stats import adjust, difference, estimate

NOISES = ("uniform", "frequencies")
SMALL = {"name": "mlp", "width": 256, "blocks": 2}


class Compared(NamedTuple):
    """A data set: what it changes in the shipped experiment, the methods, and the metrics."""

    shipped: str
    changes: dict[str, Any]
    methods: list[str]
    metrics: tuple[str, ...]
    tested: str
    lower: bool


def euler(samples: int, *nfe: int, trials: int = 3, **sampling: Any) -> dict[str, Any]:
    """An evaluation by Euler updates."""
    return {"main": {"nfe": [*nfe], "samples": samples, "trials": trials, "sampler": "euler", **sampling}}


CASES = {
    "digits": Compared(
        "digits",
        {"evaluations": euler(1000, 1, 2, 8)},
        ["udlm", "pairflow", "ot"],
        ("fd",),
        "fd (test)",
        True,
    ),
    "shakespeare": Compared(
        "shakespeare",
        {
            "data": {"training_rows": 20_000},
            "network": SMALL,
            "training": {"iterations": 1500, "validate_every": 500},
            "evaluations": euler(1024, 1, 2, 8),
        },
        ["udlm", "pairflow", "ot"],
        ("judge_ppl", "entropy"),
        "judge_ppl",
        True,
    ),
    "qm9": Compared(
        "qm9_small",
        {
            "data": {"training_rows": 20_000},
            "network": SMALL,
            "training": {"iterations": 2500},
            "evaluations": euler(1024, 1, 2, 8),
            "distillation": {},
        },
        ["udlm", "pairflow", "ot"],
        ("unique", "novel"),
        "unique",
        False,
    ),
    "zinc_groups": Compared(
        "zinc250k_groups",
        {
            "data": {"training_rows": 20_000},
            "chemistry": {"plausible": True, "fcd": True},
            "pairing": {"steps": 20, "pool": 1024},
            "training": {"iterations": 1000, "warmup_iterations": 100, "validate_every": 1000},
            "evaluations": euler(1024, 1, 2, 8, trials=1, greedy_tail=False, grammar=True),
        },
        ["udlm", "pairflow", "ot"],
        ("fcd", "plausible"),
        "fcd (train)",
        True,
    ),
    "zinc_selfies": Compared(
        "zinc250k_small",
        {
            "data": {"representation": "selfies", "training_rows": 20_000},
            "network": {"name": "transformer", "width": 128, "blocks": 4, "heads": 4},
            "chemistry": {"plausible": True, "fcd": True},
            "training": {"batch_size": 16, "iterations": 1500, "validate_every": 1500},
            "evaluations": euler(1024, 1, 2, 8, trials=1),
        },
        ["udlm", "pairflow"],
        ("fcd", "plausible"),
        "fcd (train)",
        True,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", help=", ".join(CASES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("noise.json"))
    parser.add_argument("--table", action="store_true", help="only print the tables of the record")
    options = parser.parse_args()
    record = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in () if options.table else options.data:
        record[name] = run(name, CASES[name], options.seeds)
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for name, found in record.items():
        print(table(name, found))


def run(name: str, compared: Compared, seeds: int) -> dict[str, Any]:
    """Run the experiments of a data set, one for each noise, and return what the record keeps of them."""
    shipped = read(Path("workflow_config.yaml")).experiments[compared.shipped]
    base = deepcopy(shipped.model_dump(mode="json", exclude_unset=True))
    for key, value in compared.changes.items():
        base[key] = {**base[key], **value} if key in ("data", "training") else value
    base |= {
        "seeds": [*range(seeds)],
        "description": f"Noises compared on {name}",
        "methods": compared.methods,
    }
    entries = {f"noise_{name}_{noise}": {**base, "noise": noise} for noise in NOISES}
    EXPERIMENTS.mkdir(exist_ok=True)
    (EXPERIMENTS / f"noise_{name}.yaml").write_text(yaml.safe_dump({"experiments": entries}))
    case = Case(compared.shipped, {}, seeds, compared.metrics, compared.tested, 0)
    first, parts = next(iter(entries)), []
    for noise, key in zip(NOISES, entries, strict=True):
        for part in ("data", "reference"):  # both noises have the same data
            if key != first and (copied := Path("results") / first / part).exists():
                shutil.copytree(copied, Path("results") / key / part, dirs_exist_ok=True)
        make(key, case)
        metrics = pd.read_parquet(f"results/{key}/metrics.parquet")
        parts.append(metrics.assign(coupling=metrics.method + ", " + noise))
    return {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "experiment": base,
        "values": values(pd.concat(parts), case),
    }


def table(name: str, found: dict[str, Any]) -> str:
    """Tables in Markdown, a metric each: mean ± deviation of the seeds; bold if ahead by test."""
    compared, texts = CASES[name], []
    for metric, rows in found["values"].items():
        steps = [*next(iter(rows.values()))]
        tests = compare(rows, steps) if metric == compared.tested else {}
        texts.append(f"| {name}, {metric} | {' | '.join(steps)} |\n" + "|---" * (len(steps) + 1) + "|")
        for label, by_nfe in rows.items():
            method, _, noise = label.partition(", ")
            sign = (1 if noise == "frequencies" else -1) * (-1 if compared.lower else 1)
            cells = []
            for nfe in steps:
                about = estimate(trained(by_nfe[nfe]))
                test = tests.get((method, nfe))
                mark = "**" if test and test.decided and sign * test.value > 0 else ""
                cells.append(f"{mark}{about.mean:.4g} ± {about.std:.2g}{mark}")
            texts.append(f"| {label} | {' | '.join(cells)} |")
        texts.append("")
    return "\n".join(texts)


def compare(rows: dict[str, Any], steps: list[str]) -> dict[tuple[str, str], Any]:
    """The tested difference of noise by frequency from uniform noise, for each method and NFE."""
    methods = dict.fromkeys(label.partition(", ")[0] for label in rows)
    keys = [(method, nfe) for method in methods for nfe in steps]
    tests = (
        difference(*(trained(rows[f"{method}, {noise}"][nfe]) for noise in reversed(NOISES)))
        for method, nfe in keys
    )
    return dict(zip(keys, adjust(tests), strict=True))


def trained(by_seed: dict[str, float]) -> dict[int, dict[int, float]]:
    """Seed -> trial -> value, as the statistics take it."""
    return {int(seed): {0: value} for seed, value in by_seed.items()}


if __name__ == "__main__":
    main()
