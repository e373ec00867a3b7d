"""How a step runs: signals, resuming, devices, processes, progress."""
