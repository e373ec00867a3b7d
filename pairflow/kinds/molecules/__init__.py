"""Molecules as token rows, written in SMILES (ethanol is `CCO`) or in SELFIES."""
