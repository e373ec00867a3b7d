"""One thin command per rule: read, call, write. Each also runs as `python -m pairflow.steps.<step>`."""
