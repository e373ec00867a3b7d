"""Continuous flow matching: the straight path, its loss, and solvers of the flow's equation.

    x_t = (1 - t) x0 + t x1,   v_t(x) = E[x1 - x0 | x_t = x],   dx/dt = v_t(x)

See docs/continuous.md, "Path, loss and solvers". Noise is at t = 0, data are at t = 1. Rows x0, x1 and x
are (B, ...): vectors or images.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from pairflow.arguments import checked_choice, checked_integer
from pairflow.config.sampling import EULER, HEUN, SOLVERS
from pairflow.flow.arguments import each_row, require_shape

Velocity = Callable[[Tensor, float], Tensor]
"""(x, t) -> v_t(x), with x (B, ...) and a time t in [0, 1] for all rows."""

MOST_STEPS = 10**6


class Trajectories(NamedTuple):
    """Where paths end, and what they cost, one number for each row."""

    end: Tensor  # (B, ...), the solution at t = 1
    energy: Tensor  # (B,), the integral over t of |v|^2
    straightness: Tensor  # (B,), the integral over t of |v - (x1 - x0)|^2; it is 0 for a straight path


def interpolate(x0: Tensor, x1: Tensor, t: Tensor | float) -> Tensor:
    """x_t = (1 - t) x0 + t x1, for times t (B,) or a number; InputError for rows of other shapes."""
    require_shape("x1", x1, x0.shape)
    t = each_row("t", t, len(x0), x0.ndim)
    return (1 - t) * x0 + t * x1


def velocity_loss(predicted: Tensor, x0: Tensor, x1: Tensor) -> Tensor:
    """The mean of |predicted - (x1 - x0)|^2 over the numbers of a row. Returns (B,).

    It is minimised by the velocity E[x1 - x0 | x_t = x]. InputError unless all three have one shape.
    """
    require_shape("x1", x1, x0.shape)
    require_shape("predicted", predicted, x0.shape)
    return (predicted - (x1 - x0)).square().flatten(1).mean(dim=1)


def solve(velocity: Velocity, x0: Tensor, steps: int, solver: str = EULER) -> Tensor:
    """The solution (B, ...) at t = 1 of dx/dt = v_t(x) from x0 at t = 0, in `steps` equal steps.

    "euler" calls the velocity once per step, "heun" (the trapezoidal rule) twice. InputError for another
    solver, fewer than one step, or a velocity of another shape than x.
    """
    return trace(velocity, x0, steps, solver).end


def trace(velocity: Velocity, x0: Tensor, steps: int, solver: str = EULER) -> Trajectories:
    """`solve`, with the energy and the straightness of each path.

    Both are sums over the solver's own steps, of the velocities v_s that it moves by:

        energy       = (1/T) sum_s |v_s|^2
        straightness = (1/T) sum_s |v_s - (x_1 - x_0)|^2 = energy - |x_1 - x_0|^2

    The second form follows because x_1 - x_0 is the mean of the v_s.
    """
    checked_choice("solver", solver, SOLVERS)
    steps = checked_integer("steps", steps, 1, MOST_STEPS)
    x, energy = x0, torch.zeros(len(x0), dtype=torch.float64, device=x0.device)
    for step in range(steps):
        slope = _slope(velocity, x, step, steps, solver)
        energy += _squares(slope) / steps
        x = x + slope / steps
    return Trajectories(x, energy, (energy - _squares(x - x0)).clamp_(min=0))


def _slope(velocity: Velocity, x: Tensor, step: int, steps: int, solver: str) -> Tensor:
    """The velocity that a step of 1 / `steps` moves by."""
    slope = velocity(x, step / steps)
    require_shape("velocity", slope, x.shape)
    if solver == HEUN:
        slope = (slope + velocity(x + slope / steps, (step + 1) / steps)) / 2
    return slope


def _squares(x: Tensor) -> Tensor:
    """|x|^2 of each row (B, ...), float64."""
    return x.double().square().flatten(1).sum(dim=1)
