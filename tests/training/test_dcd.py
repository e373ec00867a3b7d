"""Discrete Consistency Distillation: its teacher, its steps, its loss."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from pairflow import networks
from pairflow.config import Dcd
from pairflow.flow.corruption import Uniform, stratified_times
from pairflow.flow.duality import Transformation
from pairflow.training import dcd
from pairflow.training.loop import optimise
from pairflow.training.objectives import Labels

CPU = torch.device("cpu")
K, N = 11, 6
X1 = np.random.default_rng(0).integers(0, K, (50, N)).astype(np.uint8)


def settings(**changes) -> Dcd:
    given = {"batch_size": 16, "iterations": 12, "learning_rate": 1e-2, "teacher_every": 3, "ema_decay": 0.9}
    return Dcd(**given | changes)


def objective(seed=0, labels=None, **changes):
    return dcd.Consistency(settings(**changes), X1, Uniform(K), Transformation.compute(K), seed, CPU, labels)


def mlp(seed=0, dropout=0.0):
    torch.manual_seed(seed)
    mlp = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16, "dropout": dropout}
    network = networks.build(mlp, length=N, vocabulary_size=K)
    for parameter in network.parameters():  # a network's last layer may begin at zero
        nn.init.normal_(parameter, std=0.3)
    return network


class Recorder(nn.Module):
    """Uniform logits; keeps what every copy of it was shown, in turn student and teacher."""

    shown: list

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(K))
        Recorder.shown = []

    def forward(self, x_t, sigma, label=None):
        Recorder.shown.append((x_t, sigma, label, self.training))
        return self.bias.expand(*x_t.shape, -1)


def test_the_loss_is_zero_where_the_networks_agree_at_the_same_state():
    """With a step too small to see, the student's state is the teacher's."""
    network, same = mlp().train(), objective(noise_min=-1.0 - 1e-9, noise_max=-1.0)
    assert same(network, 0).item() == pytest.approx(0.0, abs=1e-9)
    nn.init.normal_(next(network.parameters()), std=3.0)
    assert same(network, 1).item() > 1e-3
    assert objective()(mlp(), 0).item() > 1e-3  # where the states differ


def test_the_divergence_is_that_of_the_student_from_the_teacher():
    student, teacher = (torch.tensor(p).log() for p in ([0.5, 0.5, 1e-30], [0.25, 0.5, 0.25]))
    assert dcd.divergence(student, teacher).item() == pytest.approx(0.5 * np.log(2))
    assert dcd.divergence(student, student).item() == 0.0


def test_only_the_student_learns():
    network, made = mlp(), objective()
    made(network, 0).backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in network.parameters())
    assert not any(p.requires_grad or p.grad is not None for p in made.teacher.parameters())


def test_the_student_and_the_teacher_are_given_the_labels_of_their_rows():
    labels = Labels(np.arange(50) % 3, (3,), seed=0, device=CPU)
    made = objective(labels=labels)
    for rows in (slice(0, 16), slice(4, 9)):
        made(Recorder(), 5, rows)
        expected = labels.after_dropout(made.batches(5), 5)[rows]
        assert all(torch.equal(label, expected) for *_, label, _ in Recorder.shown)


def test_the_teacher_moves_exactly_at_the_stated_iterations():
    network, made = mlp(), objective(teacher_every=3)
    teachers, students = [], []

    class Watched(dcd.Consistency):
        def batch(self, student, iteration):
            students.append(copy.deepcopy(student.state_dict()))
            loss = super().batch(student, iteration)
            teachers.append(copy.deepcopy(self.teacher.state_dict()))
            return loss

    made.__class__ = Watched
    optimise(network, made, settings(), seed=0, progress=False)
    for iteration, teacher in enumerate(teachers):
        renewed = iteration - iteration % 3
        assert all(torch.equal(teacher[name], students[renewed][name]) for name in teacher)
        moved = [not torch.equal(teacher[name], students[iteration][name]) for name in teacher]
        assert iteration == renewed or any(moved)


def test_the_step_doubles_with_every_teacher_until_it_is_all_of_the_noise_time():
    found = [dcd.step_size(iteration, 5) for iteration in (0, 4, 5, 9, 10, 15, 20, 25, 29, 30, 35, 10**6)]
    assert found == [1 / 64, 1 / 64, 1 / 32, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1 / 2, 1, 1, 1]


def test_noise_times_are_a_step_apart_and_stay_in_range():
    made = objective(batch_size=4096)
    for iteration in (0, 3, 9, 18, 30):
        teacher, student = made.noise_times(iteration)
        step = dcd.step_size(iteration, 3)
        torch.testing.assert_close(student - teacher, torch.full_like(student, step), rtol=0, atol=1e-15)
        assert teacher.min() >= 0
        assert student.max() <= 1
        assert (student == 1).double().mean().item() == pytest.approx(step, abs=0.03)  # t + step > 1
    assert teacher.max() == 0  # one step is all of it


def test_noise_times_are_stratified_over_the_batch():
    """Before the step is added there is one noise time in each of B equal parts of [1e-3, 1]."""
    _, student = objective(batch_size=1000).noise_times(0)
    uncut = np.sort(student[student < 1].numpy()) - 1 / 64  # the others were cut to 1
    places = 1000 * (uncut - 1e-3) / (1 - 1e-3)
    np.testing.assert_array_equal(np.floor(places), np.arange(len(uncut)))
    assert (places % 1).mean() == pytest.approx(0.5, abs=0.05)


def test_each_network_is_told_the_alpha_of_its_own_state():
    made = objective(batch_size=50, teacher_every=1)
    made(Recorder(), 0)
    (noisy, more, _, student_learns), (clean, less, _, teacher_learns) = Recorder.shown
    assert (student_learns, teacher_learns) == (True, False)  # which decides on dropout
    teacher, student = (made.transformation(-4 + 3 * times.numpy()) for times in made.noise_times(0))
    np.testing.assert_allclose(torch.exp(-more), student, atol=1e-6)
    np.testing.assert_allclose(torch.exp(-less), teacher, atol=1e-6)
    assert more.dtype == torch.float32
    x1 = torch.tensor(X1)[made.batches(0)].long()
    lost = clean != x1
    assert lost.any()
    assert torch.equal(clean[lost], noisy[lost])


def test_the_loss_survives_bfloat16():
    network, made = mlp(), objective()
    expected = made(network, 0).item()
    with torch.autocast("cpu", torch.bfloat16):
        loss = made(network, 0)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(expected, rel=0.1)


def test_times_and_noise_have_random_numbers_of_their_own():
    made = objective(batch_size=50)
    made(Recorder(), 0)
    generator = dcd.random_generator(CPU, 0, "dcd", 0)
    t = stratified_times(50, generator).double()
    assert not torch.isclose(made.noise_times(0)[1], 1 - t + 1 / 64).any()
