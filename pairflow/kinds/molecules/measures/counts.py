"""Counts valid, unique and novel molecules in one trial (docs/method.md, "Molecule metrics").

An invalid string has one reason, the first that RDKit finds:

- `empty`: it has nothing but padding.
- `syntax`: it is not SMILES, because a bracket, branch or bond is incomplete, or a symbol is unknown; or it
  is too large for RDKit (over 4,096 atoms).
- `ring`: only a ring closure is wrong, because the ring is left open, closed onto the same atom, or closed
  between two atoms that already share a bond.
- `valence`: an atom has more bonds than it can have.
- `kekulize`: aromatic atoms are outside of a ring, or cannot have alternating single and double bonds.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from functools import lru_cache

from rdkit import Chem, rdBase

from pairflow.errors import InputError
from pairflow.kinds.molecules.structures.standardise import parse, say_too_large, write_smiles

REASONS = ("empty", "syntax", "ring", "valence", "kekulize")

# Ring closures; and bracket atoms, so that digits in them are not mistaken for ring closures.
_CLOSURES = re.compile(r"\[[^\]]*\]|%\(\d+\)|%\d\d|\d")


@lru_cache(maxsize=2**16)  # several functions ask for the same strings
def canonical(smiles: str) -> str | None:
    """Return the canonical SMILES of a molecule, with stereochemistry; None for a string that is empty,
    invalid or too large for RDKit (see `parse`)."""
    with rdBase.BlockLogs(), suppress(InputError):
        return write_smiles(parse(smiles), smiles)
    return None


def count(
    strings: Sequence[str],
    reference: Set[str],
    keys: Mapping[str, str] | None = None,
    known: Set[str] | None = None,
) -> dict[str, int]:
    """Count the valid, unique and novel molecules of one trial.

    `strings` are decoded samples. `reference` has the canonical SMILES of the whole data set (train,
    validation and rows left out of training), or at least those that occur among the strings or their
    canonical SMILES. If molecules are not identified by SMILES, `keys` maps canonical SMILES to what
    identifies the molecule, and `known` has what identifies the molecules of the data set. Returns:

    - `valid`: samples that are not empty and that RDKit parses.
    - `unique`, `novel`: distinct valid strings, and distinct valid strings that are not in `reference`. The
      paper's authors count in this way: two spellings of a molecule count as two, and a known molecule in
      another spelling is novel.
    - `unique_strict`, `novel_strict`: the same counts of molecules, by canonical SMILES or by `keys`.
    """
    read = {text: canonical(text) for text in set(strings)}
    valid = {text: molecule for text, molecule in read.items() if molecule is not None}
    molecules = {keys[name] if keys else name for name in valid.values()}
    return {
        "valid": sum(text in valid for text in strings),
        "unique": len(valid),
        "novel": len(valid.keys() - reference),
        "unique_strict": len(molecules),
        "novel_strict": len(molecules - (reference if known is None else known)),
    }


def reason(smiles: str) -> str:
    """Return the reason why an invalid string is invalid: empty, syntax, ring, valence or kekulize."""
    if not smiles:
        return "empty"
    if say_too_large(smiles):
        return "syntax"
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles, sanitize=False)
        if molecule is None:
            closed = Chem.MolFromSmiles(_with_rings_closed(smiles), sanitize=False)
            return "syntax" if closed is None else "ring"
        # SanitizeMol, because DetectChemistryProblems misses aromatic atoms with too many bonds.
        fault = Chem.SanitizeMol(molecule, catchErrors=True)
    return "valence" if fault == Chem.SanitizeFlags.SANITIZE_PROPERTIES else "kekulize"


def count_reasons(invalid: Iterable[str]) -> dict[str, int]:
    """Count the `invalid` strings by their reason: `invalid_<reason>` for each of REASONS."""
    reasons = [reason(text) for text in invalid]
    return {f"invalid_{name}": reasons.count(name) for name in REASONS}


def _with_rings_closed(smiles: str) -> str:
    """Return a string in which every ring is closed: an extra atom at the end closes each ring number. If
    RDKit still cannot parse the string, its rings are not the reason."""
    ends: list[str] = []

    def renumber(match: re.Match) -> str:
        if match[0].startswith("["):
            return match[0]
        ends.append(f"%({100 + len(ends)})")
        return ends[-1]

    renumbered = _CLOSURES.sub(renumber, smiles)
    return renumbered + "".join(f".*{end}" for end in ends)
