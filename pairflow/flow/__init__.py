"""The discrete flow: how data are noised, what a denoiser minimises, and how samples are drawn from it."""
