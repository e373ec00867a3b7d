"""Counts of valid, unique and novel molecules in one trial (docs/method.md, "Molecule metrics").

A string is invalid for the first reason that RDKit meets:

`empty`      nothing but padding.
`syntax`     no SMILES: a bracket, branch or bond that does not close or has no atom to stand at, or an
             unknown symbol.
`ring`       well-formed but for its ring closures: a ring left open, closed onto its own atom, or closed
             between two atoms that are bonded already.
`valence`    an atom with more bonds than it can have.
`kekulize`   aromatic atoms that no alternation of single and double bonds fits, or outside of a ring.
"""

import re
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache

from rdkit import Chem, rdBase

REASONS = ("empty", "syntax", "ring", "valence", "kekulize")

# Ring closures, and bracket atoms, whose digits are none.
_CLOSURES = re.compile(r"\[[^\]]*\]|%\(\d+\)|%\d\d|\d")


@lru_cache(maxsize=2**16)  # the counts of a sample's trials and its description ask for the same strings
def canonical(smiles: str) -> str | None:
    """RDKit's canonical SMILES (stereochemistry kept); None for an empty text or one that RDKit refuses."""
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles) if smiles else None
    return None if molecule is None else Chem.MolToSmiles(molecule)


def count(strings: Sequence[str], reference: Set[str]) -> dict[str, int]:
    """Count the valid, unique and novel molecules of one trial.

    `strings` are decoded samples, `reference` the canonical SMILES of the whole data set (train, validation
    and rows left out of training). Keys of the result:

    - `valid`: samples that RDKit parses and that are not empty.
    - `unique`, `novel`: distinct strings among the valid, and those of them that are not in `reference`, as
      the paper's authors count: two spellings of a molecule count as two, and a known molecule in another
      spelling is novel.
    - `unique_strict`, `novel_strict`: the same after canonicalisation: molecules are counted, not spellings.
    """
    spellings = {text: canonical(text) for text in set(strings)}
    valid = {text: molecule for text, molecule in spellings.items() if molecule is not None}
    molecules = set(valid.values())
    return {
        "valid": sum(text in valid for text in strings),
        "unique": len(valid),
        "novel": len(valid.keys() - reference),
        "unique_strict": len(molecules),
        "novel_strict": len(molecules - reference),
    }


def reason(smiles: str) -> str:
    """Why RDKit refuses a string: one of `REASONS`."""
    if not smiles:
        return "empty"
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles, sanitize=False)
        if molecule is None:
            closed = Chem.MolFromSmiles(_with_rings_closed(smiles), sanitize=False)
            return "syntax" if closed is None else "ring"
        # DetectChemistryProblems finds no fault with an aromatic atom that turns out to be overloaded.
        fault = Chem.SanitizeMol(molecule, catchErrors=True)
    return "valence" if fault == Chem.SanitizeFlags.SANITIZE_PROPERTIES else "kekulize"


def count_reasons(invalid: Iterable[str]) -> dict[str, int]:
    """The number of strings refused for each of `REASONS`, as `invalid_<reason>`."""
    reasons = [reason(text) for text in invalid]
    return {f"invalid_{name}": reasons.count(name) for name in REASONS}


def _with_rings_closed(smiles: str) -> str:
    """The string with a number of its own for each ring closure, closed at an atom of its own at the end, so
    that RDKit refuses it only for something else."""
    ends: list[str] = []

    def renumber(match: re.Match) -> str:
        if match[0].startswith("["):
            return match[0]
        ends.append(f"%({100 + len(ends)})")
        return ends[-1]

    renumbered = _CLOSURES.sub(renumber, smiles)
    return renumbered + "".join(f".*{end}" for end in ends)
