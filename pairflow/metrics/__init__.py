"""Metrics: arithmetic on samples."""
