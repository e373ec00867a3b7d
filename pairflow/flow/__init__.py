"""The discrete flow: noising, losses and samplers."""
