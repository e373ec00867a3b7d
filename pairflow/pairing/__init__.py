"""Closed-form pairing of source states with data (PairFlow, Algorithm 1), and semidiscrete transport."""

from pairflow.pairing.oracle import closed_form_denoiser, closed_form_noise_predictor, local_consensus

__all__ = ["closed_form_denoiser", "closed_form_noise_predictor", "local_consensus"]
