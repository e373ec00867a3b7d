"""Checks of tensors of tokens and times. They raise InputError, which begins with the argument's `name`.

Only `require_below` reads values, for which a GPU must finish its work; the other checks are cheap enough for
every training iteration.
"""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from pairflow.errors import InputError


def as_tokens(name: str, x: object, shape: Sequence[int] | None = None) -> Tensor:
    """Return `x` as int64 tokens of `shape`, by default any (B, N). Raise InputError on `name` otherwise."""
    x = as_integers(name, x)
    if shape is not None:
        require_shape(name, x, shape)
    elif x.ndim != 2:
        raise InputError(f"{name}: expected tokens (B, N), found shape {tuple(x.shape)}")
    return x


def as_integers(name: str, x: object) -> Tensor:
    """Return `x` as int64. Raise InputError unless it is a tensor of an integer dtype."""
    if not isinstance(x, Tensor):
        raise InputError(f"{name}: expected a torch tensor of integers, found {type(x).__name__}")
    if x.dtype == torch.bool or x.is_floating_point() or x.is_complex():
        raise InputError(f"{name}: expected an integer dtype, found {x.dtype}")
    return x.long()


def require_below(name: str, x: Tensor, symbols: int, low: int = 0) -> None:
    """Raise InputError unless all tokens lie in low..symbols-1."""
    if x.numel() and not low <= int(x.min()) <= int(x.max()) < symbols:
        wrong = x[(x < low) | (x >= symbols)][0]
        raise InputError(f"{name}: expected tokens in {low}..{symbols - 1}, found {int(wrong)}")


def require_shape(name: str, x: Tensor, shape: Sequence[int]) -> None:
    """Raise InputError unless x has this shape."""
    if x.shape != tuple(shape):
        raise InputError(f"{name}: expected shape {tuple(shape)}, found {tuple(x.shape)}")


def each_row(name: str, value: object, rows: int, dimensions: int = 2) -> Any:
    """Return times or noise levels, a tensor of one number or (B,), as a tensor with `dimensions` axes.

    It is (B, 1, ...), or (1, 1, ...) of one number. A Python number is returned as it is. Raises InputError,
    which begins with `name`, unless `value` is a number, or a tensor with one number or B = `rows` of them.
    """
    if isinstance(value, Real):
        return value
    if not isinstance(value, Tensor):
        raise InputError(f"{name}: expected a number or a tensor (B,), found {type(value).__name__}")
    if value.shape not in ((), (1,), (rows,)):
        raise InputError(f"{name}: expected a number or shape ({rows},), found shape {tuple(value.shape)}")
    return value.reshape(-1, *[1] * (dimensions - 1))
