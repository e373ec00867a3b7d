"""Steps of the workflow that run on real images, once per experiment."""
