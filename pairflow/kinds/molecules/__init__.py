"""Molecules: SMILES or SELFIES as token rows."""
