"""Settings of molecules on demand: scaffolds, variants, filters and properties."""

import math
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from pairflow.settings.sampling import CommonDemand

NOISES = 7  # shares of noise in a range, both ends included


def parse_range(text: str) -> tuple[float, float]:
    """Read a range LOW:HIGH. Returns its bounds, infinite if left out. Raises ValueError for other texts."""
    low, colon, high = text.partition(":")
    try:
        bounds = float(low or "-inf"), float(high or "inf")
    except ValueError:
        bounds = math.nan, math.nan
    if bounds[0] > bounds[1]:
        raise ValueError(f"expected the smaller number first, found {text!r}")
    if not colon or not (low or high) or not bounds[0] <= bounds[1]:
        raise ValueError(f"expected a range such as 1:3, 1: or :3, found {text!r}")
    return bounds


def _require_range(text: str) -> str:
    parse_range(text)
    return text


Range = Annotated[str, AfterValidator(_require_range)] | None


def parse_noises(text: str) -> list[float]:
    """Read shares of noise: [0.1] for `0.1`, seven equally spaced shares for a range such as `0.02:0.2`.

    Raises ValueError unless they are in (0, 1].
    """
    low, _, high = text.partition(":")
    try:
        first, last = float(low), float(high or low)
    except ValueError:
        first, last = math.nan, math.nan
    if not 0 < first <= last <= 1:
        raise ValueError(
            f"expected a share above 0 and up to 1, such as 0.1, or a range 0.02:0.2, found {text!r}"
        )
    levels = NOISES if last > first else 1
    return [first + (last - first) * level / max(1, levels - 1) for level in range(levels)]


def _require_noises(text: str) -> str:
    parse_noises(text)
    return text


class MoleculeDemand(CommonDemand):
    """Settings of samples on demand, with those that only molecules have."""

    scaffold: str | None = Field(
        None,
        min_length=1,
        description="Scaffold of every sample, as SMILES, or a file of scaffolds, which take turns. Each "
        "`*` is an attachment point; without one, samples may grow from any atom. In A*.*B a linker joins "
        "the two parts.",
    )
    like: str | None = Field(
        None,
        min_length=1,
        description="File of molecules to vary, which take turns: each is noised and then denoised.",
    )
    noise: Annotated[str, AfterValidator(_require_noises)] = Field(
        "0.1",
        description="Share of a molecule's tokens that --like draws again, or a range such as "
        f"0.02:0.2, of which {NOISES} values take turns.",
    )
    neutral: bool = Field(
        False,
        description="Remove charges by adding and removing protons, where that is possible, before all "
        "filters.",
    )
    novel: bool = Field(False, description="Drop molecules of the training data set.")
    plausible: bool = Field(
        False,
        description="Drop molecules with rings, bonded atoms or alerts that are unusual among the training "
        "molecules (see docs/metrics.md).",
    )
    min_qed: float | None = Field(None, ge=0, le=1, description="Smallest QED (0 to 1) to accept.")
    logp: Range = Field(None, description="Range of logP to accept, such as 1:3, or open: 1: or :3.")
    weight: Range = Field(None, description="Range of molecular weight in g/mol to accept, such as :450.")
    smarts: tuple[str, ...] = Field((), description="SMARTS pattern that molecules must have; repeatable.")
    not_smarts: tuple[str, ...] = Field((), description="SMARTS pattern they must not have; repeatable.")
    properties: bool = Field(
        False,
        description="Add QED, synthetic accessibility, logP, molecular weight in g/mol, Murcko scaffold and "
        "InChIKey. If the model knows what is usual in its training molecules, the measures behind "
        "--plausible are added, too.",
    )
    nearest: bool = Field(
        False,
        description="Add the most similar training molecule, its name in your library, and the similarity "
        "(Tanimoto; Morgan fingerprints, radius 2, 2,048 bits).",
    )
    three_d: bool = Field(
        False,
        description="Write 3D coordinates with explicit hydrogens (.sdf), by RDKit's ETKDGv3 and MMFF94. "
        "Molecules that RDKit cannot embed are dropped.",
    )

    @model_validator(mode="after")
    def _one_scaffold(self) -> "MoleculeDemand":
        if self.scaffold is not None:
            for name in ("prefix", "template", "like"):
                if getattr(self, name) is not None:
                    raise ValueError(f"scaffold: does not go with {name}")
        return self

    @model_validator(mode="after")
    def _noise_is_for_seeds(self) -> "MoleculeDemand":
        if self.like is None and self.noise != type(self).model_fields["noise"].default:
            raise ValueError("noise: needs like, the file of molecules to vary")
        return self

    @model_validator(mode="after")
    def _raw_strings_are_not_filtered(self) -> "MoleculeDemand":
        filters = ("unique", "novel", "plausible", "min_qed", "logp", "weight", "smarts", "not_smarts")
        needing = (*filters, "neutral", "like", "properties", "nearest", "three_d")
        given = [name for name in needing if getattr(self, name) not in (None, False, ())]
        if self.raw and given:
            raise ValueError(f"raw: does not go with {given[0]}, which needs valid molecules")
        return self
