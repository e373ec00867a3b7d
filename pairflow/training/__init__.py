"""Training: one optimisation loop, the objectives that it minimises, and the model files."""
