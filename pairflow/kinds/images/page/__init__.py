"""What the page of an experiment shows of images."""
