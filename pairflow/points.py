"""What points may be: rows (M, ...) of finite real numbers, such as vectors or images."""

import numpy as np
from numpy.typing import ArrayLike

from pairflow.arguments import require_unmasked
from pairflow.errors import InputError

LARGEST = 1e12  # of a number's absolute value, so that squared distances stay finite in float32


def checked_points(points: ArrayLike, name: str = "data") -> np.ndarray:
    """`points` as an array (M, ...) of finite floating-point numbers, M and the size of a row at least 1.

    InputError, which begins with `name`, names the first number that is not finite, or too large.
    """
    require_unmasked(points, name)
    try:
        points = np.asarray(points)
    except ValueError:
        raise InputError(f"{name}: expected rows of one shape, found rows of several") from None
    except (TypeError, RuntimeError) as error:  # a tensor that NumPy cannot read says why
        raise InputError(f"{name}: cannot be read as a NumPy array: {error}") from None
    if points.dtype.kind != "f":
        raise InputError(f"{name}: expected a floating-point dtype, found {points.dtype}")
    if points.ndim < 2:
        raise InputError(f"{name}: expected an array (rows, ...), found {points.ndim} dimension(s)")
    if not points.size:
        raise InputError(f"{name}: expected at least one row and one number, found shape {points.shape}")
    flat = points.reshape(len(points), -1)
    if not (float(flat.max()) <= LARGEST and float(flat.min()) >= -LARGEST):  # a NaN is not below anything
        row, position = np.argwhere(~(np.abs(flat.astype(np.float64)) <= LARGEST))[0]
        raise InputError(
            f"{name}: row {row}, position {position}: expected a finite number of at most {LARGEST:g}, "
            f"found {flat[row, position]}"
        )
    return points
