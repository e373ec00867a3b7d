"""Which representation, network and loss give the most useful molecules after equal training time.

    python benchmarks/useful_molecules.py --rows 3000 --minutes 5 --jobs 2 --out useful-molecules.jsonl
    python benchmarks/useful_molecules.py --table --out benchmarks/records/useful-molecules.jsonl

Every combination of the options from --rows to --seed is one training, with the steps of the workflow, and
one line of the output. Lines that the output has already are not made again, nor are models in the folder, so
that a stopped command, or one with another temperature, can be given again. At the end, or with --table only,
it prints the table.

A training has the time of `--minutes` of two cores: that many CPU seconds of one thread, twice. The rate is
measured before it, and the record has the time that the training took. The molecules are random ones of
ZINC-250k, treated as `pairflow new` treats a user's file. docs/metrics.md
defines `plausible` and `useful`; records of before 2026-11-26 have only `useful`.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pairing import commit, machine

from pairflow import rng
from pairflow.artifacts import read_provenance, read_table, token_array
from pairflow.config import Experiment, check, parse_method, suggest
from pairflow.estimate.measure import measure
from pairflow.estimate.rates import Work
from pairflow.kinds.molecules import chemistry, library, training_molecules
from pairflow.kinds.molecules.chemistry import TrainingMolecules
from pairflow.kinds.molecules.data_sets import DATA_SETS as MOLECULES
from pairflow.kinds.molecules.draft import chosen_rules, plan
from pairflow.kinds.molecules.prepare import Vocabulary
from pairflow.kinds.molecules.settings import LONGEST, Molecules, NewLibrary, chemistry_settings
from pairflow.kinds.molecules.survey import Survey

METRICS = (
    "plausible",
    "useful_strict",
    "useful",
    "valid",
    "unique_strict",
    "novel_strict",
    "nn_similarity",
    "internal_diversity",
)
TRAINING = (*("rows", "minutes", "representation", "network", "loss", "method", "batch", "rate", "seed"),)
KEYS = (*TRAINING, "temperature")
LOSSES = {
    "nelbo": {"loss": "nelbo"},
    "nelbo-unpadded": {"loss": "nelbo", "ignore_padding": True},
    "cross_entropy": {"loss": "cross_entropy"},
}
OUTPUTS = {"model": "model.safetensors", "description": "model.json", "log": "log.parquet"}
CONTROLS = 5000  # molecules, at most
ON_CPU = ("--device", "cpu", "--threads", 1)
FILES = ("train", "validation", "vocabulary", "smiles", "known", "rejected")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=int, default=[3000], help="molecules of the library")
    parser.add_argument("--minutes", nargs="+", type=float, default=[5], help="of two cores, per training")
    parser.add_argument("--representation", nargs="+", default=["smiles", "selfies"])
    parser.add_argument("--network", nargs="+", default=["mlp", "transformer-128x4"], help="or WIDTHxBLOCKS")
    parser.add_argument("--loss", nargs="+", default=["nelbo", "cross_entropy"], choices=LOSSES)
    parser.add_argument("--method", nargs="+", default=["pairflow"])
    parser.add_argument("--batch", nargs="+", type=int, default=[64], help="rows per iteration")
    parser.add_argument("--rate", nargs="+", type=float, default=[1.0], help="times the usual learning rate")
    parser.add_argument("--seed", nargs="+", type=int, default=[0])
    parser.add_argument("--temperature", type=float, default=1.0, help="of the samples")
    parser.add_argument("--nfe", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1, help="trainings at the same time, each on one core")
    parser.add_argument("--folder", type=Path, default=Path("results/useful_molecules"), help="for all files")
    parser.add_argument(
        "--out", type=Path, default=Path("useful-molecules.jsonl"), help="records, one JSON object a line"
    )
    parser.add_argument("--table", action="store_true", help="only print the table")
    parser.add_argument("--controls", action="store_true", help="only measure real molecules and nonsense")
    options = parser.parse_args()
    if options.controls:
        for rows, representation in product(options.rows, options.representation):
            print(
                rows,
                representation,
                json.dumps(controls(prepare(options.folder, rows, representation)["root"])),
            )
        return
    done = [{key: line[key] for key in KEYS} for line in records(options.out)]
    values = [*(getattr(options, key) for key in TRAINING), [options.temperature]]
    cases = [dict(zip(KEYS, case, strict=True)) for case in product(*values)]
    todo = [case for case in cases if case not in done and not options.table]
    libraries = {(case["rows"], case["representation"]) for case in todo}
    data = {library: prepare(options.folder, *library) for library in sorted(libraries)}
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run, options, case, data[case["rows"], case["representation"]]) for case in todo]
        for future in as_completed(runs):
            with options.out.open("a") as file:
                file.write(json.dumps(future.result()) + "\n")
    print(table(records(options.out)))


def records(path: Path) -> list[dict[str, Any]]:
    return [*map(json.loads, path.read_text().splitlines())] if path.exists() else []


def random_molecules(rows: int) -> list[str]:
    """This many molecules of ZINC-250k, in its order; a larger number has those of a smaller one."""
    texts = [row.text.strip() for row in library.read_rows(MOLECULES["zinc250k"].fetch()) if not row.reason]
    return [texts[row] for row in np.sort(rng.random_order(0, len(texts))[:rows])]


def prepare(folder: Path, rows: int, representation: str) -> dict[str, Any]:
    """The token rows of a library, made once, and the experiment that `new` would write on it."""
    smiles = folder / f"zinc{rows}.smi"
    if not smiles.exists():
        folder.mkdir(parents=True, exist_ok=True)
        smiles.write_text("".join(f"{text}\n" for text in random_molecules(rows)))
    root = folder / f"{smiles.stem}-{representation}"
    settings = NewLibrary(representation=representation)
    if not (root / "plan.json").exists():
        (root / "data").mkdir(parents=True, exist_ok=True)
        rules = Molecules(source=str(smiles), length=LONGEST, **chosen_rules(settings))
        counts = Survey(library.read_rows(smiles), rules)
        experiment, sizes, _ = plan(counts, settings, {"source": str(smiles)}, "cpu")
        files = [part for name in FILES for part in (f"--{name}", str(data_file(root, name)))]
        step("preprocess", "molecules", "--settings", json.dumps(experiment["data"]), *files)
        for name, rule in (("molecules", "describe_molecules"), ("norms", "norms")):
            step(rule, "--smiles", data_file(root, "smiles"), "--out", root / f"{name}.parquet")
        size = {"K": sizes.vocabulary_size, "train": sizes.rows, "validation": sizes.validation_rows}
        (root / "plan.json").write_text(json.dumps({"experiment": experiment, "size": size}))
    return {"root": root, **json.loads((root / "plan.json").read_text())}


def data_file(root: Path, name: str) -> Path:
    return root / "data" / f"{name}.{'json' if name == 'vocabulary' else 'parquet'}"


def step(name: str, *arguments: Any) -> None:
    """Run a step of the package with one thread."""
    command = [sys.executable, "-m", "pairflow", name, *map(str, arguments), "--quiet"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if run.returncode:
        raise SystemExit(f"{' '.join(command)}\n{run.stderr}")


def run(options: argparse.Namespace, case: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """One training and its measurements."""
    size, folder = data["size"], data["root"] / "-".join(str(case[key]) for key in TRAINING[1:])
    budget = folder / "training.json"  # written before the training, so that a stopped one resumes
    if not budget.exists():
        rate = iteration_seconds(case, make_experiment(options, case, data, 1000), size["K"])
        iterations = max(50, int(case["minutes"] * 120 / rate))
        folder.mkdir(parents=True, exist_ok=True)
        budget.write_text(json.dumps({"iterations": iterations, "expected_seconds": iterations * rate}))
    facts = json.loads(budget.read_text())
    experiment = make_experiment(options, case, data, facts["iterations"])
    if not (folder / "model" / OUTPUTS["model"]).exists():
        train(experiment, case, data["root"], folder)
    log = pd.read_parquet(folder / "model" / OUTPUTS["log"])
    line = {
        **case,
        "length": experiment.data.length,
        "vocabulary_size": size["K"],
        "training_rows": size["train"],
        **facts,
        "epochs": facts["iterations"] * case["batch"] / size["train"],
        "cpu_seconds": read_provenance(folder / "model" / OUTPUTS["model"])["device_seconds"],
        "training_loss": float(log.loss.tail(len(log) // 10 + 1).mean()),
        "validation_nll": float(log.validation_nll.dropna().iloc[-1]),
        "samples": options.samples,
        **{f"nfe{nfe}": measured(data["root"], folder, experiment, nfe, case["seed"]) for nfe in options.nfe},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
    }
    print(json.dumps({**case, **{name: line[name] for name in line if name.startswith("nfe")}}), flush=True)
    return line


def train(experiment: Experiment, case: dict[str, Any], root: Path, folder: Path) -> None:
    """Train the case's method on one core, into the folder `model`; its pairs are made before."""
    method, seed, rows = case["method"], case["seed"], data_file(root, "train")
    if parse_method(method).coupling:
        pairs = folder / "pairs.parquet"
        pairing = experiment.pair_settings(method, seed).model_dump_json()
        step("pair", "--settings", pairing, "--threads", 1, "--tokens", rows, "--out", pairs)
        rows = pairs
    outputs = {name: folder / "model" / file for name, file in OUTPUTS.items()}
    inputs = {name: data_file(root, name) for name in ("validation", "vocabulary", "known")}
    training = experiment.train_settings(method, seed).model_dump_json()
    resume = ("--resume", folder / "states")  # a stopped training resumes
    step("train", "--settings", training, "--data", rows, *flags(inputs | outputs), *resume, *ON_CPU)


def network_settings(name: str) -> dict[str, Any]:
    """mlp, or transformer-WIDTHxBLOCKS with heads of 32."""
    kind, _, size = name.partition("-")
    if kind == "mlp":
        return suggest.SMALL
    width, blocks = map(int, size.split("x"))
    return {**suggest.TRANSFORMER, "width": width, "blocks": blocks, "heads": width // 32}


def iteration_seconds(case: dict[str, Any], experiment: Experiment, symbols: int) -> float:
    """Seconds of one core for an iteration, as `pairflow estimate` measures them."""
    network = json.dumps(experiment.network.model_dump(mode="json"), sort_keys=True)
    work = Work("train", "cpu", experiment.flow, experiment.data.length, symbols, network, case["batch"])
    rate = measure(work, experiment.training.loss, None, None, "")
    return rate.seconds


def make_experiment(
    options: argparse.Namespace, case: dict[str, Any], data: dict[str, Any], iterations: int
) -> Experiment:
    """The experiment that `new` would suggest, with what the case changes in it."""
    size, entry = data["size"], data["experiment"]
    sizes = (entry["data"]["length"], size["K"], size["train"])
    scale = suggest.experiment(*sizes, "cpu", False, iterations, network_settings(case["network"]))
    scale["training"] |= {**LOSSES[case["loss"]], "batch_size": case["batch"]}
    scale["training"]["learning_rate"] *= case["rate"]
    sampling = {"nfe": options.nfe, "samples": options.samples, "trials": options.trials}
    sampling |= {"temperature": case["temperature"]}
    scale |= {"evaluations": {"main": sampling}, "methods": [case["method"]], "seeds": [case["seed"]]}
    return check(Experiment, {**entry, **scale}, "case")


def measured(root: Path, folder: Path, experiment: Experiment, nfe: int, seed: int) -> dict[str, Any]:
    """Each metric's values per trial at a number of steps, and the seconds of a core for the samples."""
    samples, rows = folder / f"nfe{nfe}.parquet", folder / f"nfe{nfe}-metrics.parquet"
    drawing = experiment.sample_settings("main", nfe, seed).model_dump_json()
    step("sample", "--settings", drawing, "--model", folder / "model", "--out", samples, *ON_CPU)
    inputs = {name: data_file(root, name) for name in ("vocabulary", "smiles")}
    inputs |= {"samples": samples, **{name: root / f"{name}.parquet" for name in ("molecules", "norms")}}
    outputs = {"out": rows, "properties": folder / f"nfe{nfe}-properties.parquet"}
    chemistry = chemistry_settings(experiment).model_dump_json()
    files = flags(inputs | outputs)
    step("evaluate", "molecules", "--settings", chemistry, "--evaluation", "main", *files, *ON_CPU)
    metrics = read_table(rows, "metrics")[0].to_pandas()
    values = {name: metrics.value[metrics.metric == name].tolist() for name in METRICS}
    return {**values, "seconds": read_provenance(samples)["device_seconds"]}


def controls(root: Path) -> dict[str, dict[str, float]]:
    """Shares of useful molecules, and their similarity to the library, without a model.

    `independent` are rows whose symbols are drawn from the training rows at each position on its own.
    """
    words = Vocabulary.load(data_file(root, "vocabulary"))
    train, held_out = (
        token_array(read_table(data_file(root, name), "tokens")[0]["tokens"]) for name in FILES[:2]
    )
    generator = np.random.default_rng(0)
    independent = np.stack([generator.permutation(column) for column in train.T], axis=1)[:CONTROLS]
    known = training_molecules.DatasetMolecules.read(data_file(root, "smiles"))
    training = training_molecules.read_training(root / "molecules.parquet", known)
    shares = {}
    for name, rows, others in (
        ("independent", independent, known.every),
        ("held out", held_out, frozenset()),
    ):
        shares[name] = describe([*map(words.decode, rows[:CONTROLS])], training, others)
    return shares


def describe(strings: list[str], training: TrainingMolecules, others: frozenset[str]) -> dict[str, float]:
    """Shares of different and of useful molecules, which are none of `others`, and their similarity."""
    molecules = chemistry.describe_samples(strings, training)
    useful = chemistry.are_useful(molecules, training, others)
    return {
        **{key: float(flags.sum() / len(strings)) for key, flags in useful.items()},
        "distinct": len(molecules) / len(strings),
        "nn_similarity": float(np.mean(molecules.nearest)),
    }


def flags(files: dict[str, Path]) -> list[str]:
    return [part for name, path in files.items() for part in (f"--{name}", str(path))]


def table(lines: list[dict[str, Any]]) -> str:
    """Useful and valid molecules per hundred samples, the most (strictly) useful first."""
    steps = sorted({int(name[3:]) for line in lines for name in line if name.startswith("nfe")})
    rows = []
    for line in lines:
        row = {name: line[name] for name in KEYS}
        row |= {"iterations": line["iterations"], "CPU-s": round(line["cpu_seconds"])}
        row |= {"loss, end": line["training_loss"], "NLL": line["validation_nll"]}
        for nfe in (nfe for nfe in steps if f"nfe{nfe}" in line):
            for name in ("useful_strict", "useful", "valid", "plausible"):
                counts = line[f"nfe{nfe}"].get(name, np.nan)
                row[f"{name.replace('useful_strict', 'strict')} {nfe}"] = (
                    100 * np.mean(counts) / line["samples"]
                )
        rows.append(row)
    frame = pd.DataFrame(rows)
    if frame.empty:
        return "no records"
    useful = frame[[f"strict {nfe}" for nfe in steps]].max(axis=1)
    order = frame.assign(best=-useful).sort_values(["rows", "minutes", "best"]).index
    return frame.loc[order].round(2).to_string(index=False)


if __name__ == "__main__":
    main()
