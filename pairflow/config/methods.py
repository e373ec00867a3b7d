"""Parses method names, `base[-sub<P>][+distillation]*`. For a user's pairs the base is `pairs-<name>`."""

import re
from typing import Literal, NamedTuple, get_args

from pydantic import Field

from pairflow.config.training import DISTILLATIONS
from pairflow.errors import InputError
from pairflow.settings.check import Settings, nearest
from pairflow.settings.flows import CONTINUOUS, DISCRETE

INDEPENDENT = "independent"
Pairing = Literal["pair", "potentials", "adopt"]  # the rules that make pairs


class Base(NamedTuple):
    """A base method: a way to pair sources (rows of noise) with data rows, on which a model is then trained.

    Attributes:
        corruption: the type of noise (see `flow.corruption`), None if the method is not discrete.
        pairing: the rule of the workflow that makes the file of pairs which the training needs, None if it
            needs none. `pair` computes pairs row by row; `potentials` also finds the potentials of
            semidiscrete transport; `adopt` checks a file of the user.
        closed_form: whether Algorithm 1 of PairFlow makes that file, with settings for the numbers of steps
            and of subsets that are paired separately.
        couple: the coupling in `flow.couple` that assigns data rows to the sources of a batch.
        flows: the flows that it supports.
        learns: the noise or the pairs that it learns from, in words for report pages.
        style: the colour and marker in charts that are reserved for it, if any.
    """

    corruption: str | None
    pairing: Pairing | None = None
    closed_form: bool = False
    couple: str = INDEPENDENT
    flows: tuple[str, ...] = (DISCRETE.name,)
    learns: str = "random sources"
    style: tuple[str, str] | None = None

    @property
    def coupled(self) -> bool:
        """Whether the training needs a file of pairs."""
        return self.pairing is not None

    @property
    def user_pairs(self) -> bool:
        """Whether the user makes the pairs, and gives them a name in the configuration."""
        return self.pairing == "adopt"

    @property
    def balanced(self) -> bool:
        """Whether the training pairs new sources in every batch, by the potentials in the file of pairs."""
        return self.pairing == "potentials"

    @property
    def independent(self) -> bool:
        """Whether every training iteration draws new sources, independently of the data rows."""
        return not self.coupled and self.couple == INDEPENDENT

    @property
    def uninformed(self) -> bool:
        """Whether sources are independent of their data rows, whether drawn once or in every iteration."""
        return self.couple == INDEPENDENT and not (self.closed_form or self.user_pairs)


_BOTH, _REAL = (DISCRETE.name, CONTINUOUS.name), (CONTINUOUS.name,)
_BY_TRANSPORT = "each batch paired by optimal transport"
BASES = {
    "mdlm": Base("absorbing", learns="masks", style=("purple", "D")),
    "udlm": Base("uniform", style=("blue", "s")),
    "random": Base("uniform", pairing="pair", style=("green", "^")),
    "pairflow": Base("uniform", pairing="pair", closed_form=True, flows=_BOTH, style=("vermillion", "o")),
    "pairs": Base("uniform", pairing="adopt"),
    "condot": Base(None, flows=_REAL, style=("purple", "D")),
    "ot": Base("uniform", couple="transport", flows=_BOTH, learns=_BY_TRANSPORT, style=("sky", "h")),
    "sdot": Base(
        "uniform",
        pairing="potentials",
        couple="semidiscrete",
        flows=_BOTH,
        learns="sources by semidiscrete transport",
        style=("orange", "p"),
    ),
}
PAIRINGS = {  # rule that makes pairs -> the base methods of these pairs
    rule: [name for name, base in BASES.items() if base.pairing == rule] for rule in get_args(Pairing)
}

_FORMS = [f"{name}-sub<P>" for name, base in BASES.items() if base.closed_form]
_FORMS += [f"{name}-<name>" for name, base in BASES.items() if base.user_pairs]
KNOWN = ", ".join(name for name, base in BASES.items() if not base.user_pairs) + f", {' and '.join(_FORMS)}"
_METHOD = re.compile(
    r"(?P<base>[a-z]+)(-sub(?P<subsets>[1-9][0-9]{0,8})|-(?P<pairs_name>[a-z0-9]+))?(?P<distillations>(\+[a-z]+)*)"
)


class Method(Settings):
    """A parsed method name: its `base`, the number of `subsets` (P), and its `distillations` in order.

    `pairs_name` is the name that the configuration gives to a user's pairs.
    """

    name: str
    base: str
    subsets: int = Field(1, ge=1, le=10**9)
    pairs_name: str | None = None
    distillations: tuple[str, ...] = ()

    @property
    def coupling(self) -> str | None:
        """The name of the pairs on which the first training learns, such as `pairflow-sub4` for the file
        pairs/pairflow-sub4.parquet. None if it learns without pairs."""
        if not BASES[self.base].coupled:
            return None
        if self.pairs_name:
            return f"{self.base}-{self.pairs_name}"
        return self.base if self.subsets == 1 else f"{self.base}-sub{self.subsets}"

    @property
    def corruption(self) -> str:
        """The type of noise in a discrete flow. Raises InputError for a method of continuous flows only."""
        if (corruption := BASES[self.base].corruption) is None:
            raise InputError(f"'{self.name}' is a method of continuous flows, which corrupt no tokens")
        return corruption

    @property
    def couple(self) -> str:
        """The coupling in `flow.couple` that assigns data rows to the sources of a batch."""
        return BASES[self.base].couple

    @property
    def flows(self) -> tuple[str, ...]:
        """The flows that the base, the number of subsets and the distillations all support."""
        flows = BASES[self.base].flows if self.subsets == 1 else (DISCRETE.name,)
        return tuple(
            flow for flow in flows if all(DISTILLATIONS[name].flow == flow for name in self.distillations)
        )

    @property
    def parent(self) -> str | None:
        """The method that the last distillation starts from; None if there is no distillation."""
        return self.name.rpartition("+")[0] or None

    @property
    def on_pairs(self) -> bool:
        """Whether the method trains on pairs that its parent model generates."""
        return bool(self.distillations) and DISTILLATIONS[self.distillations[-1]].on_pairs

    @property
    def lineage(self) -> list[str]:
        """The methods from the base to this one, such as udlm, udlm+redi, udlm+redi+redi."""
        return [*parse_method(self.parent).lineage, self.name] if self.parent else [self.name]


def tail_revises(method: str) -> bool:
    """Return whether the greedy tail, the last step of a sampler, can change a sample of a discrete flow.

    It hardly can if the noise is masks: only one position in 100,000 is still masked after the last update.
    An unknown name counts as a method with uniform noise.
    """
    base = BASES.get(re.split("[-+]", method)[0])
    return base is None or base.corruption != "absorbing"


def parse_method(name: str) -> Method:
    """Parse a method name. Raises InputError, which names the wrong part, if it is not valid."""
    match = _METHOD.fullmatch(name)
    if match is None or match["base"] not in BASES:
        near = nearest(match["base"] if match else name, BASES)
        raise InputError(f"unknown method '{name}'{near}: known are {KNOWN}")
    base = BASES[match["base"]]
    if match["subsets"] and not base.closed_form:
        raise InputError(f"unknown method '{name}': only pairflow has subsets")
    if match["pairs_name"] and not base.user_pairs:
        raise InputError(f"unknown method '{name}': known are {KNOWN}")
    if base.user_pairs and not match["pairs_name"]:
        raise InputError(f"method '{name}': your own pairs have a name, write '{match['base']}-<name>'")
    if match["subsets"] == "1":
        raise InputError(f"method '{name}': one subset is the full pairing, write 'pairflow'")
    distillations = tuple(match["distillations"].split("+")[1:])
    for distillation in distillations:
        if distillation not in DISTILLATIONS:
            near = nearest(distillation, DISTILLATIONS)
            raise InputError(f"unknown method '{name}'{near}: distillations are {', '.join(DISTILLATIONS)}")
    if distillations and base.corruption not in ("uniform", None):
        noise = f"{match['base']} has {base.corruption} noise"
        raise InputError(f"'{name}': distillations need uniform noise; {noise}")
    subsets = int(match["subsets"] or 1)
    shared: dict[str, object] = {"base": match["base"], "pairs_name": match["pairs_name"], "subsets": subsets}
    method = Method(name=name, distillations=distillations, **shared)
    if not method.flows:
        flows = {name.partition("+")[0]: Method(name=name, **shared).flows}
        flows |= {f"+{key}": (DISTILLATIONS[key].flow,) for key in distillations}
        parts = ", ".join(f"{part} is for {' and '.join(kinds)} flows" for part, kinds in flows.items())
        raise InputError(f"'{name}': its parts have no flow in common: {parts}")
    return method
