"""How long a user waits for a result, beside an earlier commit of this repository.

    python benchmarks/since.py aac5bfd --out benchmarks/records/since.json      (ten minutes)

Both versions do the same by their own commands, in turns, on all cores: the training of a transformer on
3,000 molecules of ZINC-250k as SELFIES, on an otherwise idle machine and beside a process that uses one core;
and 1,024 samples of the model `shakespeare` at 8 steps. Measured are iterations per second of the training's
own clock, and seconds of the other command. The pairs are made before. Needs ZINC-250k in PAIRFLOW_DATA_DIR.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from pairing import commit, machine, spread
from threads import one_busy_core

HERE = Path(__file__).parents[1]
ITERATIONS = 120
LIBRARY = {
    "description": "3,000 molecules of ZINC-250k as SELFIES",
    "scale": "reduced",
    "seeds": [0],
    "data": {"source": "library.smi", "representation": "selfies", "length": 72},
    "network": {"name": "transformer", "width": 128, "blocks": 4, "heads": 4, "dropout": 0.1},
    "pairing": {"steps": 20},
    "training": {
        "loss": "nelbo",
        "batch_size": 16,
        "iterations": ITERATIONS,
        "learning_rate": 1e-3,
        "ema_decay": 0.99,
    },
    "methods": ["pairflow"],
    "evaluations": {"main": {"nfe": [8], "samples": 64, "trials": 1}},
}
MODEL = Path("results/library/seed0/models/pairflow")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="an earlier commit")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--out", type=Path, help="the JSON record")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        folders = {name: Path(folder, name) for name in ("before", "now")}
        for name, state in (("before", options.before), ("now", "HEAD")):
            subprocess.run(["git", "clone", "-q", str(HERE), str(folders[name])], check=True)
            subprocess.run(["git", "checkout", "-q", state], cwd=folders[name], check=True)
            (folders[name] / "experiments").mkdir(exist_ok=True)
            library = yaml.safe_dump({"experiments": {"library": LIBRARY}})
            (folders[name] / "experiments/library.yaml").write_text(library, encoding="utf-8")
            (folders[name] / "library.smi").write_text("\n".join(molecules()), encoding="utf-8")
            make(folders[name], "results/library/seed0/pairs/pairflow.parquet")
        measured = {
            "training, iterations per second": side_by_side(folders, options.turns, training),
            "training beside a busy core, iterations per second": beside(folders, options.turns),
            "sampling, seconds": side_by_side(folders, options.turns, sampling),
        }
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "configuration": {"before": options.before, "turns": options.turns, "library": LIBRARY},
        "load": {"before": load, "after": os.getloadavg()[0]},
        "results": measured,
    }
    print(json.dumps(measured, indent=1))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def molecules() -> list[str]:
    """3,000 molecules of ZINC-250k, which are in no order there."""
    table = pd.read_csv(Path(os.environ["PAIRFLOW_DATA_DIR"], "zinc250k.csv.gz"), nrows=3000)
    return table.smiles.str.strip().tolist()


def side_by_side(folders: dict[str, Path], turns: int, measure) -> dict:
    """Both versions in turns: the values of each, and today's divided by the earlier ones."""
    values = {name: [] for name in folders}
    for turn in range(turns):
        for name in sorted(folders, reverse=bool(turn % 2)):
            values[name].append(measure(folders[name]))
    ratio = np.divide(values["now"], values["before"])
    return {name: spread(each) for name, each in values.items()} | {"now / before": spread(ratio)}


def beside(folders: dict[str, Path], turns: int) -> dict:
    with one_busy_core():
        return side_by_side(folders, turns, training)


def training(folder: Path) -> float:
    """Iterations per second of a training, by its log."""
    (folder / MODEL / "model.safetensors").unlink(missing_ok=True)
    make(folder, str(MODEL / "model.safetensors"))
    return ITERATIONS / float(pd.read_parquet(folder / MODEL / "log.parquet").seconds.max())


def sampling(folder: Path) -> float:
    """Seconds of a command that draws samples."""
    command = "pairflow sample --model shakespeare --nfe 8 --samples 1024 --trials 1 --temperature 0.8"
    return seconds(folder, [*command.split(), "--out", "samples.parquet"])


def make(folder: Path, target: str) -> None:
    seconds(folder, ["snakemake", "--cores", str(os.cpu_count()), "--quiet", "all", "--", target])


def seconds(folder: Path, command: list[str]) -> float:
    # The package comes from the checkout, and its modules keep their bytecode.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(folder), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    started = time.perf_counter()
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"{' '.join(command)}\n{run.stdout}{run.stderr}")
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
