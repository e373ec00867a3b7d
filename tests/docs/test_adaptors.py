"""The examples of docs/continuous.md: pairs in the training loops of other libraries."""

import re
from pathlib import Path

import pytest
import torch

from pairflow.flow.continuous import interpolate, velocity_loss

PAGE = Path(__file__).parents[2] / "docs" / "continuous.md"
PAIR, LOAD, FLOW_MATCHING, TORCHCFM, TORCHEBM, COUPLING = re.findall(
    r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
)


@pytest.fixture
def page() -> dict:
    """The variables of the page's examples, up to the loader of continuous pairs."""
    variables: dict = {}
    exec(PAIR + LOAD, variables)
    return variables


def pairs_of(dataset: torch.utils.data.TensorDataset) -> set[tuple]:
    return {(tuple(x0.tolist()), tuple(x1.tolist())) for x0, x1 in dataset}


def test_the_loader_gives_every_pair_once(page):
    batches = [pairs_of(torch.utils.data.TensorDataset(*batch)) for batch in page["loader"]]
    assert set().union(*batches) == pairs_of(page["dataset"])
    assert len(page["dataset"]) == len(page["data"])


def test_flow_matching_trains_on_the_paths_of_our_pairs(page):
    pytest.importorskip("flow_matching")
    exec(FLOW_MATCHING, page)
    sample, x_0, x_1 = page["sample"], page["x_0"], page["x_1"]
    assert pairs_of(torch.utils.data.TensorDataset(sample.x_0, sample.x_1)) <= pairs_of(page["dataset"])
    torch.testing.assert_close(sample.x_t, interpolate(x_0, x_1, sample.t))
    loss = velocity_loss(torch.zeros_like(x_0), x_0, x_1).mean()
    torch.testing.assert_close((sample.dx_t**2).mean(), loss)


def test_torchcfm_trains_on_the_paths_of_our_pairs(page):
    pytest.importorskip("torchcfm")
    exec(TORCHCFM, page)
    assert pairs_of(torch.utils.data.TensorDataset(page["x0"], page["x1"])) <= pairs_of(page["dataset"])
    torch.testing.assert_close(page["x_t"], interpolate(page["x0"], page["x1"], page["t"]))
    torch.testing.assert_close(page["velocity"], page["x1"] - page["x0"])


def test_torchebm_trains_on_our_pairs(page):
    pytest.importorskip("torchebm")
    exec(TORCHEBM, page)
    page["network"].weight.data.zero_()
    page["network"].bias.data.zero_()
    x0, x1 = page["x0"], page["x1"]
    torch.testing.assert_close(page["criterion"](x1, x0=x0), ((x1 - x0) ** 2).mean().float())


def test_semidiscrete_transport_takes_the_place_of_a_coupling_in_a_batch(page):
    for library in ("torchebm", "torchcfm"):
        pytest.importorskip(library)
    exec(TORCHEBM + COUPLING, page)
    rows = {tuple(row) for row in page["data"].tolist()}
    x0 = torch.randn(400, 2, dtype=torch.float64)
    noise, x1 = page["criterion"].coupling(x0)
    assert noise is x0
    assert {tuple(row) for row in x1.tolist()} <= rows
    independent = torch.from_numpy(page["data"][:400])
    assert ((x1 - x0) ** 2).sum() < 0.5 * ((independent - x0) ** 2).sum()
    assert page["loss"].isfinite()
    t, x_t, velocity = page["t"], page["x_t"], page["velocity"]
    ends = x_t + (1 - t)[:, None] * velocity
    assert torch.cdist(ends.double(), torch.from_numpy(page["data"])).min(1).values.max() < 1e-5
