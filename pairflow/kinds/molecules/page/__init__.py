"""Writes what the page of an experiment shows only for molecules."""
