"""The choice of samples to keep, where only distinct, new or other chosen molecules are wanted."""

from collections import Counter
from collections.abc import Container, Mapping

from rdkit import Chem

from pairflow.kinds.molecules.counts import canonical
from pairflow.kinds.molecules.filters import Filter


class Selection:
    """Judges samples one by one and counts the verdicts: `kept`, or the first reason against a sample.

    The reasons, in order: `invalid` (RDKit cannot read it, or cannot read back the canonical SMILES that it
    writes), `known` (among the canonical SMILES `known`),
    `repeated` (kept before, with `unique`) and `refused by` one of `filters`. With `raw` every sample is
    delivered, and only `kept` and `invalid` occur. `counts` covers all samples, `since` those since the last
    one that was delivered.
    """

    def __init__(
        self,
        raw: bool = False,
        unique: bool = False,
        known: Container[str] | None = None,
        filters: Mapping[str, Filter] | None = None,
    ):
        self.raw, self.unique, self.known, self.filters = raw, unique, known, filters or {}
        self._reasons = {"valid": "invalid"}
        if known is not None:
            self._reasons["--novel"] = "known"
        if unique:
            self._reasons["--unique"] = "repeated"
        self._reasons |= {name: f"refused by {name}" for name in self.filters}
        self.counts: Counter[str] = Counter()
        self.since: Counter[str] = Counter()
        self._kept: set[str] = set()

    def keep(self, text: str) -> str | None:
        """The string to keep (canonical SMILES, or with `raw` the sample itself), or None."""
        molecule = canonical(text)
        verdict = self._verdict(molecule)
        self.counts[verdict] += 1
        if self.raw:
            return text
        if verdict != "kept":
            self.since[verdict] += 1
            return None
        self.since.clear()
        if self.unique and molecule is not None:
            self._kept.add(molecule)
        return molecule

    def shares(self) -> dict[str, float]:
        """`valid` or an option -> the share that it kept of the samples that all before it had kept."""
        left, shares = self.counts.total(), {}
        for name, reason in self._reasons.items():
            passed = left - self.counts[reason]
            shares[name] = passed / left if left else 0.0
            left = passed
        return shares

    def _verdict(self, molecule: str | None) -> str:
        if molecule is None or canonical(molecule) is None:
            return "invalid"
        if self.known is not None and molecule in self.known:
            return "known"
        if molecule in self._kept:
            return "repeated"
        return self._refusal(Chem.MolFromSmiles(molecule)) if self.filters else "kept"

    def _refusal(self, molecule: Chem.Mol) -> str:
        """The verdict of the filters on a valid sample."""
        refusing = next((name for name, passes in self.filters.items() if not passes(molecule)), None)
        return self._reasons[refusing] if refusing else "kept"
