"""Which coupling of noise and data gives the best samples after the same training: docs/couplings.md.

    python benchmarks/couplings.py demo digits --out benchmarks/records/couplings.json
    python benchmarks/couplings.py --table --out benchmarks/records/couplings.json

For each data set it writes experiments of one shipped experiment, which differ in their coupling only, and
adds their metrics to the record. It makes them in the folder it is called in, with the workflow's jobs and
commands, but all in one process and on one thread, because most take a second and a process ten. A command
that was stopped can be given again: what is finished is not made again.

Every model of tokens is sampled by ancestral and by Euler updates, with the same calls of the network. One
metric of each data set is tested: the differences from `pairflow`, paired over the seeds, by Student's t
with Holm's correction over all couplings and numbers of steps of a table. Distilled models are not tested:
they have had more training.
"""

import argparse
import json
import shutil
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import mnist8
import numpy as np
import pandas as pd
import pyarrow as pa
import torch
import yaml
from pairing import commit, machine
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import pairflow
from pairflow.api.local import run_job
from pairflow.artifacts import read_table, token_array, write_table
from pairflow.config.file import read
from pairflow.flow.couple import minibatch_ot
from pairflow.pairing import rule
from pairflow.pairing.bound import least_distance
from pairflow.plan.jobs import jobs
from pairflow.report.stats import adjust, difference, estimate

BASELINE = "pairflow"
EXPERIMENTS = Path("experiments")  # of the user: files that git does not track
BATCHES = 20  # in which the distance of transport in a batch is measured
POOL = "ot, pool of 8 batches"
FEW = (POOL, "sdot, tau 0.1")  # variants that are compared by both updates


class Case(NamedTuple):
    """A data set: what it changes in the shipped experiment, and which metrics are recorded and tested.

    pool: rows of an assignment of `ot` in its variant. lower: whether lower values are better. points:
    whether the flow is continuous. prepare: makes the data in a folder, in place of the workflow.
    methods: in place of METHODS. few: in place of all VARIANTS and of kept pairs.
    """

    shipped: str
    changes: dict[str, Any]
    seeds: int
    metrics: tuple[str, ...]
    tested: str
    pool: int
    lower: bool = False
    points: bool = False
    prepare: Callable[[Path], None] | None = None
    methods: tuple[str, ...] = ()
    few: tuple[str, ...] | None = None


def by_both_updates(samples: int, *nfe: int, **sampling: Any) -> dict[str, Any]:
    """Two evaluations that differ in the update of their sampler only."""
    main = {"nfe": [*nfe], "samples": samples, "trials": 3, **sampling}
    return {"main": main, "euler": {**main, "sampler": "euler"}}


# Evaluation -> what a table says of it; points have one evaluation, by Euler's method.
UPDATES = {"main": "ancestral updates", "euler": "Euler updates"}
SMALL = {
    "network": {"name": "mlp", "width": 256, "blocks": 2},
    "evaluations": by_both_updates(1024, 1, 2, 4, 32),
}
MOLECULES = ("unique", "valid", "novel")
DIGITS = ("fd", "nn_copies")
CASES = {
    "demo": Case(
        "demo",
        {"evaluations": by_both_updates(1024, 1, 2, 4, 32), "distillation": {}},
        5,
        MOLECULES,
        "unique",
        2048,
        few=FEW,
    ),
    "digits": Case(
        "digits",
        {"evaluations": by_both_updates(1000, 1, 2, 4, 8, 32)},
        5,
        DIGITS,
        "fd (test)",
        1024,
        lower=True,
        few=FEW,
    ),
    "mnist8": Case(  # 60,000 images, with the network, the batches and the classifier of digits
        "digits",
        {
            "training": {"iterations": 2000, "validate_every": 500},
            "evaluations": by_both_updates(1000, 1, 2, 4, 8, 32),
            "distillation": {},
        },
        3,
        DIGITS,
        "fd (test)",
        1024,
        lower=True,
        prepare=mnist8.main,
        few=(POOL,),
    ),
    "qm9": Case(
        "qm9_small",
        {**SMALL, "data": {"training_rows": 20_000}, "training": {"iterations": 2500}, "distillation": {}},
        3,
        MOLECULES,
        "unique",
        2048,
        few=FEW,
    ),
    "zinc": Case(
        "zinc250k_small",
        {
            "data": {"representation": "selfies"},
            "network": {"name": "transformer", "width": 128, "blocks": 4, "heads": 4},
            "training": {"batch_size": 16, "iterations": 5000, "validate_every": 5000},
            "evaluations": by_both_updates(1024, 1, 2, 4, 8, 32, trials=1, temperature=0.7),
            "chemistry": {"plausible": True},
        },
        3,
        ("plausible", "unique", "novel"),
        "plausible",
        512,
        methods=("udlm", "pairflow", "sdot"),
        few=(),
    ),
    "shakespeare": Case(
        "shakespeare",
        {**SMALL, "data": {"training_rows": 20_000}, "training": {"iterations": 1500, "validate_every": 500}},
        3,
        ("judge_ppl", "entropy"),
        "judge_ppl",
        2048,
        lower=True,
        few=("sdot, tau 0.1",),
    ),
    "two_moons": Case(
        "two_moons_d2",
        {"evaluations": {"main": {"nfe": [1, 2, 4, 8], "samples": 2500, "trials": 3}}},
        5,
        ("chamfer", "w2"),
        "w2 (train)",
        1024,
        lower=True,
        points=True,
    ),
}
# Label -> the method, and what it changes in `pairing`; a `pool` of None is that of the data set.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    POOL: ("ot", {"pool": None}),
    "sdot, tau 0.1": ("sdot", {"tau": 0.1}),
    "sdot, tau 0.4": ("sdot", {"tau": 0.4}),
}
PREPARED = ("preprocess", "reference")  # what `prepare` of a case does
RELEASED = {
    "tau05": 0.5,
    "tau2": 2.0,
}  # temperatures of Algorithm 1, which the authors' code has as an option
METHODS = ["udlm", "random", "pairflow", "ot", "sdot"]
DISTILLED = ["pairflow+dcd", "pairflow+redi", "sdot+dcd", "sdot+redi"]
POINT_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "sdot, tau 0.05": ("sdot", {"tau": 0.05}),
    "sdot, tau 1": ("sdot", {"tau": 1.0}),
}
ASSIGNED = "one assignment of all points, kept"
POINT_METHODS = ["condot", "ot", "pairflow", "sdot"]
KEPT = {"pairs-sdot": "sdot, pairs kept"}
KEPT |= {f"pairs-{label}": f"pairflow, tau {tau:g}" for label, tau in RELEASED.items()}
_ALL = (*METHODS, *POINT_METHODS, *VARIANTS, *POINT_VARIANTS, *KEPT.values(), ASSIGNED, *DISTILLED)
ORDER = {label: place for place, label in enumerate(dict.fromkeys(_ALL))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", help=", ".join(CASES))
    parser.add_argument("--seeds", type=int, help="of each data set, in place of its own number")
    parser.add_argument("--out", type=Path, default=Path("couplings.json"))
    parser.add_argument("--table", action="store_true", help="only print the tables of the record")
    options = parser.parse_args()
    record = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in () if options.table else options.data:
        record[name] = run(name, CASES[name], options.seeds or CASES[name].seeds)
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for name, found in record.items():
        print(table(name, found))


def run(name: str, case: Case, seeds: int) -> dict[str, Any]:
    """Run all experiments of a data set, and return what the record keeps of them."""
    configured = read(Path("workflow_config.yaml")).experiments[case.shipped]
    shipped = configured.model_dump(mode="json", exclude_unset=True)
    base = deepcopy(shipped)
    for key, value in case.changes.items():
        base[key] = {**base[key], **value} if key in ("data", "training") else value
    base |= {"seeds": [*range(seeds)], "description": f"Couplings compared on {name}", "scale": "reduced"}
    distilled = [method for method in DISTILLED if method.rpartition("+")[2] in base.get("distillation", {})]
    methods = POINT_METHODS if case.points else [*case.methods] or METHODS + distilled
    entries = {f"couplings_{name}": {**base, "methods": methods}}
    labels = {f"couplings_{name}": {method: method for method in methods}}
    variants = POINT_VARIANTS if case.points else VARIANTS
    variants = variants if case.few is None else {label: variants[label] for label in case.few}
    for number, (label, (method, pairing)) in enumerate(variants.items()):
        changed = {key: case.pool if key == "pool" else value for key, value in pairing.items()}
        key = f"couplings_{name}_{number}"
        entries[key] = {**base, "methods": [method], "pairing": {**base["pairing"], **changed}}
        labels[key] = {method: label}
    key = f"couplings_{name}_kept"
    pairs = {"sdot": f"results/couplings_{name}/seed0/pairs/sdot.parquet"}
    pairs |= {label: f"results/{key}-{label}.parquet" for label in RELEASED}
    if not case.points and case.few is None:
        entries[key] = {**base, "methods": [f"pairs-{label}" for label in pairs], "pairs": pairs}
        labels[key] = KEPT
    if case.points:
        key = f"couplings_{name}_assigned"
        entries[key] = {**base, "methods": [BASELINE]}
        labels[key] = {BASELINE: ASSIGNED}
    EXPERIMENTS.mkdir(exist_ok=True)
    (EXPERIMENTS / f"couplings_{name}.yaml").write_text(yaml.safe_dump({"experiments": entries}))
    rows, found, first = [], {}, next(iter(entries))
    for key in entries:
        if key.endswith("_kept"):
            pair_at_temperatures(Path(f"results/couplings_{name}"), pairs, base)
        if key.endswith("_assigned"):
            for seed in range(seeds):
                assign_all(Path(f"results/{first}/seed{seed}"), Path(f"results/{key}/seed{seed}"))
        if key != first:  # the same data, described once
            for part in ("data", "reference"):
                copied = Path(f"results/{first}/{part}")
                if copied.exists():
                    shutil.copytree(copied, f"results/{key}/{part}", dirs_exist_ok=True)
        make(key, case)
        metrics = pd.read_parquet(f"results/{key}/metrics.parquet")
        metrics["coupling"] = metrics.method.map(labels[key])
        rows.append(metrics.dropna(subset="coupling"))
        found |= bounds(Path("results") / key, labels[key])
    metrics = pd.concat(rows)
    return {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "experiment": base,
        "distances": distances(Path(f"results/couplings_{name}"), metrics, base),
        "bounds": dict(sorted(found.items(), key=lambda one: ORDER[one[0]])),
        "values": {name: values(metrics[metrics.evaluation == name], case) for name in base["evaluations"]},
    }


def make(name: str, case: Case) -> None:
    """Run all jobs of an experiment whose files are not there yet."""
    experiment, root = read(Path("workflow_config.yaml")).experiments[name], Path("results") / name
    if case.prepare and not (root / "data/train.parquet").exists():
        case.prepare(root)
    torch.set_num_threads(1)
    for job in jobs(root, experiment):
        prepared = case.prepare and job.rule in PREPARED
        if prepared or all(path.exists() for path in job.outputs.values()):
            continue
        run_job(root, job, experiment.data.kind, threads=1, quiet=True, cache=Path("cache"))


def pair_at_temperatures(root: Path, files: dict[str, str], experiment: dict[str, Any]) -> None:
    """Pairs of Algorithm 1 with weights gamma^(-h / tau), of seed 0, where they are not there yet."""
    rows, metadata = read_table(root / "data/train.parquet", "tokens")
    tokens, level_tables = token_array(rows["tokens"]), rule.level_tables
    for label, tau in RELEASED.items():
        if Path(files[label]).exists():
            continue
        rule.level_tables = lambda *sizes, tau=tau, **first: level_tables(*sizes, **first) ** (1 / tau)
        size = metadata.dimensions[1]
        x0 = pairflow.pair(tokens, vocabulary_size=size, steps=experiment["pairing"]["steps"])
        pairflow.write_pairs(x0, tokens, files[label], vocabulary_size=size)
    rule.level_tables = level_tables


def assign_all(paired: Path, root: Path) -> None:
    """Write pairs of new sources and all points by one exact assignment, if they are missing; `paired` is the
    folder of a seed with pairs of Algorithm 1, whose columns and metadata they have."""
    pairs = f"pairs/{BASELINE}.parquet"
    if (root / pairs).exists():
        return
    table, metadata = read_table(paired / pairs, "vector pairs")
    x1 = token_array(read_table(paired.parent / "data/train.parquet", "vectors")[0]["values"])
    x0 = np.random.default_rng(int(root.name.removeprefix("seed"))).standard_normal(x1.shape, dtype=x1.dtype)
    _, rows = linear_sum_assignment(cdist(x0, x1, "sqeuclidean"))
    (root / "pairs").mkdir(parents=True, exist_ok=True)
    columns = {"x0": x0, "x1": x1[rows], "target": rows, "moved": np.zeros(len(rows))}
    arrays = {name: pa.array([*values], table.schema.field(name).type) for name, values in columns.items()}
    write_table(root / pairs, pa.table(arrays), metadata)


def values(metrics: pd.DataFrame, case: Case) -> dict[str, Any]:
    """Metric -> coupling -> NFE -> the mean of each seed's trials."""
    found: dict[str, Any] = {}
    metrics = metrics.sort_values("coupling", key=lambda names: names.map(ORDER), kind="stable")
    metrics["name"] = metrics.metric + (" (" + metrics.reference + ")").fillna("")
    for metric in metrics.name[metrics.metric.isin(case.metrics)].unique():
        rows = metrics[(metrics.name == metric) & metrics.nfe.notna()]
        means = rows.groupby(["coupling", "nfe", "seed"], sort=False).value.mean()
        for (coupling, nfe, seed), value in means.items():
            by_nfe = found.setdefault(metric, {}).setdefault(coupling, {})
            by_nfe.setdefault(str(int(nfe)), {})[str(int(seed))] = round(float(value), 4)
    return found


def bounds(root: Path, labels: dict[str, str]) -> dict[str, Any]:
    """Coupling -> seed -> the bound on -log p of held-out rows after the training, in nats a token."""
    found: dict[str, Any] = {}
    for method, label in labels.items():
        for path in sorted(root.glob(f"seed*/models/{method}/log.parquet")):
            measured = pd.read_parquet(path).get("validation_nll", pd.Series(dtype=float)).dropna()
            if len(measured):
                seed = path.parents[2].name.removeprefix("seed")
                found.setdefault(label, {})[seed] = round(float(measured.iloc[-1]), 4)
    return found


def distances(root: Path, metrics: pd.DataFrame, experiment: dict[str, Any]) -> dict[str, float]:
    """Mean distances of source and row over the distance of independent sources, and the least that may be;
    of points, squared."""
    if experiment.get("flow") == "continuous":
        names = ("squared_distance", "squared_distance_independent")
        rows = metrics[metrics.metric.isin(names)]
        means = rows.pivot_table(index="coupling", columns="metric", values="value")
        return (means[names[0]] / means[names[1]]).round(4).to_dict()
    rows, metadata = read_table(root / "data/train.parquet", "tokens")
    tokens, (length, size) = token_array(rows["tokens"]), metadata.dimensions
    independent = length * (size - 1) / size
    found = {"bound": least_distance(len(tokens), length, size) / independent}
    means = metrics[metrics.metric == "hamming_mean"].groupby("coupling", sort=False).value.mean()
    found |= {coupling: value / independent for coupling, value in means.items()}
    generator, batch = np.random.default_rng(0), experiment["training"]["batch_size"]
    drawn = []
    for _ in range(BATCHES):
        x1 = tokens[generator.integers(len(tokens), size=batch)]
        x0 = generator.integers(size, size=x1.shape, dtype=x1.dtype)
        drawn.append((x0 != x1[minibatch_ot(x0, x1)]).sum(axis=1).mean())
    return {
        name: round(float(value), 4) for name, value in {**found, "ot": np.mean(drawn) / independent}.items()
    }


def table(name: str, found: dict[str, Any]) -> str:
    """Tables in Markdown, a metric each: mean ± deviation of the seeds; bold if ahead of pairflow by test."""
    parts = []
    tables = [
        (
            f"{name}, {metric}" if CASES[name].points else f"{name}, {metric}, {UPDATES[evaluation]}",
            metric,
            couplings,
        )
        for evaluation, by_metric in sorted(found["values"].items(), reverse=True)
        for metric, couplings in by_metric.items()
    ]
    for title, metric, couplings in tables:
        steps = sorted({int(nfe) for by_nfe in couplings.values() for nfe in by_nfe})
        lines = [
            f"| {title} | {' | '.join('1 step' if nfe == 1 else f'{nfe} steps' for nfe in steps)} |",
            "|---" * (len(steps) + 1) + "|",
        ]
        tests = compare(couplings) if metric == CASES[name].tested else {}
        sign = -1 if CASES[name].lower else 1
        for coupling, by_nfe in couplings.items():
            cells = []
            for nfe in map(str, steps):
                about = estimate({int(seed): {0: value} for seed, value in by_nfe[nfe].items()})
                text = f"{about.mean:.4g} ± {about.std:.2g}"
                test = tests.get((coupling, nfe))
                mark = "**" if test and test.decided and sign * test.value > 0 else ""
                worse = " (behind)" if test and test.decided and sign * test.value < 0 else ""
                cells.append(f"{mark}{text}{mark}{worse}")
            lines.append(f"| {coupling} | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    ratios = ", ".join(f"{coupling} {value:.3f}" for coupling, value in found["distances"].items())
    for coupling, by_seed in found.get("bounds", {}).items():
        about = estimate({int(seed): {0: value} for seed, value in by_seed.items()})
        parts.append(f"Bound on -log p of held-out rows, {coupling}: {about.mean:.4g} ± {about.std:.2g}")
    return "\n\n".join([*parts, f"Distance over that of independent sources: {ratios}.\n"])


def compare(couplings: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """The tested difference of each coupling from pairflow, for each NFE; distilled models are left out."""
    keys = [
        (coupling, nfe)
        for coupling, by_nfe in couplings.items()
        for nfe in by_nfe
        if coupling != BASELINE and "+" not in coupling
    ]
    sides = [
        [
            {int(seed): {0: value} for seed, value in couplings[name][nfe].items()}
            for name in (coupling, BASELINE)
        ]
        for coupling, nfe in keys
    ]
    return dict(zip(keys, adjust(difference(*side) for side in sides), strict=True))


if __name__ == "__main__":
    main()
