"""How much the other rows of a data set weigh in the steps of Algorithm 1, beside a row's own weight.

    python benchmarks/own_weight.py results/cifar10/data/train.parquet --out own-weight.json

A few rows walk back to their sources among all rows. Before each step the distances to all rows give the
weight of the heaviest other row, as a share of the row's own weight: gamma^-(distance beyond the own row's).
At t = 1 it is 0 unless the row occurs twice, so that the step T is left out. See docs/method.md, "When only a
row's own weight counts".
"""

import argparse
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pairing import commit, machine

from pairflow import rng
from pairflow.artifacts import read_table, token_array
from pairflow.flow.schedule import PAIRING, gamma
from pairflow.pairing import oracle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokens", type=Path, help="token rows of a finished data step")
    parser.add_argument("--steps", type=int, default=20, help="T")
    parser.add_argument("--rows", type=int, default=20, help="rows that walk")
    parser.add_argument("--out", type=Path, help="the JSON record")
    options = parser.parse_args()
    table, metadata = read_table(options.tokens, "tokens")
    tokens, size = token_array(table["tokens"]), metadata.dimensions[1]
    numbers = rng.random_order(0, len(tokens))[: options.rows]
    settings = {"vocabulary_size": size, "steps": options.steps, "seed": 0}
    *states, x0 = oracle.backward_states(tokens, tokens[numbers], numbers, **settings)
    steps = range(options.steps - 1, 0, -1)
    beyond = {step: distances_beyond(z, tokens, numbers) for step, z in zip(steps, states[1:], strict=True)}
    length = tokens.shape[1]
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "configuration": {"tokens": metadata.parameters, "rows": len(tokens), "walks": len(numbers)},
        "N": length,
        "K": size,
        "T": options.steps,
        "distance": float(np.count_nonzero(x0 != tokens[numbers], axis=1).mean()),
        "distance_of_independent_sources": length * (size - 1) / size,
        "steps": {
            step: {
                "gamma": gamma(PAIRING.kappa(step / options.steps), size),
                "least_distance_beyond": int(values.min()),
                "log10_weight_at_most": -float(
                    values.min() * np.log10(gamma(PAIRING.kappa(step / options.steps), size))
                ),
            }
            for step, values in beyond.items()
        },
        "load_after": os.getloadavg()[0],
    }
    print(json.dumps(record, indent=1))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def distances_beyond(z: np.ndarray, tokens: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """How much further than a state's own row its nearest other row is, (B,) positions."""
    beyond = np.empty(len(z), dtype=np.int64)
    for place, (state, own) in enumerate(zip(z.astype(tokens.dtype), numbers, strict=True)):
        distance = np.count_nonzero(tokens != state, axis=1)
        beyond[place] = np.delete(distance, own).min() - distance[own]
    return beyond


if __name__ == "__main__":
    main()
