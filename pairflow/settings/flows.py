"""The two kinds of flow: discrete, of tokens, and continuous, of real numbers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pairflow.settings.sampling import FlowSampleSettings, SampleSettings, Update


@dataclass(frozen=True)
class Flow:
    """A kind of flow. `name` is the value of an experiment's setting `flow`.

    `tokens`: True if its states are tokens, False if they are real numbers. `rows` and `pairs`: the kinds of
    table for its data, and for its pairs of noise and data. `losses`: the names of its training losses.
    `sampling`: the class of the settings for drawing samples. `keys` and `protocol`: the settings of an
    experiment and of an evaluation that only this flow has. `baselines`: the methods to which report pages
    compare others.
    """

    name: str
    tokens: bool
    rows: tuple[str, ...]
    pairs: str
    losses: tuple[str, ...]
    sampling: type[SampleSettings] | type[FlowSampleSettings]
    keys: tuple[str, ...]
    protocol: tuple[str, ...]
    baselines: tuple[str, ...]


DISCRETE = Flow(
    name="discrete",
    tokens=True,
    rows=("tokens",),
    pairs="pairs",
    losses=("nelbo", "cross_entropy"),
    sampling=SampleSettings,
    keys=("noise", "correlation", "pairing.coverage", "pairing.subsets", "training.ignore_padding"),
    protocol=(*Update.model_fields, "temperatures"),
    baselines=("udlm",),
)
CONTINUOUS = Flow(
    name="continuous",
    tokens=False,
    rows=("vectors", "tokens"),
    pairs="vector pairs",
    losses=("velocity",),
    sampling=FlowSampleSettings,
    keys=(),
    protocol=(),
    baselines=("condot", "ot"),
)
FLOWS = {flow.name: flow for flow in (DISCRETE, CONTINUOUS)}
LOSSES = {loss: flow for flow in FLOWS.values() for loss in flow.losses}

if TYPE_CHECKING:
    FlowName = str
    LossName = str
else:
    FlowName, LossName = Literal[tuple(FLOWS)], Literal[tuple(LOSSES)]
