"""Couplings of sources and data in a batch, one per module; `config.BASES` assigns them to methods."""

from pairflow.flow.couple.coupling import Coupling
from pairflow.flow.couple.independent import Independent
from pairflow.flow.couple.transport import Transport

COUPLINGS: dict[str, type[Coupling]] = {
    "independent": Independent,
    "transport": Transport,
}
