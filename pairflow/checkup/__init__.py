"""Checks whether a machine has what the workflow needs: one finding per requirement, whatever is broken."""
