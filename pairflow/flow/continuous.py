"""Continuous flow matching (Lipman et al. 2023): the straight path, its loss, and solvers of the flow's ODE.

    x_t = (1 - t) x0 + t x1,   v_t(x) = E[x1 - x0 | x_t = x],   dx/dt = v_t(x)

See docs/continuous.md, "Path, loss and solvers". Noise is at t = 0, data are at t = 1. Rows x0, x1 and x
are (B, ...): vectors or images.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from pairflow.arguments import checked_choice, checked_integer
from pairflow.flow.arguments import each_row, require_shape
from pairflow.settings.sampling import EULER, HEUN, SOLVERS

Velocity = Callable[[Tensor, float], Tensor]
"""A function of points x (B, ...) and of a time t in [0, 1] for all rows; it returns v_t(x) (B, ...)."""

MOST_STEPS = 10**6


class Trajectories(NamedTuple):
    """The ends of B trajectories, and two measures of each."""

    end: Tensor  # (B, ...), the solution at t = 1
    energy: Tensor  # (B,), the integral over t of |v|^2
    straightness: Tensor  # (B,), the integral over t of |v - (x1 - x0)|^2; it is 0 for a straight path


def interpolate(x0: Tensor, x1: Tensor, t: Tensor | float) -> Tensor:
    """Return the points of the straight paths, x_t = (1 - t) x0 + t x1.

    Args:
        x0: noise (B, ...).
        x1: data, in the shape of x0.
        t: times (B,), or one for all rows, in [0, 1].

    Returns:
        x_t, in the shape of x0.

    Raises:
        InputError: if shapes do not fit.
    """
    require_shape("x1", x1, x0.shape)
    t = each_row("t", t, len(x0), x0.ndim)
    return (1 - t) * x0 + t * x1


def velocity_loss(predicted: Tensor, x0: Tensor, x1: Tensor) -> Tensor:
    """Return the loss of conditional flow matching: the mean of (predicted - (x1 - x0))^2.

    Its minimum is the velocity E[x1 - x0 | x_t = x] (Lipman et al. 2023).

    Args:
        predicted: the network's velocities (B, ...) at x_t.
        x0: noise, in the same shape.
        x1: data, in the same shape.

    Returns:
        (B,), the loss of each row.

    Raises:
        InputError: if the shapes differ.
    """
    require_shape("x1", x1, x0.shape)
    require_shape("predicted", predicted, x0.shape)
    return (predicted - (x1 - x0)).square().flatten(1).mean(dim=1)


def solve(velocity: Velocity, x0: Tensor, steps: int, solver: str = EULER) -> Tensor:
    """Solve dx/dt = v_t(x) from x0 at t = 0 to t = 1; return the `end` of `trace`, with its arguments."""
    return trace(velocity, x0, steps, solver).end


def trace(velocity: Velocity, x0: Tensor, steps: int, solver: str = EULER) -> Trajectories:
    """Integrate dx/dt = v_t(x) from t = 0 to 1 in T equal steps, and measure each trajectory.

    The two measures are sums over the solver's steps, with the velocity v_s of each:

        energy       = (1/T) sum_s |v_s|^2
        straightness = (1/T) sum_s |v_s - (x_1 - x_0)|^2 = energy - |x_1 - x_0|^2

    The second form follows because x_1 - x_0 is the mean of the v_s.

    Args:
        velocity: the function (x, t) that returns v_t(x), in the shape of x.
        x0: starting points (B, ...) at t = 0.
        steps: T, at least 1.
        solver: "euler" calls the velocity once per step, "heun" (the trapezoidal rule) twice.

    Returns:
        The ends at t = 1, and energy and straightness, the S of rectified flow (Liu et al. 2023).

    Raises:
        InputError: for an unknown solver, a bad number of steps, or a velocity of the wrong shape.
    """
    checked_choice("solver", solver, SOLVERS)
    steps = checked_integer("steps", steps, 1, MOST_STEPS)
    x, energy = x0, torch.zeros(len(x0), dtype=torch.float64, device=x0.device)
    for step in range(steps):
        slope = _slope(velocity, x, step, steps, solver)
        energy += _squares(slope) / steps
        # An update in place would change x0, which is the same tensor at first and is needed after the loop.
        x = x + slope / steps
    # Rounding can make the difference of a straight trajectory slightly negative.
    return Trajectories(x, energy, (energy - _squares(x - x0)).clamp_(min=0))


def _slope(velocity: Velocity, x: Tensor, step: int, steps: int, solver: str) -> Tensor:
    """Return the velocity (B, ...) with which x (B, ...) moves from t = step / steps on, for one step.

    With Heun's method it is the mean of the velocities at both ends of the step.
    """
    slope = velocity(x, step / steps)
    require_shape("velocity", slope, x.shape)
    if solver == HEUN:
        slope = (slope + velocity(x + slope / steps, (step + 1) / steps)) / 2
    return slope


def _squares(x: Tensor) -> Tensor:
    """Return |x|^2 of each row of x (B, ...): (B,) float64."""
    # Float64 is needed, because `trace` subtracts two nearly equal sums where paths are straight.
    return x.double().square().flatten(1).sum(dim=1)
