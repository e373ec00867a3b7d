"""Rows of tokens that a user prepared."""
