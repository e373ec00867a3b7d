"""Text: characters or pieces of words as token rows."""
