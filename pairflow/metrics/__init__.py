"""Metrics that several kinds of data share."""
