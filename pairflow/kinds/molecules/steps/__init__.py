"""Steps on real molecules, which run once per experiment, and the command `metrics`."""
