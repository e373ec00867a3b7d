"""Token rows of a user's own."""
