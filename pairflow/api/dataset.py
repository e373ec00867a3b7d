"""Pairs as a data set of torch, for a training loop of one's own."""

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch.utils.data import TensorDataset

from pairflow.api.own_data import plain
from pairflow.arguments import checked_integer
from pairflow.arrays import checked_pairs, checked_tokens
from pairflow.limits import MAX_VOCABULARY
from pairflow.pairing.pair import pair


class PairDataset(TensorDataset):
    """Token rows with their sources: item m is the pair (x0, x1) of row m, two int64 tensors (N,).

    Args:
        data: token rows (M, N), integers in [0, K), as an array, a tensor, a list, a table, or a Series or
            Arrow array of lists.
        vocabulary_size: K, the number of symbols.
        sources: the source of each row (M, N). Default: computed by `pairflow.pair`.
        steps: T, the number of backward steps of the pairing.
        subsets: P, the number of parts in which rows are paired, as in `pairflow.pair`.
        seed: the seed of the pairing.
        progress: whether to show a progress bar of the pairing.

    Attributes:
        tensors: x0 and x1, each (M, N).

    Raises:
        InputError: if an argument is out of range, or `sources` has another shape than `data`.

    Example:
        >>> pairs = pairflow.PairDataset([[0, 1, 2], [2, 1, 0]], vocabulary_size=3, progress=False)
        >>> x0, x1 = pairs[1]
    """

    def __init__(
        self,
        data: Any,
        *,
        vocabulary_size: int,
        sources: ArrayLike | None = None,
        steps: int = 20,
        subsets: int = 1,
        seed: int = 0,
        progress: bool = True,
    ):
        size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY)
        x1 = checked_tokens(plain(data), size, "data")
        if sources is None:
            how: dict[str, Any] = {"steps": steps, "subsets": subsets, "seed": seed, "progress": progress}
            sources = pair(x1, vocabulary_size=size, **how)
        pairs = checked_pairs(plain(sources), x1, size, ("sources", "data"))
        super().__init__(*(torch.from_numpy(rows.astype(np.int64)) for rows in pairs))

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The pairs as columns, for example for `datasets.Dataset.from_dict(pairs.columns)`."""
        return dict(zip(("x0", "x1"), (rows.numpy() for rows in self.tensors), strict=True))
