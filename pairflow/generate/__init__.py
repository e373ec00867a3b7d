"""What a trained model is used for: samples on demand, scores, the choice of a model and its steps."""
