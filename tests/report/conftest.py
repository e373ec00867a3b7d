"""A small report with known numbers, and ways to change it."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pages import COUNTS, NFE, browser, compile_latex, make_experiment, metric_rows, open_page  # noqa: F401

from pairflow.artifacts import as_metrics
from pairflow.report import drawing
from pairflow.report.contents import Contents
from pairflow.report.experiment.page import render

BASES = ("mdlm", "udlm", "random", "pairflow", "pairflow-sub4")
REDI = [base + n * "+redi" for base, most in (("udlm", 2), ("pairflow", 3)) for n in range(1, most + 1)]
METHODS = (*BASES, "udlm+dcd", "pairflow+dcd", *REDI)  # all that an experiment may compare


def _timings() -> pd.DataFrame:
    rows = [("preprocess", None, 3.0), ("pair", "pairflow", 12.0)]
    rows += [("train", method, 48.0) for method in COUNTS]
    rows += [("sample", method, 2.0 * nfe) for method in COUNTS for nfe in NFE]
    frame = pd.DataFrame(rows, columns=["step", "method", "seconds"])
    return frame.assign(
        device_seconds=1.5 * frame.seconds,
        samples_seen=np.where(frame.step == "train", 1500 * 256, np.nan),
        peak_memory_mb=512.0,
        device="cpu",
        seed=0,
        machine="Linux, 2 cores",
        date="2026-01-02",
    )


def _log(level: float) -> pd.DataFrame:
    iteration = np.arange(0, 1501, 10)
    loss = level + 2 * np.exp(-iteration / 100)
    measured = np.where(iteration % 500 == 0, loss + 0.1, np.nan)
    log = pd.DataFrame({"iteration": iteration, "loss": loss, "validation_nll": measured})
    return log.assign(learning_rate=1e-3)


def described(counts) -> dict[str, float]:
    """Metrics of a coupling with these counts of Hamming distances 0..N."""
    shares = {f"hamming_share_{distance}": share for distance, share in enumerate(counts / counts.sum())}
    mean = float(np.average(np.arange(len(counts)), weights=counts))
    return {"hamming_mean": mean, "symbol_deviation": 0.00123, "symbol_deviation_expected": 0.00118, **shares}


@pytest.fixture(scope="session")
def many(make) -> Contents:
    """Contents with twelve methods: the n-th has 10 n valid molecules at one step."""
    counts = {method: (10.0 * n, 500.0, 900.0) for n, method in enumerate(METHODS, 1)}
    steps = [("train", method) for method in BASES]
    steps += [("teach", method) for method in REDI] + [("distill", method) for method in METHODS[5:]]
    steps += [(step, method) for step in ("sample", "evaluate") for method in METHODS]
    timings = pd.DataFrame(steps, columns=["step", "method"])
    run = {"batch_size": 256, "iterations": 100, "learning_rate": 1e-3}
    distillation = {"dcd": {**run, "teacher_every": 10}, "redi": {**run, "pairs": {"count": 20_000}}}
    return make(
        settings={"methods": list(METHODS), "distillation": distillation},
        metrics=metric_rows(counts),
        timings=timings.assign(seconds=60.0, peak_memory_mb=512.0, device="cpu", seed=0),
        logs={method: _log(0.1 * n) for n, method in enumerate(METHODS, 1)},
        samples={method: {1: ["CCO", "CC("], 32: ["C1CC1"]} for method in METHODS},
    )


def rows_of_couplings(values: dict[str, dict[str, float]], evaluation: str) -> pd.DataFrame:
    """The metric rows that `values` of couplings or correlations come from."""
    rows = [(name, metric, value) for name, own in values.items() for metric, value in own.items()]
    frame = pd.DataFrame(rows, columns=["method", "metric", "value"])
    unpaired = frame.method.map(lambda name: values[name].get("unpaired_rows", 0))
    return as_metrics(frame.assign(samples=5123 - unpaired), seed=0, evaluation=evaluation)


def replace_parts(contents: Contents, **changes: Any) -> Contents:
    """Contents with some fields replaced, be they their own or those of what only one kind of data shows.

    `couplings` and `correlations` become metric rows beside `metrics`, which replaces those of samples.
    """
    part = changes.pop("part", contents.part)
    evaluations = {"couplings": "coupling", "correlations": "correlation"}
    described = {own: changes.pop(name, getattr(contents, name)) for name, own in evaluations.items()}
    samples = changes.get("metrics", contents.metrics)
    samples = samples[~samples.evaluation.isin(evaluations.values())]
    rows = [rows_of_couplings(values, evaluation) for evaluation, values in described.items()]
    changes["metrics"] = pd.concat([samples, *rows], ignore_index=True)
    own = {name: changes.pop(name) for name in {*part} & {*changes}}
    return dataclasses.replace(contents, part={**part, **own}, **changes)


@pytest.fixture(scope="session")
def make() -> Callable[..., Contents]:
    """Contents with some fields replaced; `settings` are those of its experiment to replace."""

    def build(settings: dict[str, Any] | None = None, **changes: Any) -> Contents:
        samples = ["CCO", "CC(C", "", "c1cc[nH]c1", "NC=O"] * 3
        shared = {"total_correlation_se": 0.0173, "total_correlation_ceiling": 32.472}
        contents = Contents(
            name="demo",
            experiment=make_experiment(**settings or {}),
            metrics=metric_rows(COUNTS),
            timings=_timings(),
            provenance={
                "date": "2026-01-02T10:11:12+00:00",
                "commit": "a1b2c3d4e5",
                "device": "cpu",
                "machine": "Linux x86_64, 2 cores",
                "versions": {"python": "3.12.1", "torch": "2.11.0"},
                "command": "snakemake --cores 2 results/demo/report.html",
            },
            data={
                **{"training_rows": 5123, "validation_rows": 270, "rejected_rows": 2},
                **{"smiles_rows": 5393, "length": 16, "vocabulary_size": 30},
            },
            logs=dict(zip(COUNTS, map(_log, (0.7, 0.65, 0.6)), strict=True)),
            part={
                "samples": {method: {1: samples, 32: samples} for method in COUNTS},
                **{"examples": [], "properties": {}, "choose_plausible": lambda *run: []},
            },
        )
        measured = {
            "couplings": {
                "pairflow": described(np.array([0] * 8 + [50, 100, 50] + [0] * 6)),
                "random": described(np.eye(17)[15]),
                "forward": {"unique_reached": 3200.0, "coverage": 0.6246, "coverage_predicted": 0.6321},
            },
            "correlations": {
                method: {"total_correlation": value, **shared}
                for method, value in zip(COUNTS, (31.869, 31.2, 30.721), strict=True)
            },
        }
        return replace_parts(contents, **measured | changes)

    return build


FD = {"udlm": (84.0, 30.0, 17.5), "random": (39.0, 21.0, 16.0), "pairflow": (14.0, 16.0, 13.5)}
EXTRACTOR = "classifier-1a2b3c4d"
KINDS = {  # (metric, reference) -> its value from that of FD
    ("fd", "train"): lambda value: value,
    ("fd", "test"): lambda value: value + 1,
    ("is", None): lambda value: 10 - value / 10,
    ("nn_l2", "train"): lambda value: 1000 + 10 * value,
    ("nn_copies", "train"): lambda value: 0.0,
}


def image_rows() -> pd.DataFrame:
    """The metrics of one trial, and floors."""
    rows = [
        (method, nfe, metric, reference, of(value), 1000)
        for method, values in FD.items()
        for nfe, value in zip(NFE, values, strict=True)
        for (metric, reference), of in KINDS.items()
    ]
    real = {"fd": 4.8, "nn_l2": 1234.5, "nn_copies": 0.0}
    rows += [("data", None, metric, "train", value, 540) for metric, value in real.items()]
    frame = pd.DataFrame(rows, columns=["method", "nfe", "metric", "reference", "value", "samples"])
    return as_metrics(frame, trial=0, seed=0, evaluation="main", extractor=EXTRACTOR)


@pytest.fixture(scope="session")
def make_images(make) -> Callable[..., Contents]:
    """Contents of an image experiment with some fields replaced: 70 samples of 8 x 8 grey pixels each."""

    def build(settings: dict[str, Any] | None = None, **changes: Any) -> Contents:
        random = np.random.default_rng(0)

        def pictures(*shape: int) -> np.ndarray:
            return random.integers(0, 256, (*shape, 8, 8, 1), dtype=np.uint8)

        own = {
            "metrics": image_rows(),
            "data": {
                **{"training_rows": 1257, "validation_rows": 540, "shape": (1, 8, 8)},
                **{"length": 64, "vocabulary_size": 2},
            },
            "couplings": {
                "pairflow": described(np.eye(65)[20]),
                "random": described(np.eye(65)[32]),
            },
            "part": {"examples": None, "images": {}, "ends": {}, "neighbours": {}},
            "images": {method: {1: pictures(70), 32: pictures(70)} for method in FD},
            "ends": {name: (pictures(5), pictures(5, 3), pictures(5)) for name in ("pairflow", "random")},
            "neighbours": {
                method: (pictures(12), pictures(12), np.linspace(1, 3.2, 12))
                for method in ("udlm", "pairflow")
            },
        }
        return make({"data": {"source": "digits"}} | (settings or {}), **own | changes)

    return build


@pytest.fixture(scope="session")
def molecule_page(make) -> str:
    return render(make())


@pytest.fixture(scope="session")
def image_page(make_images) -> str:
    return render(make_images())


@pytest.fixture
def empty_charts(monkeypatch):
    """Charts without lines, for tests of the text around them: drawing takes two thirds of a page's time."""
    monkeypatch.setattr(drawing, "_write_svg", lambda figure: "<svg></svg>")
    monkeypatch.setattr(drawing, "_draw_key", lambda look: "<svg></svg>")
