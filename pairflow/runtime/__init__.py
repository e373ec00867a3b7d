"""How a step runs: signals, resuming, devices, processes, threads and progress."""
