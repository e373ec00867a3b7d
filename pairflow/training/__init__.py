"""Training: the optimisation loop, the objectives that it minimises, and the trained models.

A distillation `<name>` is a module here with a function

    objective(settings, model, rows, cache)

that returns an `objectives.Objective` for `loop.optimise`. Its arguments are:

    settings  the settings of the distillation model     the `model.Model` to train, a copy of its parent,
    with the corruption, the loss of the base method
              (`base_training.loss`), the seed and the device
    rows      `fit.TrainingRows`: the data x1 (M, N), or the parent's pairs x0 and x1; `fit.labels_of(rows,
    model)`
              gives the labels of a conditional model, else None
    cache     a folder for tables that several runs share, or None
"""
