"""The choice of samples to keep, where only valid, distinct or new molecules are wanted."""

from collections import Counter
from collections.abc import Container

from pairflow.metrics.molecules import canonical


class Selection:
    """Judges samples one by one and counts the verdicts: `invalid`, `known`, `repeated` or `kept`.

    With `parsed`, a sample is kept only if RDKit reads it, as canonical SMILES. `known` are canonical SMILES
    that are not wanted, and `unique` rejects repetitions. `counts` covers all samples, `since` those since
    the last one that was kept.
    """

    def __init__(self, parsed: bool = False, unique: bool = False, known: Container[str] = ()):
        self.parsed, self.unique, self.known = parsed, unique, known
        self.counts: Counter[str] = Counter()
        self.since: Counter[str] = Counter()
        self._kept: set[str] = set()

    def keep(self, text: str) -> str | None:
        """The string to keep (canonical with `parsed`), or None."""
        molecule = canonical(text) if self.parsed else text
        verdict = self._verdict(molecule)
        self.counts[verdict] += 1
        if verdict != "kept":
            self.since[verdict] += 1
            return None
        self.since.clear()
        if self.unique and molecule is not None:
            self._kept.add(molecule)
        return molecule

    def _verdict(self, molecule: str | None) -> str:
        if molecule is None:
            return "invalid"
        if molecule in self.known:
            return "known"
        return "repeated" if molecule in self._kept else "kept"
