"""Networks of the user's own: classes that `pairflow.train` and `pairflow.load` take by themselves."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter, signature
from typing import Any, Literal

from pydantic import create_model
from torch import nn

from pairflow.arguments import checked_choice
from pairflow.config import DISCRETE, NETWORKS
from pairflow.config.networks import SHIPPED, NetworkSettings
from pairflow.errors import InputError, Interrupted
from pairflow.files import Json
from pairflow.networks import DENOISERS

_GIVEN = ("length", "vocabulary_size", "shape", "mask", "classes")  # see `networks.build`


def settings_of(network: object) -> Json | None:
    """Return the settings of a network that is given by its name, its class or its settings; None for None.

    A name or a class gives {"name": ...}; settings are copied. A class, also as the name in settings, is
    registered, and its name in lower case takes its place. Raises InputError for an unknown name, settings
    without a name, a network that is an object, or a class that `register` refuses.
    """
    if network is None:
        return None
    settings = dict(network) if isinstance(network, Mapping) else {"name": network}
    if isinstance(settings.get("name"), nn.Module):
        raise InputError(f"network: expected a class, found an object of {type(settings['name']).__name__}")
    if isinstance(kind := settings.get("name"), type) and issubclass(kind, nn.Module):
        settings["name"] = register(kind)
    if "name" not in settings:
        raise InputError(
            f"network: expected a name, a class, or settings with a name, found {network!r:.200}"
        )
    checked_choice("network", settings["name"], NETWORKS)
    return settings


@contextmanager
def blamed(name: str) -> Iterator[None]:
    """Turn errors of a user's own network `name` in the block into an InputError on what `forward` takes."""
    try:
        yield
    except (InputError, Interrupted, OSError, MemoryError):
        raise
    except Exception as error:
        if name in SHIPPED:
            raise
        called = "forward(x_t, sigma), with tokens (B, N) and numbers (B,), has to return logits (B, N, K)"
        raise InputError(f"network {name}: {type(error).__name__}: {error}; {called}") from error


def register(network: type[nn.Module]) -> str:
    """Make a class known as a network of discrete flows, for this process; return its name in lower case.

    Settings that users write may have the keywords of its constructor, other than the row's sizes, which
    pairflow passes. Raises InputError if pairflow has a network of that name, or if its constructor takes
    *args or **kwargs.
    """
    name = network.__name__.lower()
    if name in SHIPPED:
        raise InputError(f"network: pairflow has a network {name}; rename the class {network.__name__}")
    # The constructor's keywords become the fields of a class of settings, which checks what users write.
    fields: dict[str, Any] = {}
    for key, parameter in signature(network, eval_str=True).parameters.items():
        if key in _GIVEN:
            continue
        if parameter.kind not in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            raise InputError(f"network: {network.__name__}: expected keywords with names, found {parameter}")
        kind = Any if parameter.annotation is Parameter.empty else parameter.annotation
        fields[key] = (kind, ... if parameter.default is Parameter.empty else parameter.default)
    named: Any = (Literal[name], name)
    made: Any = create_model(network.__name__, __base__=NetworkSettings, name=named, **fields)
    made.flows, made.in_slices = (DISCRETE.name,), False
    NETWORKS[name], DENOISERS[name] = made, network
    return name
