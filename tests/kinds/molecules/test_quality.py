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
from pairflow.kinds.molecules.draft import _FROM_SCRATCH, _WITH_START, PRECEDENTS, describe_quality

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


def test_a_start_from_a_model_of_others_is_proposed_for_few_molecules():
    few = {"rows": 19_999, "representation": "selfies"}
    text = "With fewer than 20,000 molecules consider `--from zinc250k`, to start from a model that has seen "
    text += "many more: after 1,000 iterations on 450 molecules 25 % of the samples were useful, and "
    assert text + "1 % without it." in expected(72, "cpu", **few)
    assert "--from" not in expected(72, "cpu", rows=20_000, representation="selfies")
    assert "--from" not in expected(80, "cpu", **few)
    small = expected(72, "cpu", rows=999)
    assert small.startswith("Quality: this trains a small transformer for ")
    assert f"{largest('zinc250k'):.0f} %" not in small  # the paper's transformer is another
    assert "--from" not in small
    tuned = expected(72, "cpu", **few, parent="zinc250k")
    assert tuned.startswith("Quality: this trains a small transformer, from the weights of another, for ")
    assert "9 % of the samples were plausible (450 indoles of ZINC-250k" in tuned
    assert "--from" not in tuned


def recorded(name: str) -> dict:
    return json.loads((ROOT / f"benchmarks/records/{name}.json").read_text())


def test_the_fine_tuned_models_numbers_are_in_two_records():
    [precedent] = measured("fine-tuned transformer")
    record = recorded("fine-tune-2026-11-23")
    assert record["options"]["iterations"] == precedent.iterations
    rows = pd.DataFrame(record["results"])
    best = rows.groupby(["experiment", "nfe"]).useful_strict.mean().groupby("experiment").max()
    shares = [f"{100 * best[name]:.0f} %" for name in ("tuned", "scratch")]
    assert shares == [_WITH_START, _FROM_SCRATCH]
    rows = pd.DataFrame(recorded("fine-tune-2026-11-26")["results"]).set_index("experiment")
    assert f"{100 * rows.plausible[f'tuned_{precedent.iterations}']:.0f} %" == precedent.share


def test_the_numbers_of_groups_are_in_a_record():
    """With the loss and the temperature that `new` writes, at the best number of steps."""
    text = (ROOT / "benchmarks/records/useful-molecules-2026-11-26.jsonl").read_text()
    lines = [*map(json.loads, text.splitlines())]
    settings = {"representation": "groups", "method": "pairflow", "loss": "cross_entropy", "temperature": 1}
    chosen = [line for line in lines if settings.items() <= line.items() and line["seed"] == 0]
    shares = {}
    for line in chosen:
        best = max(np.mean(values["plausible"]) for key, values in line.items() if key.startswith("nfe"))
        shares[line["training_rows"], line["iterations"]] = f"{100 * best / line['samples']:.0f} %"
    record = recorded("fine-tune-groups-2026-11-26")
    rows = pd.DataFrame(record["results"]).groupby(["experiment", "nfe"]).plausible.mean()
    best = rows["scratch_groups"].max()
    shares[450, record["options"]["iterations"][0]] = f"{100 * best:.0f} %"
    assert {(row.rows, row.iterations): row.share for row in measured("transformer of groups")} == shares
    transformer = {"network": suggest.TRANSFORMER}
    quoted = expected(24, "cpu", 900, transformer, representation="groups")
    assert quoted.startswith("Quality: this trains a small transformer for ")
    nearest = "(450 indoles of ZINC-250k in groups, 1,000 iterations, N = 24)."
    assert quoted.endswith(f"50 % of the samples were plausible {nearest}")
    tuned = expected(24, "cpu", 900, transformer, parent="zinc250k_groups", representation="groups")
    assert tuned.startswith("Quality: this trains a small transformer, from the weights of another, for ")
    assert tuned.endswith(" tokens. No such experiment has been measured so far.")


def test_the_small_transformers_numbers_are_in_a_record():
    """At the best number of steps, for the rows and iterations that the text names."""
    zinc = recorded("couplings-2026-11-25")["zinc"]
    best = max(np.mean([*seeds.values()]) for seeds in zinc["values"]["plausible"]["pairflow"].values())
    shares = {(50_000, zinc["experiment"]["training"]["iterations"]): f"{100 * best / 1024:.0f} %"}
    for path in (ROOT / "benchmarks/records").glob("useful-molecules*.jsonl"):
        for line in map(json.loads, path.read_text().splitlines()):
            if line["temperature"] == TEMPERATURE and line["batch"] == TRANSFORMER_BATCH and not line["seed"]:
                useful = [values["useful_strict"] for key, values in line.items() if key.startswith("nfe")]
                best = max(map(np.mean, useful)) / line["samples"]
                shares[line["training_rows"], line["iterations"]] = f"{100 * best:.0f} %"
    card = (ROOT / "pairflow/models/zinc250k/README.md").read_text()
    *_, best = re.findall(r"^\| 7\.6 \| 16\.1 \| (.*) \|$", card, re.MULTILINE)
    assert "32,656 iterations of 16 rows" in card
    shares[47_499, 32_656] = f"{float(best):.0f} %"
    for precedent in measured("small transformer"):
        assert precedent.share == shares[precedent.rows, precedent.iterations]
