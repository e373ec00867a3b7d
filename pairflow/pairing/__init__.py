"""Closed-form pairing: which source state belongs to which data point (PairFlow, Algorithm 1)."""

from pairflow.pairing.oracle import closed_form_denoiser, closed_form_noise_predictor, local_consensus

__all__ = ["closed_form_denoiser", "closed_form_noise_predictor", "local_consensus"]
