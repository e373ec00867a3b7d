"""Draws rows that fit together as wholes, although the laws of their positions are independent.

A sampler's last step has a law p_i for each position i. Of rows x with the probability prod_i p_i(x^i), a
grammar keeps those that a finite automaton accepts. They are drawn exactly, as paths of a hidden Markov model
are, and the Viterbi algorithm finds the most likely one (Rabiner 1989, doi 10.1109/5.18626).
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor


@dataclass(frozen=True, eq=False)
class Grammar:
    """The rows that an automaton accepts: it begins in state 0, and each symbol of a row moves it on.

    Attributes:
        length: N, the number of positions.
        classes: (K,) int64, the class of each symbol, of C; symbols of a class move the automaton alike.
        following: (S, C) int64, the state after a symbol of each class; -1 if the class may not follow.
        final: (S,) bool, the states in which a row may end.
    """

    length: int
    classes: Tensor
    following: Tensor
    final: Tensor

    def draw(self, probabilities: Tensor, generator: Generator | None = None) -> Tensor:
        """Draw rows by the law prod_i p_i(x^i) of accepted rows, normalised.

        Args:
            probabilities: p (B, N, K) float64, or rows one after another (1, B N, K), not always normalised.
            generator: random numbers, on the device of p.

        Returns:
            Tokens (B, N). A row for which p accepts nothing is drawn as if there were no grammar.
        """
        p = probabilities.reshape(-1, self.length, probabilities.shape[-1])
        weights = p.new_zeros((*p.shape[:-1], self.following.shape[1])).index_add_(-1, self._classes(p), p)
        classes, possible = self._path(weights, generator)
        return draw(self._masked(p, classes, possible), generator)

    def mode(self, probabilities: Tensor) -> Tensor:
        """Return the likeliest accepted rows (B, N), or the likeliest symbols where p accepts none."""
        p = probabilities.reshape(-1, self.length, probabilities.shape[-1])
        weights = p.new_zeros((*p.shape[:-1], self.following.shape[1]))
        weights.scatter_reduce_(-1, self._classes(p).expand_as(p), p, "amax")
        return self._masked(p, *self._path(weights, greedy=True)).argmax(dim=-1)

    def _classes(self, p: Tensor) -> Tensor:
        return self.classes.to(p.device)

    def _masked(self, p: Tensor, classes: Tensor, possible: Tensor) -> Tensor:
        """Return p (B, N, K) with 0 for all symbols of other classes than `classes` (B, N) has there.

        Rows that are not `possible` (B,) bool, because no accepted row has a positive weight, stay as they
        are.
        """
        others = (self._classes(p) != classes[..., None]) & possible[:, None, None]
        return p.masked_fill(others, 0)

    def _path(
        self, weights: Tensor, generator: Generator | None = None, greedy: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Draw the classes (B, N) of the symbols of accepted rows, or return the likeliest ones if `greedy`.

        The weight of a row is the product of the weights of its symbols' classes, which are (B, N, C). Also
        returns for each row (B,) whether any accepted row has a positive weight; if not, its classes mean
        nothing.
        """
        following = self.following.to(weights.device)
        allowed, after = following >= 0, following.clamp(min=0)
        # For each position, from the last one on: the weight of all ways, or of the best one, from each state
        # to a final one, (B, S).
        ends = [self.final.to(weights).expand(len(weights), -1)]
        for w in reversed(weights.unbind(1)):
            ways = w[:, None] * ends[-1][:, after] * allowed  # (B, S, C)
            end = ways.amax(-1) if greedy else ways.sum(-1)
            # Only ratios count. Without this division the weights of long rows would underflow.
            ends.append(end / end.amax(-1, keepdim=True).clamp(min=torch.finfo(end.dtype).tiny))
        possible = ends[-1][:, 0] > 0
        state = torch.zeros(len(weights), dtype=torch.long, device=weights.device)
        classes = []
        for w, end in zip(weights.unbind(1), reversed(ends[:-1]), strict=True):
            ways = w * end.gather(1, after[state]) * allowed[state]  # (B, C)
            classes.append(ways.argmax(-1) if greedy else draw(ways, generator))
            state = after[state, classes[-1]]
        return torch.stack(classes, dim=1), possible


def draw(probabilities: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw the symbol of each position (B, N) by probabilities (B, N, K), whose sum need not be exactly 1."""
    cumulative = probabilities.cumsum(dim=-1)  # (B, N, K)
    total = cumulative[..., -1:]
    u = torch.rand(total.shape, generator=generator, device=total.device, dtype=total.dtype)
    # With right=False u = 0 would draw the first symbol, even if its probability is 0.
    symbols = torch.searchsorted(cumulative, u * total, right=True)[..., 0]  # (B, N)
    # u * total can round up to total, which lies behind the last symbol.
    return symbols.clamp_(max=probabilities.shape[-1] - 1)
