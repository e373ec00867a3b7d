"""Data: fetch and verify raw sources, turn them into token rows, and turn token rows back into objects."""
