"""Checks whether the settings of an experiment fit together. Single settings are checked by their classes."""

import functools

from pairflow.arguments import checked_choice, nearest
from pairflow.config.experiment import CommonExperiment
from pairflow.config.methods import BASES, INDEPENDENT, parse_method
from pairflow.config.training import DISTILLATIONS, FREQUENCIES, require_whole_batches
from pairflow.kinds.registry import SETTINGS
from pairflow.settings.check import Settings
from pairflow.settings.conditions import ONE_PROPERTY, read_conditions
from pairflow.settings.flows import FLOWS, Flow

# Names of evaluations that metric rows of other measurements have.
RESERVED = ("coupling", "coverage", "correlation", "likelihood", "condition")


def require_consistency(experiment: CommonExperiment) -> CommonExperiment:
    """Return `experiment`. Raise ValueError, which names the first settings that do not fit together."""
    for require in (
        _conditions,
        _methods,
        _distillation,
        _kind,
        _flow,
        experiment.data.require_consistency,
        _evaluations,
        _correlation,
    ):
        require(experiment)
    return experiment


def _conditions(experiment: CommonExperiment) -> None:
    for name, evaluation in experiment.evaluations.items():
        where, known = f"evaluations.{name}.condition", experiment.data.conditions()
        if evaluation.condition and not known:
            raise ValueError(f"{where}: needs the settings data.condition")
        read_conditions(evaluation.condition, known, where)
    if len(experiment.data.conditions()) > 1:
        for name in experiment.methods:
            if parse_method(name).couple != INDEPENDENT:
                raise ValueError(f"methods: '{name}' takes {ONE_PROPERTY}")


def _methods(experiment: CommonExperiment) -> None:
    for name in experiment.methods:
        method = parse_method(name)
        for distillation in method.distillations:
            if getattr(experiment.distillation, distillation) is None:
                raise ValueError(f"methods: '{name}' needs the settings distillation.{distillation}")
        if experiment.noise == FREQUENCIES and "dcd" in method.distillations:
            raise ValueError(
                f"methods: '{name}' needs noise: uniform, the noise of DCD's duality with Gaussian noise"
            )
        if method.pairs_name and method.pairs_name not in experiment.pairs:
            raise ValueError(
                f"methods: '{name}' needs a file of pairs{nearest(method.pairs_name, experiment.pairs)}: "
                f"set pairs: {{{method.pairs_name}: <file>}}"
            )
    if experiment.noise == FREQUENCIES and experiment.pairing.coverage:
        raise ValueError("pairing.coverage: needs noise: uniform, from which its forward samples start")
    for key in ("methods", "seeds"):
        values = getattr(experiment, key)
        if len(set(values)) < len(values):
            raise ValueError(f"{key}: {list(values)} contains a duplicate")


def _distillation(experiment: CommonExperiment) -> None:
    for name in DISTILLATIONS:
        settings = getattr(experiment.distillation, name)
        for base in settings.learning_rate_of if settings else ():
            checked_choice(f"distillation.{name}.learning_rate_of", base, BASES)


def _kind(experiment: CommonExperiment) -> None:
    kind = experiment.data.kind
    for settings in SETTINGS:
        for key in settings.experiment_keys.model_fields:
            if settings.kind != kind and getattr(experiment, key) is not None:
                raise ValueError(f"{key}: only for {settings.kind}, and the data are {kind}")


def _flow(experiment: CommonExperiment) -> None:
    flow = FLOWS[experiment.flow]
    for name in experiment.methods:
        if flow.name not in parse_method(name).flows:
            bases = ", ".join(name for name, base in BASES.items() if flow.name in base.flows)
            raise ValueError(f"methods: '{name}' has no {flow.name} flow; expected one of {bases}")
    if experiment.training.loss not in flow.losses:
        expected, loss = " or ".join(flow.losses), experiment.training.loss
        raise ValueError(f"training.loss: expected {expected} in a {flow.name} flow, found {loss}")
    if flow.name not in experiment.data.flows:
        raise ValueError(f"data: a {flow.name} flow is not for {experiment.data.kind}; see `flow`")
    if flow.name not in experiment.network.flows:
        raise ValueError(f"network: '{experiment.network.name}' is no network of a {flow.name} flow")
    for other in FLOWS.values():
        if other != flow:
            _keys_are_unset(experiment, other)
    require_whole_batches(experiment.pairing.pool, experiment.training.batch_size)


def _keys_are_unset(experiment: CommonExperiment, flow: Flow) -> None:
    """Raise ValueError if a setting of the experiment that only `flow` has differs from its default. The
    message names the first such setting."""
    keys: list[tuple[str, Settings, str]] = [("", experiment, key) for key in flow.keys]
    for name, evaluation in experiment.evaluations.items():
        keys += [(f"evaluations.{name}.", evaluation, key) for key in flow.protocol]
    for where, start, key in keys:
        *sections, last = key.split(".")
        settings = functools.reduce(getattr, sections, start)
        if getattr(settings, last) != type(settings).model_fields[last].default:
            raise ValueError(f"{where}{key}: only for {flow.name} flows, and flow is {experiment.flow}")


def _evaluations(experiment: CommonExperiment) -> None:
    for name in experiment.evaluations:
        if name in RESERVED:
            raise ValueError(f"evaluations: '{name}' is a reserved name; choose another one")
        for method in experiment.evaluated(name):
            checked_choice(f"evaluations.{name}.methods", method, experiment.methods)


def _correlation(experiment: CommonExperiment) -> None:
    for method in (experiment.correlation and experiment.correlation.methods) or ():
        checked_choice("correlation.methods", method, experiment.methods)
        if parse_method(method).corruption == "absorbing":
            raise ValueError(f"correlation.methods: '{method}' always starts from the same state, all masks")
