"""Which samples are kept, when molecules are wanted that are valid, distinct or new."""

from collections import Counter
from collections.abc import Container

from rdkit import rdBase

from pairflow.metrics.molecules import canonical


class Selection:
    """Judges samples one by one; counts each by the first that fits: `invalid`, `known`, `repeated`, `kept`.

    `parsed`: only what RDKit reads is kept, as canonical SMILES. With it, `known` are canonical SMILES that
    are not wanted, and `unique` says that none is wanted twice. `counts` are those of all samples, `since`
    those since the last one that was kept.
    """

    def __init__(self, parsed: bool = False, unique: bool = False, known: Container[str] = ()):
        self.parsed, self.unique, self.known = parsed, unique, known
        self.counts, self.since = Counter(), Counter()
        self._kept: set[str] = set()

    def keep(self, text: str) -> str | None:
        """The string as it is kept, or None."""
        molecule = self._molecule(text) if self.parsed else text
        verdict = self._verdict(molecule)
        self.counts[verdict] += 1
        if verdict != "kept":
            self.since[verdict] += 1
            return None
        self.since.clear()
        if self.unique:
            self._kept.add(molecule)
        return molecule

    @staticmethod
    def _molecule(text: str) -> str | None:
        with rdBase.BlockLogs():
            return canonical(text)

    def _verdict(self, molecule: str | None) -> str:
        if molecule is None:
            return "invalid"
        if molecule in self.known:
            return "known"
        return "repeated" if molecule in self._kept else "kept"
