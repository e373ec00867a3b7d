"""Functions of Python that do the work of commands: training and distillation, by the workflow's own jobs."""
