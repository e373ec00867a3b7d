"""Checks whether a machine has what the workflow needs. A check that fails is a finding, not a crash."""
