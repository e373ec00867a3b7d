"""The commands, a module each: they read files, call the package and write files.

Each also runs as `python -m pairflow.steps.<step>`.
"""
