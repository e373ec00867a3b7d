"""What RDKit says of a molecule: its standard form, descriptors, and similarity to others."""
