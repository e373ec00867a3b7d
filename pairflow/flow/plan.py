"""The plan of a sampling, which goes from the caller to the sampler."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pairflow.arguments import checked_choice, checked_integer, checked_number
from pairflow.flow.arguments import as_integers, each_row, require_shape
from pairflow.flow.grammar import Grammar
from pairflow.flow.posterior import PREDICTIONS
from pairflow.flow.schedule import DIFFUSION, Linear

MOST_STEPS = 10**6
FREE = -1  # marks a position that is sampled, among fixed symbols
LAST_TIME = 1 - 1e-5  # at t = 1 the conversion between the two kinds of denoiser diverges


@dataclass(frozen=True, kw_only=True, eq=False)
class SamplingPlan:
    """How source states x0 (B, N) become samples: everything but the network and the random numbers.

    Attributes:
        steps: T, the number of updates, 1 to 10^6, at uniform times from t = 0 (noise) to 1 - 1e-5 (data).
        prediction: the kind of denoiser that the network is, "leave_one_out" or "posterior".
        sampler: the name of the sampler, "ancestral" or "euler".
        conversion: "exact" converts the prediction to the kind that the sampler needs, "none" does not.
        greedy_tail: end with the most likely symbols at the last time, in one more call of the network, as
            the greedy-tail sampler of Duo (Sahoo et al. 2025) does. For an exact leave-one-out this is the
            mode of each token given all other tokens, so samples are sharper than the data.
        temperature: tau, 0.01 to 100. It divides the logits, before any conversion; their argmax stays.
        guidance: gamma, 0 to 100, the weight of classifier-free guidance towards the labels. 0 ignores them
            and 1 is the conditional network; each calls only one denoiser. See `Sampler.transition`.
        given: fixed symbols (N,), or (B, N) of each row, -1 (FREE) where a position is sampled.
        labels: what a conditional network is asked for, (B, ...), or one integer () for all rows.
        grammar: an automaton of the allowed rows: the last update and the greedy tail make no other ones.
        schedule: kappa(t). If it starts at more than 1e-3, x0 are partly noised data.

    Raises:
        InputError: if a value is unknown or out of range.
    """

    steps: int
    prediction: str
    sampler: str = "ancestral"
    conversion: str = "exact"
    greedy_tail: bool = True
    temperature: float = 1.0
    guidance: float = 1.0
    given: Tensor | None = None
    labels: Tensor | None = None
    grammar: Grammar | None = None
    schedule: Linear = DIFFUSION

    def __post_init__(self) -> None:
        checked_integer("steps", self.steps, 1, MOST_STEPS)
        checked_choice("prediction", self.prediction, PREDICTIONS)
        checked_choice("conversion", self.conversion, ("exact", "none"))
        checked_number("temperature", self.temperature, 0.01, 100)
        checked_number("guidance", self.guidance, 0, 100)

    @property
    def times(self) -> list[float]:
        """The steps + 1 uniform times from 0 to 1 - 1e-5, in float64."""
        # In float32 the last 1 - kappa, about 1e-5, would be wrong by up to 0.3 %.
        return torch.linspace(0, LAST_TIME, self.steps + 1, dtype=torch.float64).tolist()

    def fit(self, x0: Tensor) -> "SamplingPlan":
        """Return the plan with its `given` symbols and `labels` on the device of x0 (B, N).

        Raises InputError if they are not integers of a shape that fits x0, or are real labels for another
        number of rows.
        """
        given, labels = self.given, self.labels
        if given is not None:
            given = as_integers("given", given).to(x0.device)
            require_shape("given", given, x0.shape if given.ndim == 2 else x0.shape[1:])
        if labels is not None and labels.ndim < 2:
            labels = as_integers("labels", each_row("labels", labels, len(x0), dimensions=1))
        elif labels is not None:
            require_shape("labels", labels, (len(x0), *labels.shape[1:]))
        return replace(self, given=given, labels=None if labels is None else labels.to(x0.device))
