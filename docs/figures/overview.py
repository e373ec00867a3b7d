"""Draw docs/figures/overview.svg: sources of made-up rows, and the FCD of molecules by calls of the network.

python docs/figures/overview.py benchmarks/records/field-2026-11-29.json
"""

import json
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import pairflow
from pairflow.metrics.coupling import hamming_histogram

LENGTH, SYMBOLS, ROWS = 16, 4, 2000
BLUE, ORANGE, GREY = "#00629b", "#b35900", "#666666"
PUBLISHED = {"CFM-ECLD": 20.0, "EGO": 30.4}  # one-step generators of graphs: docs/results.md
CONTROLS = {"chain": "groups drawn one after another, no network", "training": "training molecules"}


def toy_rows(seed: int = 0) -> np.ndarray:
    """Rows (M, N) around ten centres: every token is its centre's with probability 0.85, else uniform."""
    generator = np.random.default_rng(seed)
    centres = generator.integers(SYMBOLS, size=(10, LENGTH))
    rows = centres[generator.integers(len(centres), size=ROWS)]
    noise = generator.integers(SYMBOLS, size=rows.shape)
    return np.where(generator.random(rows.shape) < 0.85, rows, noise)


def draw_pairs(axes: plt.Axes) -> None:
    """Histograms of the Hamming distance between a data row and its source."""
    rows = toy_rows()
    sources = pairflow.pair(rows, vocabulary_size=SYMBOLS, steps=20, seed=0, progress=False)
    independent = np.random.default_rng(1).integers(SYMBOLS, size=rows.shape)
    for name, x0, colour in (
        ("random sources", independent, ORANGE),
        ("sources by the formula", sources, BLUE),
    ):
        share = hamming_histogram(x0, rows) / ROWS
        mean = float(share @ np.arange(LENGTH + 1))
        label = f"{name}: {mean:.1f} on average"
        axes.stairs(100 * share, np.arange(LENGTH + 2) - 0.5, color=colour, label=label, linewidth=2)
    axes.set_xticks(range(0, LENGTH + 1, 2))
    axes.set_ylim(0, 34)  # room for the legend
    axes.set_xlabel(f"symbols in which a row and its source differ, of {LENGTH}")
    axes.set_ylabel("share of the rows, %")
    axes.set_title("Sources by the formula lie near their rows (made-up data)", loc="left", fontsize=10)
    axes.legend(frameon=False, loc="upper left")


def draw_distances(axes: plt.Axes, values: dict[str, dict[str, float]]) -> None:
    """FCD to the test molecules of ZINC-250k by calls of the network, of files `calls_<n>` and controls."""
    distances = {
        int(name.removeprefix("calls_")): one["fcd_test"] for name, one in values.items() if "calls" in name
    }
    axes.plot(
        *zip(*sorted(distances.items()), strict=True), color=BLUE, marker="o", label="the model zinc250k"
    )
    axes.plot(
        [1] * len(PUBLISHED), PUBLISHED.values(), "s", color=ORANGE, label="published one-step generators"
    )
    for name, distance in PUBLISHED.items():
        axes.annotate(f"{name} {distance:.1f}", (1, distance), (6, -3), textcoords="offset points")
    for name, words in CONTROLS.items():
        axes.axhline(values[name]["fcd_test"], color=GREY, linestyle=":", linewidth=1)
        place = max(distances), values[name]["fcd_test"]
        axes.annotate(words, place, (0, 3), textcoords="offset points", color=GREY, ha="right")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted(distances), [str(calls) for calls in sorted(distances)])
    axes.set_yticks(ticks := [0.2, 0.5, 1, 2, 5, 10, 20], [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("calls of the network for a molecule")
    axes.set_ylabel("FCD, lower is better")
    axes.set_title("Distance from real drug-like molecules (ZINC-250k)", loc="left", fontsize=10)
    axes.legend(frameon=False, loc="upper right")


def main() -> None:
    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "pairflow", "svg.fonttype": "path"})
    matplotlib.use("svg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    draw_pairs(left)
    draw_distances(right, json.loads(Path(sys.argv[1]).read_text())["values"])
    figure.savefig(Path(__file__).with_suffix(".svg"), facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    main()
