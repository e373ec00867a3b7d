"""A teacher to pairs: source states, and the samples that it makes of them."""

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from pairflow.artifacts import Provenance, row_column, token_column, token_dtype
from pairflow.config import SolveSettings, TeachSettings, parse_method
from pairflow.errors import InputError
from pairflow.runtime.resume import BlockKey, ResumableTable, ResumeOptions, split_rows
from pairflow.steps.command import existing, on_device, out, resumable, step


@step(TeachSettings, solver=SolveSettings)
@existing("--model", help="Folder of the teacher.")
@out("--out", help="Output file for the pairs (Parquet): x0, x1.")
@resumable
@on_device
def main(
    settings: TeachSettings | SolveSettings,
    model: Path,
    out: Path,
    resume: ResumeOptions,
    device,
    threads,
    quiet,
):
    """Draw pairs for the distillations ReDi and, with --solver, ReFlow: source states x0, each with the
    sample x1 that the teacher makes of it.

    An interrupted run resumes, and its output has the same bytes as that of an uninterrupted run.
    """
    from pairflow.runtime.device import choose
    from pairflow.runtime.progress import network_bar
    from pairflow.training import redi, rf
    from pairflow.training.model import Model

    provenance = Provenance()
    device = choose(device, threads, provenance)
    teacher = Model.load(model, device=device)
    parent = parse_method(settings.method).parent
    if parent != teacher.method:
        raise InputError(f"{model}: a model of {teacher.method}, but {settings.method} needs {parent}")
    if teacher.continuous != isinstance(settings, SolveSettings):
        raise InputError(f"{model}: --solver is needed with a model of a continuous flow, and only then")
    parameters = {"coupling": settings.method, **settings.model_dump(mode="json")}
    kind = "vector pairs" if teacher.continuous else "pairs"
    metadata = teacher.metadata(kind, parameters, mask=teacher.mask)
    table = ResumableTable(out, metadata, settings.method, resume, provenance, device)

    def draw(block: BlockKey) -> np.ndarray:
        if isinstance(settings, SolveSettings):
            return rf.draw_pairs(teacher, settings, *block).numpy()
        return (
            redi.draw_pairs(teacher, settings, *block).numpy().astype(token_dtype(teacher.corruption.symbols))
        )

    batches = split_rows(settings.count, teacher.batch_rows)
    bar = partial(network_bar, teacher.network, settings.steps + (not teacher.continuous), quiet)
    columns = zip(("x0", "x1"), np.concatenate(table.make(batches, draw, bar), axis=1), strict=True)
    if teacher.continuous:
        return table.write(pa.table({name: row_column(rows) for name, rows in columns}))
    size = teacher.dimensions[1]
    table.write(pa.table({name: token_column(rows, size) for name, rows in columns}))


if __name__ == "__main__":
    main()
