"""How near samples of `pairflow sample --like` are to their seeds, and how plausible, at each noise; and how
plausible samples without a seed are.

    python benchmarks/variants.py --seeds-from held_out.smi --out variants.json

The seeds are the first molecules of the file, on which the model was not trained.
"""

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from pairing import commit, machine
from rdkit import Chem

from pairflow.kinds.molecules.data.known import KnownMolecules
from pairflow.kinds.molecules.measures.plausible import Norms, is_plausible
from pairflow.published import FOLDER

NOISES, NFE = ("0.02:0.2", "0.3:0.9"), (1, 8, 32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="zinc250k", help="name of a model that comes with pairflow")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--seeds-from", type=Path, required=True, help="SMILES, one a line, in random order")
    parser.add_argument("--count", type=int, default=1400, help="variants of each range of noise")
    parser.add_argument("--samples", type=int, default=1024, help="samples without a seed")
    parser.add_argument("--nfe", type=int, default=8)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--out", type=Path, default=Path("variants.json"))
    options = parser.parse_args()
    folder = FOLDER / options.model
    known, norms = KnownMolecules.load(folder / "known.parquet"), Norms.read(folder / "norms.parquet")
    others = options.seeds_from.read_text().split()
    held_out = [is_plausible(Chem.MolFromSmiles(text), norms) for text in others[: options.samples]]
    with TemporaryDirectory() as made:
        seeds = Path(made, "seeds.smi")
        seeds.write_text("".join(f"{text}\n" for text in others[: options.seeds]))

        def sample(count: int, nfe: int, **files: Any) -> pd.DataFrame:
            values = {"model": options.model, "count": count, "nfe": nfe, "temperature": options.temperature}
            values |= {"out": Path(made, "samples.csv"), **files}
            words = [f"--{name}={value}" for name, value in values.items()]
            command = [sys.executable, "-m", "pairflow", "sample", *words, "--properties", "--quiet"]
            subprocess.run(command, check=True)
            rows = pd.read_csv(values["out"])
            novel = [text not in known for text in rows.smiles]
            return rows.assign(novel=novel, plausible=rows.plausible == "yes")

        rows = pd.concat(sample(options.count, options.nfe, like=seeds, noise=noise) for noise in NOISES)
        free = {nfe: sample(options.samples, nfe).drop_duplicates("smiles") for nfe in NFE}
    measured = ["seed_edit", "seed_similarity", "plausible", "novel"]
    table = rows.groupby("noise")[measured].mean().assign(rows=rows.noise.value_counts())
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "model": options.model,
        **{name: getattr(options, name) for name in ("seeds", "count", "samples", "nfe", "temperature")},
        "by_noise": {f"{noise:g}": row.round(4).to_dict() for noise, row in table.iterrows()},
        "plausible_of_held_out": round(sum(held_out) / len(held_out), 4),
        "plausible_of_samples": {
            nfe: round(int((own.novel & own.plausible).sum()) / options.samples, 4)
            for nfe, own in free.items()
        },
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(table.round(3).to_string())
    print({name: value for name, value in record.items() if name.startswith("plausible")})


if __name__ == "__main__":
    main()
