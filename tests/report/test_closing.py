"""What `pairflow run` says at the end, of molecules and of images."""

import pandas as pd
import pytest
from miniatures import EXPERIMENTS

from pairflow.artifacts import Metadata, as_metrics, write_table
from pairflow.config import Experiment
from pairflow.report.headline import closing_lines

TEXT = EXPERIMENTS["text"]["data"]
DIGITS = {"data": {"source": "digits"}, "features": {"extractor": "classifier"}}


@pytest.fixture
def finish(tmp_path, miniature, monkeypatch):
    """Write a finished experiment, with (method, NFE, value) of a metric; returns its closing lines."""
    monkeypatch.chdir(tmp_path)

    def write(values, metric="valid", changes=None, **shared):
        evaluations = {"main": {"nfe": [1, 4], "samples": 200, "trials": 2}}
        shape = {"methods": ["udlm", "pairflow"], "evaluations": evaluations, **(changes or {})}
        settings = miniature(**shape)
        parameters = Experiment(**settings).model_dump(mode="json")
        rows = pd.DataFrame(values, columns=["method", "nfe", "value"]).assign(metric=metric, seed=0, trial=0)
        root = tmp_path / "results" / "mine"
        root.mkdir(parents=True, exist_ok=True)
        times = pd.DataFrame({"step": ["train"], "method": ["udlm"], "seconds": [1.0], "device": ["cpu"]})
        frame = as_metrics(rows, evaluation="main", samples=200, **shared)
        write_table(root / "metrics.parquet", frame, Metadata(kind="metrics", parameters=parameters))
        write_table(root / "timings.parquet", times, Metadata(kind="timings"))
        return closing_lines(root.relative_to(tmp_path))

    return write


SAMPLE = "pairflow sample --model results/mine --count 1000 --unique --novel --out mine_samples.smi"
COMMAND = f"new molecules: {SAMPLE}"
HOPELESS = "these molecules are not usable yet: the report says why, and what to do"


@pytest.mark.parametrize(
    ("most", "share", "last"), [(150, "75.0 %", COMMAND), (10, "5.00 %", COMMAND), (3, "1.50 %", HOPELESS)]
)
def test_molecules_end_with_the_best_share_and_a_command(finish, most, share, last):
    lines = finish([("udlm", 1, 2), ("udlm", 4, most - 1), ("pairflow", 1, 1), ("pairflow", 4, most)])
    best = f"{share} of the samples of the best method, pairflow at 4 sampling steps, are valid molecules."
    assert lines[0].startswith(best)
    warned = lines[0].endswith("Warning: under half of its samples are valid molecules.")
    assert (warned, *lines[1:]) == (most < 100, "report: results/mine/report.html", last)


def test_plausible_molecules_lead_where_they_were_measured(finish):
    """All samples are valid, but hardly any is plausible."""
    valid = [("udlm", 1, 180), ("udlm", 4, 190)]
    plausible = [("udlm", 1, 3), ("udlm", 4, 2)]
    changes = {"chemistry": {"plausible": True}}
    lines = finish(valid + plausible, [*["valid"] * 2, *["plausible"] * 2])
    assert lines[0].endswith("Warning: under 5% of its samples are plausible molecules.")
    assert lines[1:] == ["report: results/mine/report.html", HOPELESS]
    assert "--unique --novel --plausible --out" in finish([("udlm", 1, 190)], changes=changes)[-1]


def test_images_end_with_the_least_distance(finish):
    values = [("udlm", 1, 9.0), ("udlm", 4, 2.34), ("pairflow", 1, 5.0)]
    lines = finish(values, "fd", DIGITS, reference="test", extractor="classifier-0")
    best = "For the best method, udlm at 4 sampling steps, FD to the test images is 2.3;"
    assert lines[0].startswith(best)
    assert lines[1:] == ["report: results/mine/report.html"]


def test_a_small_distance_keeps_its_digits(finish):
    training = {"loss": "velocity", "batch_size": 8, "iterations": 4, "learning_rate": 1e-3}
    moons = {"flow": "continuous", "data": {"source": "two_moons", "dims": 2}, "training": training}
    moons |= {"distillation": {}, "methods": ["condot", "pairflow"]}
    lines = finish([("condot", 1, 0.4911), ("pairflow", 1, 0.00346)], "chamfer", moons, reference="train")
    assert " to training data is 0.0035; " in lines[0]


def test_an_experiment_without_samples_has_only_a_report(finish):
    assert finish([]) == ["report: results/mine/report.html"]


NAN = float("nan")
MEASURED = {  # per metric: collapsed rows of one word, real text, and the controls
    "judge_ppl": {"pairflow": 1.1, "udlm": 6.0, "data": 5.0, "shuffled": 30.0, "chain": 6.0, "snippet": 5.0},
    "entropy": {"pairflow": 0.0, "udlm": 2.0, "data": 2.0, "shuffled": 2.0, "chain": 2.0, "snippet": 2.0},
    "distinct_4": {"pairflow": 0.9, "udlm": 0.9, "data": 0.9, "shuffled": 1, "chain": 0.9, "snippet": 0.1},
    "js_trigram": {"pairflow": 0.2, "udlm": 0.2, "data": 0.1, "shuffled": 0.5, "chain": 0.2, "snippet": 0.3},
}


def test_a_collapsed_text_model_is_not_called_the_best_without_its_warnings(finish):
    """Its perplexity is the lowest, because every row is the same word again and again."""
    rows = [
        (method, 4 if method in ("pairflow", "udlm") else NAN, value, metric)
        for metric, values in MEASURED.items()
        for method, value in values.items()
    ]
    metrics = [metric for *_, metric in rows]
    best, _ = finish([row[:3] for row in rows], metrics, {"data": TEXT}, extractor="kneser-ney-6-1a2b3c4d")
    assert best.endswith("Warning: likelier than real text, varies too little.")
