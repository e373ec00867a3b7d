"""Snapshots are whole or passed over; a run stopped anywhere ends in the bits of one that was not."""

import os
import shutil
import signal
import threading

import pytest
import torch
from torch_threads import threads_restored

from pairflow.config import Dcd, Training
from pairflow.errors import Interrupted
from pairflow.flow.corruption import Uniform
from pairflow.networks import build
from pairflow.runtime.snapshots import Snapshots
from pairflow.training import dcd
from pairflow.training.loop import optimise
from pairflow.training.objectives import FlowObjective
from pairflow.training.state import moving_average

K, N = 4, 6
NETWORK = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 8, "dropout": 0.2}
CPU = torch.device("cpu")


def data():
    return torch.randint(K, (40, N), generator=torch.Generator().manual_seed(1)).numpy()


def network():
    torch.manual_seed(0)
    return build(NETWORK, length=N, vocabulary_size=K, shape=None, mask=None)


class StoppedAt:
    """An objective that draws its batch of one iteration when the process gets a signal."""

    def __init__(self, objective, iteration: int | None, number=signal.SIGTERM):
        self.objective, self.iteration, self.number = objective, iteration, number

    def batch(self, network, iteration):
        if iteration == self.iteration:
            os.kill(os.getpid(), self.number)
        return self.objective.batch(network, iteration)

    def __getattr__(self, name):
        return getattr(self.objective, name)


def train(snapshots=None, stop=None, number=signal.SIGTERM):
    rates = {"learning_rate": 0.05, "warmup_iterations": 5, "decay": "cosine", "final_learning_rate": 0.001}
    settings = Training(batch_size=7, iterations=24, ema_decay=0.9, validate_every=9, **rates)
    objective = FlowObjective(data(), None, Uniform(K), 7, "nelbo", 3, CPU)
    options = {"seed": 3, "snapshots": snapshots, "progress": False}
    options["validate"] = lambda ema: sum(weight.sum().item() for weight in ema.parameters())
    return optimise(network(), StoppedAt(objective, stop, number), settings, **options)


def distil(snapshots=None, stop=None):
    settings = Dcd(batch_size=5, iterations=20, teacher_every=6, learning_rate=0.01, ema_decay=0.9)
    objective = dcd.Consistency(settings, data(), Uniform(K), dcd.Transformation.compute(K), 3, CPU)
    student = network()
    average = moving_average(student, 0.9, updates=50)
    options = {"seed": 3, "average": average, "snapshots": snapshots, "progress": False}
    return optimise(student, StoppedAt(objective, stop), settings, **options)


def same(one, other) -> bool:
    weights = ([*run.network.state_dict().values(), *run.ema.state_dict().values()] for run in (one, other))
    equal = (torch.equal(*pair) for pair in zip(*weights, strict=True))
    logs = (run.log.drop(columns="seconds") for run in (one, other))
    return all(equal) and next(logs).equals(next(logs))


@pytest.mark.promise("signal")
@pytest.mark.parametrize("run", [train, distil])
@pytest.mark.parametrize("stop", [0, 5, 12, 19])
def test_a_run_stopped_anywhere_ends_in_the_same_bits(run, stop, tmp_path):
    snapshots = Snapshots(tmp_path)
    with pytest.raises(Interrupted, match=f"stopped after {stop + 1} of 2. iterations, which") as raised:
        run(snapshots, stop)
    assert raised.value.signal == signal.SIGTERM
    assert same(run(snapshots), run())


@pytest.mark.promise("signal")
def test_a_run_stopped_again_and_again_ends_in_the_same_bits(tmp_path):
    for stop in (3, 7, 8, 20):
        with pytest.raises(Interrupted):
            train(Snapshots(tmp_path), stop, signal.SIGINT)
    assert same(train(Snapshots(tmp_path)), train())


@pytest.mark.parametrize("run", [train, distil])
def test_a_run_on_three_threads_resumes_on_one_with_the_same_bits(run, tmp_path):
    with threads_restored(3):
        expected = run()
        with pytest.raises(Interrupted):
            run(Snapshots(tmp_path), 11)
        torch.set_num_threads(1)
        assert same(run(Snapshots(tmp_path)), expected)
        assert torch.get_num_threads() == 3


@pytest.mark.promise("kill")
def test_a_state_saved_at_intervals_survives_a_kill(tmp_path):
    """seconds = 0: a state after every iteration, the newest two kept; nothing asks the run to stop."""
    train(Snapshots(tmp_path, seconds=0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["23.state", "24.state"]
    assert same(train(Snapshots(tmp_path)), train())


@pytest.mark.promise("signal")
def test_a_warning_saves_and_the_run_goes_on(tmp_path):
    trained = train(Snapshots(tmp_path), 10, signal.SIGUSR1)
    assert (tmp_path / "11.state").is_file()
    assert same(trained, train())


@pytest.mark.promise("state")
@pytest.mark.parametrize("harm", ["flip", "cut", "remove", "swap"])
def test_a_state_that_is_not_whole_or_another_one_is_passed_over(harm, tmp_path):
    snapshots = Snapshots(tmp_path)
    for iteration in (8, 9):
        snapshots.save(iteration, {"a": torch.full((3,), float(iteration)), "note": iteration})
    newest = tmp_path / "9.state"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    if harm == "remove":
        newest.unlink()
    else:
        other = (tmp_path / "8.state").read_bytes()
        newest.write_bytes({"flip": content, "cut": newest.read_bytes()[:-1], "swap": other}[harm])
    iteration, state = snapshots.load()
    assert (iteration, state["a"].tolist(), state["note"]) == (8, [8.0] * 3, 8)


def test_a_folder_that_the_same_run_elsewhere_removes_stops_no_save(tmp_path, monkeypatch):
    def save(state, file):
        shutil.rmtree(tmp_path / "states")

    snapshots = Snapshots(tmp_path / "states")
    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", save)
        snapshots.save(8, {"a": torch.zeros(3)})
    assert snapshots.load() is None
    snapshots.save(9, {"a": torch.zeros(3)})
    assert snapshots.load()[0] == 9


def test_a_thread_trains_without_signals(tmp_path):
    found = []
    thread = threading.Thread(target=lambda: found.append(train(Snapshots(tmp_path))))
    thread.start()
    thread.join()
    assert same(found[0], train())
