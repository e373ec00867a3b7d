"""Fine-tuning against training from scratch: few molecules of one kind, equal time.

    python benchmarks/fine_tune.py --folder fine_tune
    python benchmarks/fine_tune.py --folder fine_tune --out benchmarks/records/fine-tune.json

The small library has molecules of ZINC-250k whose Murcko scaffold holds an indole; no other molecule has one.
A random part of the others trains the parent. The folder gets a configuration with three experiments,
`parent`, `tuned` and `scratch`, and the workflow runs them: a command that was stopped resumes. The last two
differ only in where their trainings start. A sample counts as alike if its scaffold holds an indole, too.
"""

import argparse
import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from pairing import commit, machine
from rdkit import Chem, rdBase
from rdkit.Chem.Scaffolds import MurckoScaffold

from pairflow.artifacts import read_provenance, read_table, token_array
from pairflow.data.molecules import Vocabulary
from pairflow.data.sources import MOLECULES

INDOLE = Chem.MolFromSmarts("c1ccc2[nH]ccc2c1")
REPOSITORY = Path(__file__).parents[1]
METRICS = ("valid", "unique_strict", "novel_strict", "nn_similarity", "alike")


def main() -> None:
    """Run the experiments and print their table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="where the experiments are run")
    parser.add_argument("--rows", type=int, default=20_000, help="molecules that the parent learns")
    parser.add_argument("--small", type=int, default=500, help="molecules of the small library")
    parser.add_argument("--parent-iterations", type=int, default=4000)
    parser.add_argument("--iterations", type=int, default=600, help="of each other training")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, help="record (JSON)")
    options = parser.parse_args()
    prepare(options)
    for name in ("parent", "tuned", "scratch"):
        subprocess.run(["pairflow", "run", name], cwd=options.folder, check=True)
    record = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "options": {key: value for key, value in vars(options).items() if key not in ("folder", "out")},
        "seconds": seconds(options),
        "results": measure(options),
    }
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(f"training: {record['seconds']} s")
    print(pd.DataFrame(record["results"]).to_string(index=False, float_format="{:.3f}".format))


def prepare(options: argparse.Namespace) -> None:
    """Write both libraries and the configuration, unless they are there."""
    folder = options.folder
    if (folder / "workflow_config.yaml").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    every = pd.read_csv(MOLECULES["zinc250k"].fetch())["smiles"].str.strip()
    order = np.random.default_rng(0).permutation(len(every))
    small, others = [], []
    for smiles in every.iloc[order]:
        (small if has_indole(smiles) else others).append(smiles)
        if len(small) >= options.small and len(others) >= options.rows:
            break
    for name, molecules in (("others", others[: options.rows]), ("small", small[: options.small])):
        (folder / f"{name}.smi").write_text("\n".join(molecules) + "\n")
    for name in ("Snakefile", "rules", "profiles", "envs"):
        source = REPOSITORY / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    (folder / "workflow_config.yaml").write_text(yaml.safe_dump(configuration(options), sort_keys=False))


def has_indole(smiles: str) -> bool:
    """Whether the molecule's Murcko scaffold holds an indole."""
    molecule = Chem.MolFromSmiles(smiles)
    return molecule is not None and MurckoScaffold.GetScaffoldForMol(molecule).HasSubstructMatch(INDOLE)


def configuration(options: argparse.Namespace) -> dict[str, Any]:
    """The three experiments."""

    def experiment(file: str, iterations: int, rate: float, seeds: list[int], **more: Any) -> dict[str, Any]:
        return {
            "description": f"PairFlow on {file}.smi",
            "scale": "reduced",
            "seeds": seeds,
            "data": {
                "source": f"{file}.smi",
                "representation": "selfies",
                "length": 64,
                "max_too_long_share": 0.05,
                "validation_fraction": 0.1,
            },
            "network": {"name": "transformer", "width": 128, "blocks": 4, "heads": 4, "dropout": 0.0},
            "pairing": {"steps": 20},
            "training": {
                "batch_size": 64,
                "iterations": iterations,
                "learning_rate": rate,
                "warmup_iterations": iterations // 40,
                "decay": "cosine",
                "ema_decay": 0.99,
                "validate_every": iterations // 4,
            },
            "methods": ["pairflow"],
            "evaluations": {"main": {"nfe": [1, 8], "samples": 500, "trials": 1}},
            **more,
        }

    parent = {"from": "results/parent/seed0/models/pairflow"}
    return {
        "experiments": {
            "parent": experiment("others", options.parent_iterations, 1e-3, [0]),
            "tuned": experiment("small", options.iterations, 2.5e-4, options.seeds, **parent),
            "scratch": experiment("small", options.iterations, 1e-3, options.seeds),
        }
    }


def seconds(options: argparse.Namespace) -> dict[str, list[float]]:
    """Experiment -> the seconds of each of its trainings."""

    def of(name: str, seed: int) -> float:
        model = options.folder / f"results/{name}/seed{seed}/models/pairflow/model.safetensors"
        return round(read_provenance(model)["seconds"], 1)

    return {"parent": [of("parent", 0)]} | {
        name: [of(name, seed) for seed in options.seeds] for name in ("tuned", "scratch")
    }


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """For each experiment, number of steps and metric the mean over seeds and its standard deviation."""
    rows = []
    for name in ("parent", "tuned", "scratch"):
        root = options.folder / "results" / name
        found = pd.read_parquet(root / "metrics.parquet")
        found = found[found.evaluation == "main"]
        found = pd.concat([found[["nfe", "seed", "metric", "value"]], alike(root)])
        for (nfe, metric), group in found[found.metric.isin(METRICS)].groupby(["nfe", "metric"]):
            values = group.groupby("seed").value.mean()
            spread = {"mean": float(values.mean()), "std": float(values.std())}
            rows.append({"experiment": name, "nfe": int(nfe), "metric": metric, **spread})
    return rows


def alike(root: Path) -> pd.DataFrame:
    """The number of samples whose scaffold holds an indole, by seed and number of steps."""
    vocabulary, rows = Vocabulary.load(root / "data" / "vocabulary.json"), []
    for path in sorted(root.glob("seed*/samples/pairflow/main/*.parquet")):
        table, metadata = read_table(path, "samples")
        with rdBase.BlockLogs():
            count = sum(has_indole(vocabulary.decode(row)) for row in token_array(table["tokens"]))
        facts = {key: metadata.parameters[key] for key in ("nfe", "seed")}
        rows.append({**facts, "metric": "alike", "value": count})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
