"""Training: one optimisation loop, the objectives that it minimises, and the models that come of it.

A distillation `<name>` is a module here with a function

    objective(settings, model, rows, cache)

that returns the `objectives.Objective` for `loop.optimise` to minimise. `settings` are the distillation's
own. `model` is the `model.Model` to train, which starts as its parent; it has the corruption, the base's
`base_training.loss`, the seed and the device. `rows` are `fit.TrainingRows`: the data x1 (M, N), or pairs x0
and x1 that the parent made; `fit.labels_of(rows, model)` are the labels of a conditional model, else None.
`cache` is a folder for tables that runs share, or None.
"""
