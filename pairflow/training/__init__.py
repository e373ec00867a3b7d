"""Training: one optimisation loop, the objectives that it minimises, and the models that come of it.

A distillation `<name>` is a module here with a function

    objective(settings, *, x0, x1, corruption, loss, seed, device, cache)

that returns the `objectives.Objective` for `loop.optimise` to minimise. x1 (M, N) is the data and x0 is None,
or both are pairs that the parent made; `loss` names the base's loss; `cache` is a folder for tables that runs
share, or None.
"""
