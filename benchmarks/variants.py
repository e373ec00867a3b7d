"""How near samples of `pairflow sample --like` are to their seeds, and how plausible, at each noise.

    python benchmarks/variants.py --seeds 100 --count 2800 --out variants.json

The seeds are molecules of ZINC-250k that the shipped model `zinc250k` was not trained on.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
from pairing import commit, machine
from useful_molecules import random_molecules

from pairflow.data.known import KnownMolecules
from pairflow.kinds.molecules.counts import canonical
from pairflow.published import FOLDER

MODEL = "zinc250k"
NOISES = ("0.02:0.2", "0.3:0.9")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--count", type=int, default=2800)
    parser.add_argument("--nfe", type=int, default=8)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--out", type=Path, default=Path("variants.json"))
    options = parser.parse_args()
    known = KnownMolecules.load(FOLDER / MODEL / "known.parquet")
    others = (text for text in random_molecules(60_000)[::7] if canonical(text) not in known)
    with tempfile.TemporaryDirectory() as folder:
        seeds, out = Path(folder, "seeds.smi"), Path(folder, "variants.csv")
        seeds.write_text("".join(f"{text}\n" for text, _ in zip(others, range(options.seeds), strict=False)))
        settings = {"nfe": options.nfe, "temperature": options.temperature, "count": options.count}
        words = [f"--{name}={value}" for name, value in settings.items()]
        command = [sys.executable, "-m", "pairflow", "sample", f"--model={MODEL}", f"--like={seeds}", *words]
        tables = []
        for noise in NOISES:
            subprocess.run(
                [*command, f"--noise={noise}", f"--out={out}", "--properties", "--quiet"], check=True
            )
            tables.append(pd.read_csv(out))
    rows = pd.concat(tables)
    rows = rows.assign(novel=[text not in known for text in rows.smiles], plausible=rows.plausible == "yes")
    measured = ["seed_edit", "seed_similarity", "plausible", "novel"]
    table = rows.groupby("noise")[measured].mean().assign(rows=rows.noise.value_counts())
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "model": MODEL,
        "seeds": options.seeds,
        **settings,
        "by_noise": {f"{noise:g}": row.round(4).to_dict() for noise, row in table.iterrows()},
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(table.round(3).to_string())


if __name__ == "__main__":
    main()
