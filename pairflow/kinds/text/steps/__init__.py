"""Steps on real text, once per experiment."""
