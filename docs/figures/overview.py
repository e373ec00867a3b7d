"""Draw docs/figures/overview.svg: closed-form sources of a toy data set, and valid molecules by calls.

python docs/figures/overview.py results/demo_full/metrics.parquet
"""

import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pairflow
from pairflow.config import tail_revises
from pairflow.metrics.coupling import hamming_histogram

LENGTH, SYMBOLS, ROWS = 16, 4, 2000
COLOURS = {"mdlm": "#8a8a8a", "udlm": "#b35900", "random": "#7a5195", "pairflow": "#00629b"}
LABELS = {
    "mdlm": "mdlm (masks)",
    "udlm": "udlm (independent, redrawn)",
    "random": "random (independent, kept)",
    "pairflow": "pairflow (closed form)",
}


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
    for name, x0 in (("random", independent), ("pairflow", sources)):
        share = hamming_histogram(x0, rows) / ROWS
        mean = float(share @ np.arange(LENGTH + 1))
        kind = "independent" if name == "random" else "closed-form"
        label = f"{kind} sources: {mean:.1f} on average"
        axes.bar(range(LENGTH + 1), 100 * share, color=COLOURS[name], alpha=0.65, label=label, width=0.9)
    axes.set_xticks(range(0, LENGTH + 1, 2))
    axes.set_ylim(0, 34)  # room for the legend
    axes.set_xlabel(f"tokens in which source and data differ (of N = {LENGTH})")
    axes.set_ylabel("share of the data, %")
    axes.set_title("Closed-form sources lie near their data (toy)", loc="left", fontsize=10)
    axes.legend(frameon=False, loc="upper left")


def draw_validity(axes: plt.Axes, metrics: pd.DataFrame) -> None:
    """Valid molecules in per cent by calls of the network that can change a sample, over the trials."""
    rows = metrics[(metrics.metric == "valid") & (metrics.evaluation == "main")]
    for name, colour in COLOURS.items():
        part = rows[rows.method == name]
        share = (100 * part.value / part.samples).groupby(part.nfe + tail_revises(name))
        options = {"color": colour, "marker": "o", "markersize": 4, "capsize": 2, "label": LABELS[name]}
        axes.errorbar(share.mean().index, share.mean(), share.std(), **options)
    axes.set_xscale("log", base=2)
    axes.set_xticks(calls := [1, 2, 4, 8, 16, 32], [str(count) for count in calls])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("calls of the network for a sample")
    axes.set_ylabel("valid molecules, %")
    axes.set_title("Valid molecules (demo_full, one training of each method)", loc="left", fontsize=10)
    axes.legend(frameon=False, loc="upper left")


def main() -> None:
    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "pairflow", "svg.fonttype": "path"})
    matplotlib.use("svg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    draw_pairs(left)
    draw_validity(right, pd.read_parquet(sys.argv[1]))
    figure.savefig(Path(__file__).with_suffix(".svg"), facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    main()
