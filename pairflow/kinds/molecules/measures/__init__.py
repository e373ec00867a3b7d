"""Metrics of samples of molecules, and what samples are compared with."""
