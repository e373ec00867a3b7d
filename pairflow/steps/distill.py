"""Distils a model: trains it further, on the data or on pairs that it has generated itself."""

from pathlib import Path

from pairflow.artifacts import Provenance
from pairflow.config import DistillSettings
from pairflow.steps.command import step
from pairflow.steps.options import existing, fit_options, model_outputs
from pairflow.training.options import FitOptions, ModelPaths


@step(DistillSettings)
@existing("--parent", help="Folder of the model to start from.")
@existing(
    "--data", help="Token rows (for dcd), or pairs that the parent has made (for redi and rf), Parquet."
)
@existing("--validation", help="Validation token rows (Parquet).")
@model_outputs
@fit_options
def main(
    settings: DistillSettings,
    parent: Path,
    data: Path,
    validation: Path,
    outputs: ModelPaths,
    options: FitOptions,
):
    """Distil a model into one that needs fewer sampling steps. The last part of the method's name, such as
    +dcd, selects the distillation.

    An interrupted distillation resumes, and gives the same weights, bit for bit. The vocabulary and the known
    molecules in the parent's folder are copied. A distillation runs on several GPUs as `pairflow train` does.
    """
    from pairflow.runtime.device import choose
    from pairflow.training.catalogue import OBJECTIVES
    from pairflow.training.fit import fit, inherited_average, load_parent, read_distillation_rows

    provenance = Provenance()
    how = settings.distillation
    device = choose(options.device, options.threads, provenance)
    teacher = load_parent(settings, parent, device)
    rows = read_distillation_rows(how, teacher, data, validation)
    model, files = teacher.distilled(settings, rows.inputs), teacher.stored_files()
    objective = OBJECTIVES[how.name](how, model, rows)
    average = inherited_average(how, teacher)
    fit(model, objective, how, rows, outputs, options, provenance, files=files, average=average)


if __name__ == "__main__":
    main()
