"""The flow between noise and data: corruptions, losses, samplers, and couplings inside a batch."""
