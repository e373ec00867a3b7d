"""A teacher to pairs: source states, and the samples that it makes of them."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pairflow.artifacts import Provenance, row_column, token_column, token_dtype
from pairflow.config import DISTILLATIONS, SolveSettings, TeachSettings, parse_method
from pairflow.errors import InputError
from pairflow.runtime.resume import BlockKey, ResumableTable, ResumeOptions, split_rows
from pairflow.steps.command import step
from pairflow.steps.options import existing, on_device, out, resumable

if TYPE_CHECKING:
    from pairflow.training.model import Model

AnySettings = TeachSettings | SolveSettings


@step(TeachSettings, solver=SolveSettings)
@existing("--model", help="Folder of the teacher.")
@out("--out", help="Output file for the pairs (Parquet): x0, x1.")
@resumable
@on_device
def main(settings: AnySettings, model: Path, out: Path, resume: ResumeOptions, device, threads, quiet):
    """Draw pairs for the distillations ReDi and, with --solver, ReFlow: source states x0, each with the
    sample x1 that the teacher makes of it.

    An interrupted run resumes, and its output has the same bytes as that of an uninterrupted run.
    """
    from pairflow.runtime.device import choose
    from pairflow.runtime.progress import network_bar
    from pairflow.training import redi
    from pairflow.training.model import Model

    provenance = Provenance()
    device = choose(device, threads, provenance)
    teacher = Model.load(model, device=device)
    draw = _drawer(settings, teacher)
    parameters = {"coupling": settings.method, **settings.model_dump(mode="json")}
    kind = "vector pairs" if teacher.continuous else "pairs"
    metadata = teacher.metadata(kind, parameters, mask=teacher.mask)
    table = ResumableTable(out, metadata, settings.method, resume, provenance, device)
    batches = split_rows(settings.count, teacher.batch_rows)
    bar = partial(network_bar, teacher.network, settings.steps + (not teacher.continuous), quiet)
    size = teacher.vocabulary_size or 0
    x0, x1 = np.concatenate(table.make(batches, draw, bar), axis=1)
    column = row_column if teacher.continuous else partial(token_column, vocabulary_size=size)
    pairs = {"x0": column(x0), "x1": column(x1)}
    if teacher.classes:
        labels = redi.classes_of_pairs(teacher.classes, 0, settings.count)
        pairs["label"] = pa.array(labels.numpy().astype(np.uint8))
    table.write(pa.table(pairs))


def _drawer(settings: AnySettings, teacher: "Model") -> Callable[[BlockKey], np.ndarray]:
    """What draws a batch of pairs (2, rows, N); InputError unless the settings are for this teacher."""
    method = parse_method(settings.method)
    if method.parent != teacher.method:
        raise InputError(
            f"{teacher.folder}: a model of {teacher.method}, but {settings.method} needs {method.parent}"
        )
    distillation = method.distillations[-1]
    if type(settings) is not getattr(DISTILLATIONS[distillation], "drawing", None):
        raise InputError(f"{teacher.folder}: --solver is needed with a continuous flow, and only then")
    draw_pairs = import_module(f"pairflow.training.{distillation}").draw_pairs

    def draw(block: BlockKey) -> np.ndarray:
        pairs = draw_pairs(teacher, settings, *block).numpy()
        return pairs if teacher.continuous else pairs.astype(token_dtype(teacher.corruption.symbols))

    return draw


if __name__ == "__main__":
    main()
