"""Fine-tuning against training from scratch: few molecules of one kind, equal time.

    python benchmarks/fine_tune.py --parent results/mine/seed0/models/pairflow --rows 50000 --folder fine_tune

The parent has learnt the first `--rows` of ZINC-250k's molecules in a random order (`random_molecules`), and
its folder also has their `norms.parquet`. The small library has molecules of ZINC-250k whose Murcko scaffold
holds an indole, and no molecule that the parent has learnt has that scaffold. The folder gets a configuration
with an experiment `tuned_<iterations>` for each number of iterations, and `scratch` for the first, and the
workflow runs them: a command that was stopped resumes. They differ in where their trainings start, and in the
learning rate, which fine-tuning divides by four. Compared with them are samples of the parent, and the small
library's held-out molecules. A sample counts as alike if its scaffold holds an indole, as plausible by what
is usual among the molecules of the parent, and as a copy if it is a training molecule.
"""

import argparse
import json
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from pairing import commit, machine
from rdkit import Chem, rdBase
from rdkit.Chem.Scaffolds import MurckoScaffold

from pairflow import rng
from pairflow.artifacts import read_object, read_provenance, read_table, token_array
from pairflow.config import suggest
from pairflow.kinds.molecules.data import library
from pairflow.kinds.molecules.data.data_sets import DATA_SETS as MOLECULES
from pairflow.kinds.molecules.data.prepare import Vocabulary
from pairflow.kinds.molecules.measures import chemistry, training_molecules
from pairflow.kinds.molecules.measures.plausible import Norms, is_plausible

INDOLE = Chem.MolFromSmarts("c1ccc2[nH]ccc2c1")
REPOSITORY = Path(__file__).parents[1]
SAMPLES = 500


def main() -> None:
    """Run the experiments and print their table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="where the experiments are run")
    parser.add_argument("--parent", type=Path, required=True, help="folder of the model to start from")
    parser.add_argument("--rows", type=int, required=True, help="random molecules that it has learnt")
    parser.add_argument("--small", type=int, default=500, help="molecules of the small library")
    parser.add_argument("--iterations", type=int, nargs="+", default=[1500], help="of the trainings")
    parser.add_argument("--nfe", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, help="record (JSON)")
    options = parser.parse_args()
    parent = options.parent.resolve()
    prepare(options, parent)
    names = [*configuration(options, parent)["experiments"]]
    for name in names:
        subprocess.run(["pairflow", "run", name, "--cores", "1"], cwd=options.folder, check=True)
    table = pd.DataFrame(measure(options, parent))
    record = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "options": {key: vars(options)[key] for key in ("rows", "small", "iterations", "nfe", "seeds")},
        "seconds": {name: seconds(options, name) for name in names},
        "results": table.astype(object).where(table.notna(), None).to_dict("records"),
    }
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(f"training, in seconds of a core: {record['seconds']}")
    shown = table.drop(columns="seed").groupby(["experiment", "nfe"], sort=False, dropna=False)
    print(shown.agg(["mean", "std"]).round(3).to_string())


def prepare(options: argparse.Namespace, parent: Path) -> None:
    """Write the small library and the configuration, unless they are there."""
    folder = options.folder
    if (folder / "workflow_config.yaml").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    learnt = {scaffold(smiles) for smiles in random_molecules(options.rows)}
    every = pd.read_csv(MOLECULES["zinc250k"].fetch())["smiles"].str.strip()
    order = np.random.default_rng(0).permutation(len(every))
    small = [smiles for smiles in every.iloc[order] if has_indole(smiles) and scaffold(smiles) not in learnt]
    (folder / "small.smi").write_text("\n".join(small[: options.small]) + "\n")
    for name in ("Snakefile", "rules", "profiles", "envs"):
        source = REPOSITORY / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    text = yaml.safe_dump(configuration(options, parent), sort_keys=False)
    (folder / "workflow_config.yaml").write_text(text)


def random_molecules(rows: int) -> list[str]:
    """This many molecules of ZINC-250k, in its order; a larger number has those of a smaller one."""
    texts = [row.text.strip() for row in library.read_rows(MOLECULES["zinc250k"].fetch()) if not row.reason]
    return [texts[row] for row in np.sort(rng.random_order(0, len(texts))[:rows])]


def scaffold(smiles: str) -> str:
    """The molecule's Murcko scaffold as canonical SMILES without stereochemistry; empty without rings."""
    return MurckoScaffold.MurckoScaffoldSmiles(smiles)


def has_indole(smiles: str) -> bool:
    """Whether the molecule's Murcko scaffold holds an indole."""
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
        return molecule is not None and MurckoScaffold.GetScaffoldForMol(molecule).HasSubstructMatch(INDOLE)


def configuration(options: argparse.Namespace, parent: Path) -> dict[str, Any]:
    """The experiments, with the settings of `pairflow new`."""
    facts = read_object(parent / "model.json")
    rows = int(0.9 * options.small)
    sizes = (facts["length"], facts["vocabulary_size"], rows, "cpu", False)
    kind = Vocabulary.load(parent / "vocabulary.json").kind
    data = {"source": "small.smi", "representation": kind, "length": facts["length"]}

    def experiment(iterations: int, **more: Any) -> dict[str, Any]:
        scale = suggest.experiment(*sizes, iterations, facts["network"], fine_tuned="from" in more)
        evaluation = scale["evaluations"]["main"] | {"nfe": options.nfe, "samples": SAMPLES, "trials": 1}
        if kind == "groups":  # as `pairflow new` does
            scale["training"]["loss"], evaluation["temperature"] = "cross_entropy", 1.0
        return {
            "description": "PairFlow on molecules with an indole",
            "scale": "reduced",
            "seeds": options.seeds,
            "data": {**data, "validation_fraction": 0.1, "max_too_long_share": 0.05},
            **scale,
            "evaluations": {"main": evaluation},
            **more,
        }

    start = {"from": str(parent)}
    tuned = {f"tuned_{iterations}": experiment(iterations, **start) for iterations in options.iterations}
    return {"experiments": tuned | {"scratch": experiment(options.iterations[0])}}


def seconds(options: argparse.Namespace, name: str) -> list[float]:
    """The seconds of a core that each training of an experiment took."""
    models = sorted((options.folder / "results" / name).glob("seed*/models/pairflow/model.safetensors"))
    return [round(read_provenance(model)["device_seconds"], 1) for model in models]


def measure(options: argparse.Namespace, parent: Path) -> list[dict[str, Any]]:
    """For each experiment, number of steps and seed the shares of plausible and of alike molecules."""
    root = options.folder / "results" / f"tuned_{options.iterations[0]}"
    known = training_molecules.DatasetMolecules.read(root / "data" / "smiles.parquet")
    training = training_molecules.read_training(root / "reference" / "molecules.parquet", known)
    usual, trained, rows = Norms.read(parent / "norms.parquet"), {*known.trained}, []
    held_out = {"experiment": "held out", "nfe": None, "seed": None}, known.held_out
    for facts, strings in (held_out, *drawn(options, parent)):
        with rdBase.BlockLogs():
            molecules = [molecule for molecule in map(Chem.MolFromSmiles, strings) if molecule]
        shares = {
            "alike": sum(map(has_indole, strings)),
            "plausible": sum(is_plausible(molecule, usual) for molecule in molecules),
            "copies": sum(Chem.MolToSmiles(molecule) in trained for molecule in molecules),
        }
        described = chemistry.describe_samples(strings, training)
        shares["distinct"] = len(described)
        shares = {name: count / len(strings) for name, count in shares.items()}
        rows.append({**facts, "nn_similarity": float(described.nearest.mean()), **shares})
    return rows


def drawn(options: argparse.Namespace, parent: Path) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """What each set of sampled molecules is, and its strings."""
    experiments = configuration(options, parent)["experiments"]
    evaluation = experiments["scratch"]["evaluations"]["main"]
    for nfe in options.nfe:
        path = options.folder / f"parent-nfe{nfe}.parquet"
        drawing = json.dumps(evaluation | {"nfe": nfe, "seed": 0})
        if not path.exists():
            command = ["pairflow", "sample", "--settings", drawing, "--model", parent, "--out", path]
            subprocess.run([*command, "--device=cpu", "--threads=1", "--quiet"], check=True)
        facts = {"experiment": "parent", "nfe": nfe, "seed": None}
        yield facts, strings_of(path, parent / "vocabulary.json")
    for name in experiments:
        root = options.folder / "results" / name
        for path in sorted(root.glob("seed*/samples/pairflow/main/*.parquet")):
            parameters = read_table(path, "samples")[1].parameters
            facts = {"experiment": name, "nfe": parameters["nfe"], "seed": parameters["seed"]}
            yield facts, strings_of(path, root / "data" / "vocabulary.json")


def strings_of(samples: Path, vocabulary: Path) -> list[str]:
    words = Vocabulary.load(vocabulary)
    return [words.decode(row) for row in token_array(read_table(samples, "samples")[0]["tokens"])]


if __name__ == "__main__":
    main()
