"""Code that several kinds of data share: downloads, splits, prepared rows, delivery of samples, own pairs."""
