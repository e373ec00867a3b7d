"""Uses of trained models: samples, scores, variants, and the choice of a model and its number of steps."""
