"""Two processes, three threads, and a batch in pieces learn what one thread learns from whole batches.

Run as a script by torchrun this file is the two processes.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pairflow.config import Dcd, Training
from pairflow.errors import InputError
from pairflow.flow.corruption import Absorbing, Uniform
from pairflow.networks import build
from pairflow.networks.layers import Dropout, set_batch_slice
from pairflow.runtime import distributed, signals
from pairflow.training import dcd
from pairflow.training.loop import optimise
from pairflow.training.objectives import FlowObjective, Validator

K, N, CPU = 5, 16, torch.device("cpu")
X1 = np.random.default_rng(0).integers(0, K, (60, N)).astype(np.uint8)
BATCH, ITERATIONS = 13, 36  # rows that neither two processes nor pieces of 4 can share equally

MLP = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 8, "dropout": 0.2}
TRANSFORMER = {"name": "transformer", "width": 16, "blocks": 2, "heads": 2, "time_width": 8, "dropout": 0.2}
UNET = {"name": "unet", "channels": 8, "multipliers": (1, 2), "blocks": 1, "attention": (1,), "dropout": 0.2}

# In 36 updates of 0.003 the order in which floats are added moved weights by at most 0.0005 (a U-Net's; the
# others' by 3e-6), whichever instructions were used. Another mask of dropout, or a row of each batch left
# out, moves one by 0.027 or more. So one whole update is allowed.
NEAR = {"rtol": 0, "atol": 3e-3}


def trained(case: str, micro_batch: int | None = None):
    name, corruption = case.split()
    corruption = {"uniform": Uniform, "mask": Absorbing, "dcd": Uniform}[corruption](K)
    settings = {"mlp": MLP, "transformer": TRANSFORMER, "unet": {**UNET, "head": "logistic"}}[name]
    torch.manual_seed(0)
    shape, sizes = (1, 4, 4) if name == "unet" else None, {"length": N, "vocabulary_size": corruption.symbols}
    network = build(settings, shape=shape, mask=corruption.mask, **sizes)
    how = {"batch_size": BATCH, "iterations": ITERATIONS, "learning_rate": 3e-3, "ema_decay": 0.9}
    if case.endswith("dcd"):
        how = Dcd(**how, teacher_every=10)
        objective = dcd.Consistency(how, X1, corruption, dcd.Transformation.compute(K), 3, CPU)
    else:
        how = Training(**how, validate_every=10)
        x0 = None if corruption.mask else X1[::-1].copy()
        objective = FlowObjective(X1, x0, corruption, BATCH, "nelbo", 3, CPU)
    validate = Validator(X1[:20], corruption, "leave_one_out", None, 3, CPU)
    options = {"seed": 3, "validate": validate, "micro_batch": micro_batch, "progress": False}
    run = optimise(network, objective, how, **options)
    log = torch.tensor(run.log.drop(columns="seconds").fillna(-1).to_numpy())
    return {"network": run.network.state_dict(), "ema": run.ema.state_dict(), "log": log}


CASES = ("mlp uniform", "transformer mask", "unet uniform", "mlp dcd")


def assert_near(found, expected):
    torch.testing.assert_close(found["network"], expected["network"], **NEAR)
    torch.testing.assert_close(found["ema"], expected["ema"], **NEAR)
    torch.testing.assert_close(found["log"], expected["log"], rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def alone():
    """What one process learns from whole batches."""
    return {case: trained(case) for case in CASES}


@pytest.fixture(scope="module")
def by_two(tmp_path_factory):
    """What two processes learn, from pieces of four rows at most in the last case."""
    path = tmp_path_factory.mktemp("two") / "models.pt"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run = subprocess.run([*command, __file__, str(path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return torch.load(path)


@pytest.mark.parametrize("case", CASES)
def test_two_processes_learn_what_one_does(case, alone, by_two):
    assert_near(by_two[case], alone[case])


def test_two_processes_may_each_take_their_share_in_pieces(alone, by_two):
    assert_near(by_two["in pieces"], alone["mlp uniform"])


@pytest.mark.parametrize("case", CASES)
def test_pieces_teach_what_the_whole_batch_does(case, alone):
    assert_near(trained(case, micro_batch=4), alone[case])


def test_threads_teach_what_the_whole_batch_does(alone):
    from torch_threads import threads_restored  # which the two processes do not find

    with threads_restored(3):
        assert_near(trained("transformer mask"), alone["transformer mask"])


@pytest.mark.parametrize(("count", "micro_batch"), [(1, None), (2, None), (3, 2), (13, 1), (4, 100)])
def test_slices_share_a_batch(count, micro_batch, monkeypatch):
    monkeypatch.setattr(distributed, "world_size", lambda: count)
    seen = []
    for rank in range(count):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        mine = distributed.batch_slices(BATCH, micro_batch)
        sizes = [rows.stop - rows.start for rows in mine]
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= (micro_batch or BATCH)
        seen += [row for rows in mine for row in range(rows.start, rows.stop)]
    assert seen == list(range(BATCH))


def test_a_batch_with_fewer_rows_than_processes_is_refused(monkeypatch):
    monkeypatch.setattr(distributed, "world_size", lambda: 14)
    with pytest.raises(InputError, match=r"^batch_size: 13 rows are too few for 14 processes$"):
        distributed.batch_slices(BATCH, None)


@pytest.mark.parametrize("shape", [(12, 5), (12, 3, 7), (12, 4, 2, 6)])
def test_dropout_of_some_rows_is_that_of_the_whole_batch(shape):
    dropout = Dropout(0.3).train()
    h = torch.randn(shape)
    torch.manual_seed(1)
    whole = dropout(h)
    for rows in (slice(0, 5), slice(5, 12)):
        set_batch_slice(dropout, rows, 12)
        torch.manual_seed(1)
        assert torch.equal(dropout(h[rows]), whole[rows])
        set_batch_slice(dropout, rows, 12, torch.Generator().manual_seed(1))
        assert torch.equal(dropout(h[rows]), whole[rows])
    assert torch.equal(dropout.eval()(h), h)
    set_batch_slice(dropout, slice(0, 12), 12)
    torch.manual_seed(1)
    assert torch.equal(dropout.train()(h), whole)


@pytest.mark.parametrize("p", [0.1, 0.5, 1e-9, 1 - 1e-9])
def test_dropout_keeps_the_mean_and_drops_its_share(p):
    torch.manual_seed(2)
    kept = Dropout(p).train()(torch.ones(1000, 1000)).unique(return_counts=True)
    shares = dict(zip(kept[0].tolist(), (kept[1] / 1e6).tolist(), strict=True))
    error = 4 * ((p * (1 - p) + 2**-16) / 1e6) ** 0.5 + 2**-16
    assert abs(shares.get(0.0, 0.0) - p) < error
    [scale] = {*shares} - {0.0}
    assert scale == pytest.approx(min(1 / (1 - p), 2**16), rel=1e-4)
    assert torch.equal(Dropout(0.0).train()(torch.ones(3)), torch.ones(3))


def test_a_gpu_that_is_too_small_is_a_mistake_that_says_what_helps():
    class Huge(torch.nn.Linear):
        def forward(self, *inputs):
            raise torch.OutOfMemoryError("CUDA out of memory")

    settings = Training(batch_size=13, iterations=2, learning_rate=0.1)
    objective = FlowObjective(X1, None, Uniform(K), 13, "nelbo", 3, CPU)
    with pytest.raises(InputError, match=r"^13 rows do not fit on the GPU at once; set --micro-batch to"):
        optimise(Huge(1, 1), objective, settings, seed=0, progress=False)


if __name__ == "__main__":
    torch.set_num_threads(1)
    with distributed.process_group():
        found = {case: trained(case) for case in CASES}
        found["in pieces"] = trained("mlp uniform", micro_batch=4)
    if os.environ["RANK"] == "0":
        torch.save(found, Path(sys.argv[1]))
    signals.exit_at_once(0)  # as `runtime.launch` does
