"""Training: one optimisation loop, the objectives that it minimises, and the model files.

A distillation `<name>` is a module here with a function

    objective(settings, *, x0, x1, corruption, loss, seed, device, cache)

that returns what `loop.optimise` minimises. x1 (M, N) is the data and x0 None, or both are pairs that the
parent made; `loss` names the base's loss; `cache` is a folder for what may be kept from run to run, or None.
"""
