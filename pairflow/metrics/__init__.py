"""Metrics that several kinds of data share, and how they are measured, written and ranked."""
