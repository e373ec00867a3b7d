"""The GPU engine of Algorithm 1 (CuPy)."""
