"""Finds what counts as usual in any library (docs/metrics.md, `plausible`): atoms and alerts of ZINC-250k.

    python benchmarks/usual_atoms.py --out pairflow/kinds/molecules/measures

An atom is known by a hash of itself, its bonds and its neighbours. `usual_atoms.parquet` has the hash of each
atom that at least --least molecules of ZINC-250k have, and the number of these molecules. The command also
prints which share of the molecules has an atom that is not in the file. `usual_alerts.parquet` has the share
of molecules with each alert, in a random choice of them.
"""

import argparse
from collections import Counter
from itertools import chain
from pathlib import Path

import pandas as pd

from pairflow.kinds.molecules.data import library
from pairflow.kinds.molecules.data.data_sets import DATA_SETS as MOLECULES
from pairflow.kinds.molecules.measures.plausible import ALERT_ROWS
from pairflow.kinds.molecules.measures.training_molecules import some
from pairflow.kinds.molecules.structures.descriptors import tabulate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--least", type=int, default=5, help="molecules with an atom")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    texts = [row.text.strip() for row in library.read_rows(MOLECULES["zinc250k"].fetch()) if not row.reason]
    atoms = [*map(set, tabulate(["surroundings"], texts, options.threads, progress=True)["surroundings"])]
    counts = pd.Series(Counter(chain.from_iterable(atoms)), name="molecules").rename_axis("atom").sort_index()
    usual = counts[counts >= options.least]
    usual.reset_index().astype("uint32").to_parquet(options.out / "usual_atoms.parquet", index=False)
    other = sum(not each.issubset(usual.keys()) for each in atoms)
    print(f"{len(usual):,} of {len(counts):,} atoms; {other / len(texts):.2%} of the molecules have another")
    chosen = [texts[row] for row in some(len(texts), ALERT_ROWS)]
    alerts = tabulate(["alerts"], chosen, options.threads, progress=True)["alerts"]
    found = pd.Series(Counter(chain.from_iterable(alerts)), name="share").rename_axis("alert").sort_index()
    (found / len(chosen)).reset_index().to_parquet(options.out / "usual_alerts.parquet", index=False)


if __name__ == "__main__":
    main()
