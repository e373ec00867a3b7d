"""Finished experiments, or the methods of one, compared with one another: a page and a table of numbers."""
