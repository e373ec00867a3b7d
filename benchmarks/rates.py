"""Write the rates of finished experiments to pairflow/estimate/recorded.json, for `estimate --recorded`.

python benchmarks/rates.py results/demo results/digits ...
"""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

from pairflow.artifacts import read_metadata, read_provenance
from pairflow.config import Experiment, check
from pairflow.estimate import rates
from pairflow.plan.jobs import jobs
from pairflow.plan.sizes import sizes
from pairflow.plan.work import Work

OUT = Path(rates.__file__).with_name("recorded.json")


def read_rates(root: Path) -> dict[Work, rates.Rate]:
    experiment = check(Experiment, dict(read_metadata(root / "metrics.parquet").parameters), root)
    table = jobs(root, experiment)
    record = read_provenance(table[0].record)
    origin = f"recorded on {record['date'][:10]} ({record['machine']}, {root.name})"
    measured = rates.rates_of(table, experiment, sizes(root, experiment, Path()), origin)
    models = [root / f"seed{experiment.seeds[0]}" / "models" / name for name in experiment.trained()]
    parameters = [json.loads((folder / "model.json").read_text())["parameters"] for folder in models]
    return {
        work: replace(rate, parameters=max(parameters)) if work.kind == "train" else rate
        for work, rate in measured.items()
    }


if __name__ == "__main__":
    together = {work: rate for name in sys.argv[1:] for work, rate in read_rates(Path(name)).items()}
    entries = ({"work": asdict(work), "rate": asdict(rate)} for work, rate in together.items())
    OUT.write_text("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")
    print(f"{len(together)} rates -> {OUT}")
