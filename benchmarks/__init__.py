"""What is fast, against what, measured how; and the paper's printed values beside measured ones."""
