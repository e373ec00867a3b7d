"""Text at equal calls of the network and equal entropy: perplexities over temperatures, for trained models.

    pairflow run shakespeare     # with `seeds: [0, 1, 2]` and the methods to compare
    python benchmarks/text_entropy.py results/shakespeare --out benchmarks/records/text-entropy.json

A perplexity compares at equal entropy only, and the greedy tail lowers the entropy of models with uniform
noise. So each model is sampled at several temperatures, those with uniform noise with the greedy tail and
without it (`greedy_tail: false`), all with the same number of calls. Over temperatures the samples move along
a curve of perplexity against entropy. The table has each curve's perplexity at some entropies, interpolated
between the temperatures (its logarithm, linearly), as mean and standard deviation over the seeds; a curve
that does not reach an entropy has none. The record has all points.
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

from pairflow.artifacts import Provenance
from pairflow.config import SampleSettings, tail_revises
from pairflow.kinds.text.measure import RealText
from pairflow.kinds.text.settings import Judge, TextFiles
from pairflow.metrics.measured import Machine
from pairflow.training.model import Model

TEMPERATURES = (0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.5)
CURVE = ["judge", "calls", "method", "tail"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path, help="results/<experiment> on characters, with trained models")
    parser.add_argument("--calls", type=int, nargs="+", default=[2, 4, 8, 32])
    parser.add_argument("--temperatures", type=float, nargs="+", default=TEMPERATURES)
    parser.add_argument(
        "--entropies", type=float, nargs="+", default=[2.2, 2.3, 2.4], help="of the table, nats"
    )
    parser.add_argument("--samples", type=int, default=1024, help="of each model and setting")
    parser.add_argument("--out", type=Path, help="record (JSON)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    models = sorted(options.root.glob("seed*/models/*/model.json"))
    text = read_text(options.root)
    points = pd.DataFrame(
        point for path in models for point in measure(Model.load(path.parent), text, options)
    )
    held_out = text.held_out[np.random.default_rng(0).permutation(len(text.held_out))[: options.samples]]
    table = compare(points, options.entropies)
    record = {
        "script": "benchmarks/text_entropy.py",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "models": {str(path.parent.relative_to(options.root)): describe(path) for path in models},
        "samples": options.samples,
        "held_out": judged(text, held_out),
        "at_entropy": table.astype(object).where(table.notna(), None).to_dict("records"),
        "points": points.round(4).to_dict("records"),
    }
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record["held_out"]), table.to_string(index=False), sep="\n")


def describe(path: Path) -> dict[str, Any]:
    """The configuration of a model, without hashes."""
    facts = json.loads(path.read_text())
    return {key: facts[key] for key in ("method", "seed", "network", "training")}


def read_text(root: Path) -> RealText:
    """The text of an experiment and its judge of 6-grams."""
    data = root / "data"
    files = TextFiles(
        *(data / f"{name}.parquet" for name in ("train", "validation", "judge")), data / "vocabulary.json"
    )
    return RealText.read(files, Judge(order=6), Machine("cpu", 1, False, Provenance()))


def judged(text: RealText, rows: np.ndarray) -> dict[str, float]:
    """The entropy of rows (B, N) and their perplexity under the judge."""
    measured = [row for row in text.measure_rows(rows) if row["metric"] in ("judge_ppl", "entropy")]
    return {row["extractor"] or "entropy": row["value"] for row in measured}


def measure(model: Model, text: RealText, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A point of each curve for each temperature."""
    tails = (True, False) if tail_revises(model.method) else (True,)
    for calls, tail, temperature in product(options.calls, tails, options.temperatures):
        nfe = calls - (tail and len(tails) > 1)
        settings = SampleSettings(nfe=nfe, seed=model.seed, greedy_tail=tail, temperature=temperature)
        plan = model.plan(settings, nfe, options.samples)
        _, rows = model.draw(plan, options.samples, model.seed, "sample", 0, 0)
        values = judged(text, rows.numpy())
        entropy = values.pop("entropy")
        shared = {"method": model.method, "seed": model.seed, "calls": calls, "tail": tail, "nfe": nfe}
        for judge, perplexity in values.items():
            yield {
                **shared,
                "temperature": temperature,
                "judge": judge,
                "entropy": entropy,
                "perplexity": perplexity,
            }


def compare(points: pd.DataFrame, entropies: list[float]) -> pd.DataFrame:
    """The perplexity of each curve at some entropies: mean, deviation and number over the seeds."""
    rows = [
        {**dict(zip([*CURVE, "seed"], key, strict=True)), "entropy": entropy, "perplexity": perplexity}
        for key, curve in points.groupby([*CURVE, "seed"], sort=True)
        for entropy, perplexity in zip(entropies, interpolate(curve, entropies), strict=True)
    ]
    groups = pd.DataFrame(rows).groupby([*CURVE, "entropy"])["perplexity"]
    return groups.agg(["mean", "std", "count"]).round(2).reset_index()


def interpolate(curve: pd.DataFrame, entropies: list[float]) -> np.ndarray:
    """The perplexity at some entropies, NaN beyond those of the curve."""
    ordered = curve.sort_values("entropy")
    logarithms = np.interp(entropies, ordered.entropy, np.log(ordered.perplexity), np.nan, np.nan)
    return np.exp(logarithms)


if __name__ == "__main__":
    main()
