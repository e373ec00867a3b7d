"""Settings of molecules: of experiments, of samples on demand, and the metrics."""

from pairflow.kinds.molecules.settings.experiment import (
    COMPUTED,
    DESCRIBED_ROWS,
    LONGEST,
    Chemistry,
    Conditioning,
    LibraryRules,
    MoleculeDraws,
    Molecules,
    NewLibrary,
    Notation,
    Replicates,
    Standardisation,
    chemistry_settings,
    identity_of,
    own_columns,
)
