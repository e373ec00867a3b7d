"""What an experiment will cost: time, memory, disk."""
