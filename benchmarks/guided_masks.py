"""Two laws of guidance with masks, on the trained `mdlm` of the experiment `guided`.

    snakemake --cores 2 -- results/guided/seed{0,1,2}/models/mdlm/model.safetensors
    python benchmarks/guided_masks.py results/guided --out benchmarks/records/guided-masks.json

`symbols`: the power law of the symbols that a mask turns into, which keeps the schedule (the sampler
`unmask`, as in the release of Schiff et al. 2024). `transitions`: the power law of the whole transitions, as
with uniform noise (the sampler `euler`), which also changes when masks go. Each line of the table has means
over the seeds:

valid: molecules among the samples of a trial. in_class: the share of these in the class asked for.
unique: the different ones.
"""

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from pairing import commit, machine

from pairflow.flow.plan import SamplingPlan
from pairflow.flow.samplers import euler, unmask
from pairflow.kinds.molecules.data.prepare import Vocabulary
from pairflow.kinds.molecules.measures.counts import canonical
from pairflow.kinds.molecules.structures.descriptors import compute
from pairflow.training.model import Model

LAWS = {"symbols": unmask, "transitions": euler}
GROUP = ["nfe", "weight", "law"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path, help="results/guided, with trained models of mdlm")
    parser.add_argument("--condition", default="logp=high")
    parser.add_argument("--weights", type=float, nargs="+", default=[2.0, 4.0])
    parser.add_argument("--nfe", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--samples", type=int, default=1024, help="of a trial")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--out", type=Path, help="record (JSON)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folders = sorted(options.root.glob("seed*/models/mdlm"))
    frame = pd.DataFrame(line for folder in folders for line in measure(folder, options))
    by_seed = frame.groupby([*GROUP, "seed"]).mean().reset_index().drop(columns="trial")
    groups = by_seed.groupby(GROUP)[["valid", "in_class", "unique"]]
    record = {
        "script": "benchmarks/guided_masks.py",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "settings": {key: str(value) for key, value in vars(options).items() if key != "out"},
        "model": Model.load(folders[0]).describe(),
        "means": groups.mean().reset_index().to_dict("records"),
        "seeds": by_seed.to_dict("records"),
    }
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(groups.mean().round(3).to_string(), groups.std().round(3).to_string(), sep="\n")


def measure(folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The counts of each trial under both laws, which start from the same masks and random numbers."""
    model = Model.load(folder)
    vocabulary, label = Vocabulary.load(model.vocabulary_file()), model.labels((options.condition,), 0, 1)
    [own] = model.condition.properties
    corruption = model.corruption
    for nfe, weight, trial in product(options.nfe, options.weights, range(options.trials)):
        for law, sampler in LAWS.items():
            rows = sampler(
                corruption.denoiser(model.network, label),
                corruption.source((options.samples, model.length)),
                SamplingPlan(steps=nfe, prediction=model.prediction, guidance=weight),
                unconditional=corruption.denoiser(model.network),
                generator=torch.Generator().manual_seed(trial),
            )
            molecules = [canonical(vocabulary.decode(row)) for row in rows.numpy()]
            valid = [molecule for molecule in molecules if molecule is not None]
            labels = own.numbers(compute(own.property, valid))
            yield {
                **{"seed": model.seed, "nfe": nfe, "weight": weight, "law": law, "trial": trial},
                **{"valid": len(valid), "in_class": float(np.mean(labels == label.item()))},
                "unique": len({*valid}),
            }


if __name__ == "__main__":
    main()
