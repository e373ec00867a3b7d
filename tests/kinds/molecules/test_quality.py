"""What `new` says of the quality to expect: the numbers of docs/results.md and of the paper's tables."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.paper import printed
from pairflow.config import Experiment, check, suggest
from pairflow.config.suggest import TEMPERATURE, TRANSFORMER_BATCH
from pairflow.data.source import DatasetSize
from pairflow.kinds.molecules.quality import PRECEDENTS, describe_quality

ROOT = Path(__file__).parents[3]
TABLES = pd.read_csv(Path(printed.__file__).with_name("tables.csv"))


def expected(
    length: int,
    device: str,
    rows: int = 2759,
    more: Mapping[str, Any] = MappingProxyType({}),
    parent: str | None = None,
    **data: str,
) -> str:
    data = {"source": "x.smi", "length": length, **data}
    entry = {"description": "x", "scale": "reduced", "data": data, "from": parent}
    entry |= suggest.experiment(length, 54, rows, device, compare=False) | more
    return describe_quality(check(Experiment, entry, "x"), DatasetSize(rows, 145, 54, length))


def test_a_much_smaller_experiment_is_told_to_expect_less():
    """Beside the nearest precedent, whatever it is."""
    few = min(measured("transformer of groups"), key=lambda row: (row.rows, row.iterations))

    def end(rows: int, iterations: int) -> str:
        [share] = re.findall(r"In the most similar .* N = 24\)\.(.*)$", groups(rows, 24, iterations))
        return share.strip()

    assert end(few.rows, few.iterations) == ""
    assert end(few.rows, few.iterations // 2) == "This has far fewer iterations, so expect less."
    assert end(few.rows // 2, few.iterations) == "This has far fewer molecules, so expect less."
    both = "This has far fewer iterations and molecules, so expect less."
    assert end(few.rows // 2, few.iterations // 2) == both


SCALE = {"network": suggest.TRANSFORMER}


def groups(rows: int, length: int = 24, iterations: int = 1000) -> str:
    scale = suggest.experiment(length, 54, rows, "cpu", compare=False, iterations=iterations, **SCALE)
    return expected(length, "cpu", rows, more=scale, representation="groups")


def largest(dataset: str) -> float:
    """The paper's largest share of valid samples of its method, in per cent."""
    table = f"{dataset.removesuffix('250k')}_results_valid"
    values = TABLES[(TABLES.table == table) & (TABLES.method == "PairFlow")].value
    return values.max() / 10.24


def measured(network: str) -> list:
    return [*PRECEDENTS[PRECEDENTS.network == network].itertuples()]


@pytest.mark.parametrize(
    ("length", "device", "percent"),
    [
        (16, "cpu", ["72"]),
        (24, "cpu", ["29", f"{largest('qm9'):.0f}"]),
        (32, "cuda", [f"{largest('qm9'):.0f}"]),
        (200, "cuda", [f"{largest('zinc250k'):.0f}"]),
    ],
)
def test_the_most_similar_experiment_is_quoted(length, device, percent):
    text = expected(length, device)
    assert f"iterations on 2,759 molecules of up to {length} tokens" in text
    quoted = [word for word, unit in zip(text.split(), text.split()[1:], strict=False) if unit == "%"]
    assert quoted == percent


def test_the_small_networks_numbers_are_in_the_results():
    """741.2 and 300.0 of 1,024 are 72 % and 29 %."""
    results = (ROOT / "docs/results.md").read_text()
    assert all(number in results for number in ("741.2 ∓ 15.4", "300.0 ∓ 16.8", "0.8 % valid samples"))


def test_a_start_from_another_model_has_its_own_numbers_and_those_without_it():
    few = {"rows": 19_999, "representation": "selfies"}
    small = expected(72, "cpu", rows=999)
    assert small.startswith("Quality: this trains a small transformer for ")
    assert f"{largest('zinc250k'):.0f} %" not in small  # the paper's transformer is another
    tuned = expected(72, "cpu", **few, parent="zinc250k")
    assert tuned.startswith("Quality: this trains a small transformer, from the weights of another, for ")
    assert "25 % of the samples were useful (450 indoles of ZINC-250k" in tuned
    assert "N = 72), and 1 % from scratch." in tuned
    assert "from scratch" not in small


def recorded(name: str) -> dict:
    return json.loads((ROOT / f"benchmarks/records/{name}.json").read_text())


def test_the_fine_tuned_models_numbers_are_in_a_record():
    [precedent] = measured("fine-tuned transformer")
    record = recorded("fine-tune-2026-11-23")
    assert record["options"]["iterations"] == precedent.iterations
    rows = pd.DataFrame(record["results"])
    best = rows.groupby(["experiment", "nfe"]).useful_strict.mean().groupby("experiment").max()
    assert f"{100 * best['tuned']:.0f} %" == precedent.share
    assert f"{100 * best['scratch']:.0f} %" == precedent.scratch


def test_the_fine_tuned_models_of_groups_have_their_numbers_in_a_record():
    [precedent] = measured("fine-tuned transformer of groups")
    rows = pd.DataFrame(recorded("fine-tune-groups-2026-11-27")["results"])
    best = rows.groupby(["experiment", "nfe"]).plausible.mean().groupby("experiment").max()
    assert f"{100 * best[f'tuned_{precedent.iterations}']:.0f} %" == precedent.share
    assert f"{100 * best['scratch']:.0f} %" == precedent.scratch
    tuned = expected(24, "cpu", 900, parent="zinc250k_groups", representation="groups", more=SCALE)
    assert tuned.startswith("Quality: this trains a small transformer, from the weights of another, for ")
    assert f"{precedent.share} of the samples were plausible (450 indoles" in tuned


def test_the_numbers_of_groups_are_in_a_record():
    """With the loss and the temperature that `new` writes, at the best number of steps."""
    text = (ROOT / "benchmarks/records/useful-molecules-2026-11-27.jsonl").read_text()
    shares = {}
    for line in map(json.loads, text.splitlines()):
        best = max(np.mean(values["plausible"]) for key, values in line.items() if key.startswith("nfe"))
        shares[line["training_rows"], line["iterations"]] = f"{100 * best / line['samples']:.0f} %"
    rows = measured("transformer of groups")
    assert len(rows) > 1
    for row in rows:
        assert shares[row.rows, row.iterations] == row.share
    assert groups(900).startswith("Quality: this trains a small transformer for ")


def test_the_small_transformers_numbers_are_in_a_record():
    """At the best number of steps, for the rows and iterations that the text names."""
    shares = {}
    for path in (ROOT / "benchmarks/records").glob("useful-molecules*.jsonl"):
        for line in map(json.loads, path.read_text().splitlines()):
            if line["temperature"] == TEMPERATURE and line["batch"] == TRANSFORMER_BATCH and not line["seed"]:
                useful = [values["useful_strict"] for key, values in line.items() if key.startswith("nfe")]
                best = max(map(np.mean, useful)) / line["samples"]
                shares[line["training_rows"], line["iterations"]] = f"{100 * best:.0f} %"
    card = (ROOT / "pairflow/models/zinc250k/README.md").read_text()
    *_, best = re.findall(r"^\| 4\.0 \(33\) \| 34\.6 \(54\) \| (.*) \(59\) \|$", card, re.MULTILINE)
    assert "32,656 iterations of 16 rows" in card
    shares[47_499, 32_656] = f"{float(best):.0f} %"
    for precedent in measured("small transformer"):
        assert precedent.share == shares[precedent.rows, precedent.iterations]
