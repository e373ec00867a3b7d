"""How many samples the share of different molecules and the FCD need until they are stable.

    python benchmarks/sample_sizes.py --out benchmarks/records/sample-sizes.json

It draws samples of the published model `zinc250k`, and measures the first 1,000, 2,000, ... of them; and
likewise held-out molecules of ZINC-250k, in a random order. FCD (Preuer et al. 2018) is
the distance between their features and the features of 10,000 training molecules, in the network ChemNet; it
needs the package `fcd`. A number of molecules is called stable if from it on every value is within 5 % of the
value of all molecules.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from pairing import commit, machine
from rdkit import Chem

from pairflow.config import DemandSettings
from pairflow.generate.demand import SampleStream
from pairflow.kinds.molecules.data import library
from pairflow.kinds.molecules.data.data_sets import DATA_SETS
from pairflow.kinds.molecules.measures.counts import canonical
from pairflow.kinds.molecules.measures.training_molecules import chemnet_features
from pairflow.metrics.frechet import Moments, frechet_distance

MODEL, WITHIN = "zinc250k", 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="samples, and held-out molecules")
    parser.add_argument("--step", type=int, default=1_000)
    parser.add_argument("--nfe", type=int, default=8)
    parser.add_argument("--out", type=Path, help="record (JSON)")
    options = parser.parse_args()
    stream = SampleStream(MODEL, DemandSettings(count=options.count, nfe=options.nfe, raw=True))
    data = DATA_SETS["zinc250k"]
    smiles = [row.text.strip() for row in library.read_rows(data.file.fetch())]
    validation = data.validation_rows()
    seen = np.setdiff1d(np.arange(len(smiles)), validation)[:: len(smiles) // 10_000]
    shuffled = np.random.default_rng(0).permutation(validation)[: options.count]
    seen, held_out = ([Chem.CanonSmiles(smiles[row]) for row in rows] for rows in (seen, shuffled))
    reference = Moments.from_features(chemnet_features(seen))
    sources = {"samples": [*stream], "held out": held_out}
    rows = [
        {"molecules": source, **line}
        for source, texts in sources.items()
        for line in growth(texts, reference, options.step)
    ]
    frame = pd.DataFrame(rows)
    print(frame.round(4).to_string(index=False))
    stable = {
        source: {name: first_stable(lines, name) for name in ("different", "fcd")}
        for source, lines in frame.groupby("molecules")
    }
    print(stable)
    if options.out:
        record = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "commit": commit(), "machine": machine()}
        record |= {"model": MODEL, "nfe": options.nfe, "temperature": stream.settings.temperature}
        options.out.write_text(json.dumps(record | {"lines": rows, "stable": stable}, indent=1) + "\n")


def growth(texts: list[str], reference: Moments, step: int) -> list[dict[str, float]]:
    """The share of different molecules among the first `step`, 2 `step`, ... texts, and their FCD."""
    names = [*map(canonical, texts)]
    features = chemnet_features([name or "" for name in names])
    lines = []
    for count in range(step, len(names) + 1, step):
        valid = [row for row in range(count) if names[row]]
        distance = frechet_distance(Moments.from_features(features[valid]), reference)
        different = len({names[row] for row in valid}) / count
        lines.append({"count": count, "different": different, "fcd": distance})
    return lines


def first_stable(lines: pd.DataFrame, name: str) -> int:
    """The least number of molecules from which on every value is within WITHIN of the last."""
    off = (lines[name] / lines[name].iloc[-1] - 1).abs() > WITHIN
    return int(lines["count"][off[::-1].cummax()[::-1].eq(False)].iloc[0])


if __name__ == "__main__":
    main()
