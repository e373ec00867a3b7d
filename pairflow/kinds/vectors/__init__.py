"""Vectors of real numbers, for continuous flows."""
