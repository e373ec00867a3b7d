"""Estimates what an experiment will cost: time, memory and disk."""
