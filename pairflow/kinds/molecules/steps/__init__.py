"""Steps on real molecules, once per experiment."""
