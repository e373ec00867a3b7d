"""Compares finished experiments, or the methods of one: a page and a table of numbers."""
