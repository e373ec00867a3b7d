"""Measures of text, on rows of tokens (docs/metrics.md, "Text").

Rows are integers (B, N); a negative number stands where a row has no token (`mark_padding`).
"""
