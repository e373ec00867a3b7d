"""Features for the Fréchet ChemNet Distance (Preuer et al. 2018), from the optional package `fcd`."""

import warnings
from collections.abc import Sequence

import numpy as np

from pairflow.errors import InputError
from pairflow.runtime.progress import bar

DIMENSION = 512
_CHUNK = 1024  # molecules between two updates of the bar


def features(smiles: Sequence[str], device: str = "cpu", progress: bool = False) -> np.ndarray:
    """ChemNet's last hidden layer on canonical SMILES, (M, 512); InputError where `fcd` is not installed."""
    try:
        import fcd
    except ImportError:
        raise InputError('fcd: the package is not installed; try: pip install "pairflow[fcd]"') from None
    parts = [np.empty((0, DIMENSION), np.float32)]
    with warnings.catch_warnings(), bar(total=len(smiles), desc="ChemNet", quiet=not progress) as molecules:
        warnings.simplefilter("ignore")  # on strings longer than 350, and on functions that NumPy will drop
        network = fcd.load_ref_model()
        for first in range(0, len(smiles), _CHUNK):
            chunk = list(smiles[first : first + _CHUNK])
            parts.append(fcd.get_predictions(network, chunk, n_jobs=0, device=device))
            molecules.update(len(chunk))
    return np.concatenate(parts)
