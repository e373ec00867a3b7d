"""Steps on real images, once per experiment."""
