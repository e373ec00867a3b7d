"""Molecules with a given start: how many are valid and keep it, for every model of a finished experiment.

    pairflow run demo        # with `seeds: [0, 1, 2]` and the methods to compare
    python benchmarks/constrained.py results/demo --out benchmarks/records/constrained.json

The experiment's data are `small_molecules`, a complete set. So it is known which molecules begin as asked: a
perfect model makes only these, and in the end all of them. Each line of the table is the mean over the seeds:

valid: molecules among the samples. free: the same without a given start. kept: of the valid ones, those with
the prefix as a substructure, or those that have all of the template. known: of the valid ones, those of the
data set. found: of the `molecules` of the data set that begin so, those that the samples have.
"""

import argparse
import json
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from pairing import commit, machine
from rdkit import Chem, rdBase

from pairflow.artifacts import read_table
from pairflow.config import DemandSettings
from pairflow.flow.given import OPEN
from pairflow.generate.demand import SampleStream
from pairflow.kinds.molecules.data.representations import tokenize
from pairflow.kinds.molecules.measures.counts import canonical

STARTS = ({}, {"prefix": "C=CC"}, {"prefix": "N#CC"}, {"template": "CC(*)C(*)"}, {"template": "C*1C*1"})
SHARES = ("valid", "free", "kept", "known", "found")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", type=Path, help="folder of a finished experiment on small_molecules")
    parser.add_argument("--nfe", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--samples", type=int, default=1024, help="of each model and start")
    parser.add_argument("--out", type=Path, help="record (JSON)")
    options = parser.parse_args()
    frame = pd.DataFrame(measure(options))
    free = frame[frame.start == ""].set_index(["method", "seed", "nfe"])["valid"]
    frame = frame[frame.start != ""].join(free.rename("free"), on=["method", "seed", "nfe"])
    groups = frame.groupby(["start", "nfe", "method"], sort=False)[[*SHARES, "molecules"]]
    record = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "samples": options.samples,
        "means": groups.mean().reset_index().to_dict("records"),
        "deviations": groups.std().reset_index().to_dict("records"),
    }
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(groups.mean().round(3).to_string())


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A line for each model, number of steps and start."""
    smiles = read_table(options.experiment / "data" / "smiles.parquet", "smiles")[0]["smiles"].to_pylist()
    models = sorted(options.experiment.glob("seed*/models/*"))
    lines = []
    for folder, nfe, start in product(models, options.nfe, STARTS):
        settings = DemandSettings(count=options.samples, nfe=nfe, raw=True, **start)
        strings = list(SampleStream(folder, settings))
        name = next(iter(start.values()), "")
        line = {"method": folder.name, "seed": int(folder.parents[1].name[4:]), "nfe": nfe, "start": name}
        lines.append(line | shares(strings, name, smiles))
        print(lines[-1], flush=True)
    return lines


def shares(strings: list[str], start: str, smiles: list[str]) -> dict[str, float]:
    """What samples (B,) with a start are worth, beside all molecules of the data set."""
    molecules = [canonical(text) for text in strings]
    valid = [(text, molecule) for text, molecule in zip(strings, molecules, strict=True) if molecule]
    wanted = {molecule for molecule in smiles if begins(molecule, start)}
    known, drawn = set(smiles), {molecule for _, molecule in valid}
    return {
        "valid": len(valid) / len(strings),
        "kept": sum(keeps(text, molecule, start) for text, molecule in valid) / max(1, len(valid)),
        "known": sum(molecule in known for _, molecule in valid) / max(1, len(valid)),
        "found": len(wanted & drawn) / len(wanted),
        "molecules": len(wanted),
    }


def begins(smiles: str, start: str) -> bool:
    """Whether the tokens of a SMILES are those of a start, as far as it goes."""
    tokens, given = tokenize(smiles), tokenize(start)
    pairs = zip(tokens, given, strict=False)
    return len(tokens) >= len(given) and all(other in (token, OPEN) for token, other in pairs)


def keeps(text: str, molecule: str, start: str) -> bool:
    """Whether a sample has a template in its string, or a prefix as a substructure of its molecule."""
    if OPEN in start:
        return begins(text, start)
    with rdBase.BlockLogs():
        scaffold, whole = map(Chem.MolFromSmiles, (start, molecule))
    return whole.HasSubstructMatch(scaffold) if start else True


if __name__ == "__main__":
    main()
