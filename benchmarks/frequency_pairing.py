"""How long Algorithm 1 takes with noise by frequency: the CPU engine, and the rule computed plainly.

    pairflow preprocess molecules --source zinc250k --representation groups --length 24 --min-count 20 ...
    python benchmarks/frequency_pairing.py train.parquet --rows 20000 --out record.jsonl

Takes so many of the token rows at random as keys, pairs some of them on one thread in T = 20 steps, and says
how long all would take, in seconds of CPU time. The rule (NumPy) pairs a few of the same rows.
"""

import argparse
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pairing import commit, machine

from pairflow.artifacts import read_table, token_array
from pairflow.pairing.pair import Pairer
from pairflow.pairing.prior import frequencies

STEPS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokens", type=Path, help="token rows of `pairflow preprocess`")
    parser.add_argument("--rows", type=int, default=20_000, help="number of keys")
    parser.add_argument("--measured", type=int, default=2000, help="rows that the engine pairs")
    parser.add_argument("--plainly", type=int, default=10, help="rows that the rule pairs")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, to which the record is appended")
    options = parser.parse_args()
    table, metadata = read_table(options.tokens, "tokens")
    tokens, size = token_array(table["tokens"]), metadata.dimensions[1]
    tokens = np.random.default_rng(0).permutation(tokens)[: options.rows]
    fast, seconds = pair(tokens, size, "cpu", options.measured)
    plain, plainly = pair(tokens, size, "reference", options.plainly)
    assert np.array_equal(plain, fast[: options.plainly])
    independent = frequencies(tokens, size)[np.arange(tokens.shape[1]), tokens]
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "load": os.getloadavg()[0],
        "tokens": options.tokens.stem,
        "configuration": {"rows": len(tokens), "length": tokens.shape[1], "symbols": size, "steps": STEPS},
        "measured_rows": options.measured,
        "cpu_seconds_of_all_rows": seconds * len(tokens),
        "cpu_seconds_of_all_rows_by_the_rule": plainly * len(tokens),
        "distance": float((fast != tokens[: options.measured]).sum(axis=1).mean()),
        "distance_independent": float((1 - independent).sum(axis=1).mean()),
    }
    print(json.dumps(record, indent=1))
    with options.out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def pair(tokens: np.ndarray, size: int, backend: str, count: int) -> tuple[np.ndarray, float]:
    """The sources of the first `count` rows, and the seconds of CPU time for each."""
    settings = {"steps": STEPS, "subsets": 1, "noise": "frequencies", "seed": 0}
    pairer = Pairer(tokens, vocabulary_size=size, **settings, backend=backend, threads=1, progress=False)
    pairer.sources((0, 1))  # compiles
    started = time.process_time()
    sources = pairer.sources((0, count))
    return sources, (time.process_time() - started) / count


if __name__ == "__main__":
    main()
