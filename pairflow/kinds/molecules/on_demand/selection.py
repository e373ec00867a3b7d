"""Decides by filters which sampled molecules are delivered, and counts the decisions."""

from collections import Counter
from collections.abc import Callable, Container, Mapping, Set
from contextlib import suppress
from functools import lru_cache
from typing import Any

from rdkit import Chem, rdBase
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

from pairflow.errors import InputError
from pairflow.kinds.molecules.data.known import KnownMolecules
from pairflow.kinds.molecules.data.reading import canonicalise
from pairflow.kinds.molecules.measures.counts import canonical
from pairflow.kinds.molecules.measures.plausible import Norms, is_plausible
from pairflow.kinds.molecules.settings import Standardisation
from pairflow.kinds.molecules.settings.demand import MoleculeDemand, parse_range
from pairflow.kinds.molecules.structures.descriptors import DESCRIPTORS
from pairflow.kinds.molecules.structures.standardise import (
    identify,
    parse,
    say_rules,
    standardise,
    write_smiles,
)

Filter = Callable[[Chem.Mol], bool]
_ITERATIONS = 2000  # most iterations of the force field


class KnownByRules:
    """The molecules of a data set, for the operator `in`. A molecule is known if the data set has it as it
    is, or standardised by the `rules` of the data set."""

    def __init__(self, known: KnownMolecules, rules: Standardisation):
        self.known, self.rules = known, rules

    def __contains__(self, smiles: str) -> bool:
        if smiles in self.known or not say_rules(self.rules):
            return smiles in self.known
        with rdBase.BlockLogs(), suppress(InputError):  # a rule rejects it, so that the data set has it not
            _, standardised = canonicalise(parse(smiles), self.rules)
            return identify(standardised, self.rules.identity) in self.known
        return False


class Selection:
    """Decides on samples one by one, and counts the verdicts: `kept`, or the first reason against a sample.

    The reasons, in order:

    - `invalid`: RDKit cannot read the sample, or its canonical SMILES.
    - `known`: its canonical SMILES are in `known`.
    - `repeated`: it is one of the `seeds` or, with `unique`, a molecule that was kept before, by the rule
      `identity`.
    - `refused by` and the name of a filter: that filter does not let it pass.

    With `raw` every sample is delivered; `known` and filters are not given then. With `neutral` a sample is
    neutralised first; it is known if its charged or its neutral form is known. `counts` has all verdicts, and
    `since` only those after the last delivered sample.
    """

    def __init__(
        self,
        raw: bool = False,
        unique: bool = False,
        known: Container[str] | None = None,
        filters: Mapping[str, Filter] | None = None,
        seeds: Set[str] = frozenset(),
        identity: str = "smiles",
        neutral: bool = False,
    ):
        self._neutralise = _neutralise if neutral else lambda smiles: smiles
        self.raw, self.unique, self.known, self.filters = raw, unique, known, filters or {}
        self._reasons = {"valid": "invalid"}
        if known is not None:
            self._reasons["--novel"] = "known"
        if unique or seeds:
            self._reasons["--unique" if unique else "other than its seed"] = "repeated"
        self._reasons |= {name: f"refused by {name}" for name in self.filters}
        self.counts: Counter[str] = Counter()
        self.since: Counter[str] = Counter()
        self.identity = identity
        self._kept = {identify(self._neutralise(seed), identity) for seed in seeds}

    def keep(self, text: str) -> str | None:
        """Decide on the sample `text`, and count the verdict. Returns the string to deliver: canonical
        SMILES, or with `raw` the sample itself; None for a sample that is not delivered."""
        sampled = canonical(text)
        molecule = sampled and self._neutralise(sampled)
        verdict = self._verdict(sampled, molecule)
        self.counts[verdict] += 1
        if self.raw:
            return text
        if verdict != "kept":
            self.since[verdict] += 1
            return None
        self.since.clear()
        if self.unique and molecule is not None:
            self._kept.add(identify(molecule, self.identity))
        return molecule

    def shares(self) -> dict[str, float]:
        """Return the share of samples that passes each test, `valid` or an option, of the samples that have
        passed all tests before."""
        left, shares = self.counts.total(), {}
        for name, reason in self._reasons.items():
            passed = left - self.counts[reason]
            shares[name] = passed / left if left else 0.0
            left = passed
        return shares

    def _verdict(self, sampled: str | None, molecule: str | None) -> str:
        if sampled is None or molecule is None or canonical(molecule) is None:
            return "invalid"
        if self.known is not None and (sampled in self.known or molecule in self.known):
            return "known"
        if self._kept and identify(molecule, self.identity) in self._kept:
            return "repeated"
        parsed = Chem.MolFromSmiles(molecule) if self.filters else None
        refusing = next((name for name, passes in self.filters.items() if not passes(parsed)), None)
        return self._reasons[refusing] if refusing else "kept"


def _neutralise(smiles: str) -> str:
    """Return the SMILES with protons added or removed, so that no atom has a charge where that is
    possible."""
    with rdBase.BlockLogs(), suppress(InputError):
        return write_smiles(standardise(parse(smiles), Standardisation(charges="neutralise")))
    return smiles


def filters_from(settings: MoleculeDemand, norms: Norms | None = None) -> dict[str, Filter]:
    """Return the filters that the settings ask for, each under its option, such as `--min-qed 0.5`; the
    quick ones come first. Without `norms` (what is usual in training molecules) there is no filter
    `--plausible`. Raises InputError for a SMARTS pattern that RDKit cannot read."""
    filters: dict[str, Filter] = {}
    for name in ("weight", "logp"):
        if text := getattr(settings, name):
            filters[f"--{name} {text}"] = _within(name, *parse_range(text))
    for pattern in settings.smarts:
        filters[f"--smarts {pattern}"] = _read_smarts("smarts", pattern)
    for pattern in settings.not_smarts:
        filters[f"--not-smarts {pattern}"] = _read_smarts("not_smarts", pattern, present=False)
    if settings.min_qed is not None:
        filters[f"--min-qed {settings.min_qed:g}"] = _within("qed", settings.min_qed, 1.0)
    if settings.plausible and norms:
        filters["--plausible"] = lambda molecule: is_plausible(molecule, norms)
    if settings.three_d:
        filters["--3d"] = lambda molecule: embed(Chem.MolToSmiles(molecule), settings.seed) is not None
    return filters


def _within(name: str, low: float, high: float) -> Filter:
    return lambda molecule: low <= DESCRIPTORS[name](molecule) <= high


def _read_smarts(setting: str, pattern: str, present: bool = True) -> Filter:
    """Return a filter that lets molecules with the substructure `pattern` pass or, if not `present`, all
    other molecules. Raises InputError, which names `setting`, if RDKit cannot read the pattern."""
    with rdBase.BlockLogs():
        query: Any = Chem.MolFromSmarts(pattern)
    if query is None or not query.GetNumAtoms():
        raise InputError(f"{setting}: RDKit cannot read the SMARTS pattern {pattern!r}")
    return lambda molecule: molecule.HasSubstructMatch(query) == present


@lru_cache(maxsize=16)  # called for the same molecule when it is filtered and when it is written
def embed(smiles: str, seed: int) -> Chem.Mol | None:
    """Return a molecule with all hydrogens and 3D coordinates, which depend only on `smiles` and `seed`.

    The coordinates are RDKit's ETKDGv3 (Wang et al. 2020), relaxed with the force field MMFF94 if it has
    parameters for all atoms. Returns None if RDKit finds no coordinates, even from a random start.
    """
    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = seed % 2**31  # RDKit takes a signed 32-bit number
    with rdBase.BlockLogs():
        molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
        for parameters.useRandomCoords in (False, True):
            if rdDistGeom.EmbedMolecule(molecule, parameters) == 0:
                rdForceFieldHelpers.MMFFOptimizeMolecule(molecule, maxIters=_ITERATIONS)
                return molecule
    return None
