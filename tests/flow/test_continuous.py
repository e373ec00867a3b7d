"""The straight path, its loss, the solvers against exact solutions, and minibatch optimal transport."""

import itertools

import numpy as np
import pytest
import torch

from pairflow.flow.continuous import interpolate, solve, trace, velocity_loss
from pairflow.flow.couple import minibatch_ot
from pairflow.pairing.continuous import empirical_velocity


def decay(x, t):
    """dx/dt = -x, whose solution is x(1) = x(0) / e."""
    return -x


def test_the_path_leads_from_x0_to_x1():
    x0, x1 = torch.randn(3, 2, 4), torch.randn(3, 2, 4)
    x_t = interpolate(x0, x1, torch.tensor([0.0, 0.25, 1.0]))
    assert torch.equal(x_t[0], x0[0])
    torch.testing.assert_close(x_t[1], 0.75 * x0[1] + 0.25 * x1[1])
    assert torch.equal(x_t[2], x1[2])


def test_the_loss_is_the_mean_square_of_each_row():
    x0, x1 = torch.zeros(2, 1, 2), torch.tensor([[[1.0, 2.0]], [[0.0, 4.0]]])
    assert velocity_loss(torch.zeros(2, 1, 2), x0, x1).tolist() == [2.5, 8.0]
    assert velocity_loss(x1 - x0, x0, x1).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("solver", "order"), [("euler", 1), ("heun", 2)])
def test_the_error_of_a_solver_falls_with_its_order(solver, order):
    x0 = torch.tensor([[1.0], [-2.0]], dtype=torch.float64)
    exact = x0 / np.e
    errors = [(solve(decay, x0, steps, solver) - exact).abs().max().item() for steps in (50, 100)]
    assert errors[0] / errors[1] == pytest.approx(2**order, rel=0.05)


def test_each_solver_in_one_step_by_hand():
    x0 = torch.tensor([[1.0]])

    def velocity(x, t):
        return x + t

    assert solve(velocity, x0, 1).item() == 2.0  # 1 + (1 + 0)
    assert solve(velocity, x0, 1, "heun").item() == 3.0  # 1 + ((1 + 0) + (2 + 1)) / 2
    assert solve(velocity, x0, 2).item() == 2.5  # 1.5, and then 1.5 + (1.5 + 0.5) / 2


def test_the_energy_and_straightness_of_a_bent_path_by_hand():
    """Steps by 1 and by 3 lead from 0 to 2: energy (1 + 9) / 2, straightness ((1 - 2)^2 + (3 - 2)^2) / 2."""
    paths = trace(lambda x, t: torch.full_like(x, 1.0 if t == 0 else 3.0), torch.zeros(1, 1), 2)
    assert (paths.end.item(), paths.energy.item(), paths.straightness.item()) == (2.0, 5.0, 1.0)
    assert torch.equal(paths.end, solve(lambda x, t: torch.full_like(x, 1 + 4 * t), torch.zeros(1, 1), 2))


def test_the_closed_form_velocity_is_solved_to_the_data():
    data = np.random.default_rng(0).normal(size=(6, 2))

    def velocity(x, t):
        return torch.from_numpy(empirical_velocity(x.numpy(), data, t))

    ends = solve(velocity, torch.randn(8, 2, dtype=torch.float64), 100).numpy()
    distances = np.linalg.norm(ends[:, None] - data, axis=2).min(axis=1)
    assert distances.max() < 0.05


def test_minibatch_transport_is_the_cheapest_of_all_orders():
    generator = np.random.default_rng(0)
    x0, x1 = generator.normal(size=(2, 6, 2, 2))
    order = minibatch_ot(x0, x1)
    costs = [((x0 - x1[list(p)]) ** 2).sum() for p in itertools.permutations(range(6))]
    assert sorted(order) == list(range(6))
    assert ((x0 - x1[order]) ** 2).sum() == pytest.approx(min(costs))
