"""The CPU engine of Algorithm 1."""
