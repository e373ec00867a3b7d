"""Denoisers: tokens x_t (B, N) and sigma = -log kappa (B,) in, logits (B, N, K) over x1 out."""

from pairflow.errors import InputError
from pairflow.networks.mlp import MLP
from pairflow.networks.transformer import Transformer

NETWORKS = {"mlp": MLP, "transformer": Transformer}


def build(settings, *, length, vocabulary_size):
    """The network that `settings` names: {"name": ..., then the constructor's own keywords}.

    Raises InputError for an unknown name.
    """
    arguments = dict(settings)
    name = arguments.pop("name")
    if name not in NETWORKS:
        raise InputError(f"network: expected one of {', '.join(sorted(NETWORKS))}, found {name!r}")
    return NETWORKS[name](length=length, vocabulary_size=vocabulary_size, **arguments)
