"""The settings behind the paper's tables, as in `protocol.yaml`, and where an experiment has others."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from pairflow.config import Experiment, Settings, check, parse_method
from pairflow.config.experiment import Data, Pairing
from pairflow.config.file import load, read_text
from pairflow.config.networks import Network
from pairflow.config.training import DISTILLATIONS, Distillations, Training
from pairflow.report.results import FinishedExperiment
from pairflow.settings.sampling import Correlation, Sampling

FILE = Path(__file__).with_name("protocol.yaml")
_FREE = (  # settings that change no value of the tables
    *("data.column", "data.max_too_long_share", "pairing.coverage*", "*.validate_every", "*.methods"),
    *(
        "evaluations.*.nfe",
        "evaluations.*.shown",
        "evaluations.*.temperatures",
        "evaluations.*.guidances",
        "distillation.*.ema_decay",
    ),  # an inherited average keeps the base's decay
)


class Protocol(Settings):
    """The settings of one data set's experiment; `free` are patterns of further ones that may differ.

    `unstated` is what its values depend on and the paper does not state, so that the settings are ours.
    """

    free: tuple[str, ...] = ()
    unstated: str = ""
    data: Data
    network: Network
    pairing: Pairing
    training: Training
    distillation: Distillations
    evaluations: dict[str, Sampling]
    correlation: Correlation | None = None


@cache
def protocols() -> dict[str, Protocol]:
    """Data set -> its settings."""
    return {name: check(Protocol, values, FILE) for name, values in load(read_text(FILE), FILE).items()}


def name_data(experiment: Experiment) -> str:
    """The data of an experiment as the paper's tables name them: those of LM1B by their length, too.

    MNIST with all grey levels is there only as real numbers.
    """
    data = experiment.data
    if data.source == "mnist" and experiment.flow == "continuous":
        return "mnist_continuous"
    return f"lm1b_n{getattr(data, 'length', 0)}" if data.source == "lm1b" else data.source


def settings_of_model(method: str) -> list[str]:
    """The sections of an experiment that a method's model depends on; `forward` needs only the data."""
    if method == "forward":
        return ["data"]
    parsed = parse_method(method)
    distillations = [f"distillation.{name}" for name in dict.fromkeys(parsed.distillations)]
    pairing = ["pairing"] if parsed.base == "pairflow" else []
    return ["data", "network", "training", *pairing, *distillations]


def differences(
    experiment: Experiment, sections: Sequence[str], renamed: Mapping[str, str] | None = None, base: str = ""
) -> list[str]:
    """A text for each setting in which an experiment on the paper's data differs from the protocol.

    `sections` are names such as `training` or `distillation.dcd`; `renamed` are further ones that have
    another name in the protocol: {"evaluations.quick": "evaluations.main"}. A distillation has the learning
    rate of a method's `base`.
    """
    data = name_data(experiment)
    if data not in protocols():
        return [f"the paper has no data {data}"]
    protocol = protocols()[data]
    pairs = {name: name for name in sections} | {**(renamed or {})}
    free = (*_FREE, *protocol.free)
    ours, theirs = (_of_base(settings, base) for settings in (experiment, protocol))
    return [
        text
        for own, other in pairs.items()
        for name, text in _compare(own, _section(ours, own), _section(theirs, other))
        if not any(fnmatch(name, pattern) for pattern in free)
    ]


def differences_of_models(experiment: Experiment) -> list[str]:
    """`differences` in the settings that any of an experiment's models depends on."""
    texts = [
        text
        for method in experiment.methods
        for text in differences(experiment, settings_of_model(method), base=parse_method(method).base)
    ]
    return [*dict.fromkeys(texts)]


@cache
def describe_scale(run: FinishedExperiment) -> str:
    """The scale of a run as its label says, unless that claims the paper's without its settings."""
    false_label = not run.reduced and differences_of_models(run.experiment)
    return "not the paper’s settings" if false_label else run.scale


def _of_base(settings: Experiment | Protocol, base: str) -> dict[str, Any]:
    values = settings.model_dump(mode="json")
    for name in DISTILLATIONS:
        if how := getattr(settings.distillation, name):
            values["distillation"][name] = how.of_base(base).model_dump(mode="json")
    return values


def _section(settings: Any, name: str) -> Any:
    for key in name.split("."):
        settings = (settings or {}).get(key)
    return settings


def _compare(name: str, ours: Any, theirs: Any) -> Iterator[tuple[str, str]]:
    """Names of settings with other values, and what to say; of different networks only that they are."""
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        if ours != theirs:
            yield name, f"{name} is {_say(ours)}, in the paper {_say(theirs)}"
        return
    same = ours.get("name") == theirs.get("name")
    for key in {**theirs, **ours} if same else ("name",):
        yield from _compare(f"{name}.{key}", ours.get(key), theirs.get(key))


def _say(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, dict):
        return "set"
    if isinstance(value, list):
        return f"[{', '.join(map(_say, value))}]"
    if isinstance(value, bool | str):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
