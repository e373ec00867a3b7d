"""Vectors of real numbers."""
