"""One thin command per rule: read, call, write. Each also runs by itself, as `python -m pairflow.steps.<step>`."""
