"""Training: the optimisation loop, the objectives that it minimises, and the trained models.

Each distillation is a function of a module in this folder; `catalogue` lists them. It has the form

    objective(settings, model, rows)

and returns an `objectives.Objective`, the loss that `loop.optimise` minimises.

Args:
    settings: the settings of the distillation.
    model: the `model.Model` to train, which starts as a copy of its parent. It has the corruption, the loss
        of the base method (`base_training.loss`), the seed and the device.
    rows: `fit.TrainingRows`, with the data x1 (M, N) or the parent's pairs x0 and x1. `fit.labels_of` gives
        the labels of a conditional model.
"""
