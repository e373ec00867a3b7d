"""What a pairing in subsets loses: how far sources lie from their rows, and what it costs, for several P.

    python benchmarks/subsets.py results/qm9/data/train.parquet --out subsets.json

All rows are paired, once for each P. The mean distance grows with P towards N (K - 1) / K, that of
independent sources. See docs/method.md, "Subsets".
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
from pairflow.metrics.coupling import diagnose
from pairflow.pairing.pair import compile_for, pair


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokens", type=Path, help="token rows of a finished data step")
    parser.add_argument("--steps", type=int, default=20, help="T")
    parser.add_argument("--subsets", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64], help="P")
    parser.add_argument("--out", type=Path, help="the JSON record")
    options = parser.parse_args()
    table, metadata = read_table(options.tokens, "tokens")
    tokens, size = token_array(table["tokens"]), metadata.dimensions[1]
    compile_for(tokens, vocabulary_size=size, backend="cpu")
    settings = {"vocabulary_size": size, "steps": options.steps, "seed": 0}
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "configuration": {"tokens": metadata.parameters, "N": tokens.shape[1], **settings},
        "load_before": os.getloadavg()[0],
        "subsets": {subsets: in_subsets(tokens, subsets, settings) for subsets in options.subsets},
        "load_after": os.getloadavg()[0],
    }
    print(json.dumps(record, indent=1))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def in_subsets(tokens: np.ndarray, subsets: int, settings: dict) -> dict:
    """Rows in a subset, distances of the pairs, and CPU seconds of the pairing (all threads)."""
    started = time.process_time()
    sources = pair(tokens, subsets=subsets, **settings, backend="cpu", progress=False)
    seconds = time.process_time() - started
    facts = diagnose(sources, tokens, settings["vocabulary_size"])
    names = ("hamming_mean", "hamming_std", "hamming_independent")
    return {"rows": len(tokens) // subsets, "cpu_seconds": seconds, **{name: facts[name] for name in names}}


if __name__ == "__main__":
    main()
