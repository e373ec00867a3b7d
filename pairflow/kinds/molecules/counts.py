"""Counts of valid, unique and novel molecules in one trial (docs/method.md, "Molecule metrics")."""

from collections.abc import Sequence, Set
from functools import lru_cache

from rdkit import Chem, rdBase


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
