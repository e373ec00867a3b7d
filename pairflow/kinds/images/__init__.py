"""Images: pixels as token rows, or as real numbers."""
