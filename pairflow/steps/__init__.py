"""One thin command per rule: read, call, write. Each runs alone as `python -m pairflow.steps.<step>`."""
