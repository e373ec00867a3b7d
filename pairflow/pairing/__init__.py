"""Pairing of sources (rows of noise) with data rows: Algorithm 1 of PairFlow, and semidiscrete transport."""

from pairflow.pairing.oracle import closed_form_denoiser, closed_form_noise_predictor, local_consensus

__all__ = ["closed_form_denoiser", "closed_form_noise_predictor", "local_consensus"]
