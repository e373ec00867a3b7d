"""Draws pairs from a teacher model: source states (rows of noise), and the samples that it makes of them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pairflow.artifacts import Provenance, label_column, row_column, token_column, token_dtype
from pairflow.config import SolveSettings, TeachSettings, parse_method
from pairflow.config.training import FREQUENCIES
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
    sample x1 that the teacher makes from it.

    An interrupted run resumes, and gives the same bytes.
    """
    from pairflow.runtime.device import choose
    from pairflow.runtime.progress import network_bar
    from pairflow.training.model import DiscreteModel, Model

    provenance = Provenance()
    device = choose(device, threads, provenance)
    teacher = Model.load(model, device=device)
    kind, calls, draw, column = _drawing(settings, teacher)
    parameters = {"coupling": settings.method, **settings.model_dump(mode="json")}
    if teacher.frequencies is not None:
        parameters["noise"] = FREQUENCIES
    mask = teacher.mask if isinstance(teacher, DiscreteModel) else None
    metadata = teacher.metadata(kind, parameters, mask=mask)
    table = ResumableTable(out, metadata, settings.method, resume, provenance, device)
    batches = split_rows(settings.count, teacher.batch_rows)
    x0, x1 = np.concatenate(
        table.make(batches, draw, partial(network_bar, teacher.network, calls, quiet)), axis=1
    )
    pairs = {"x0": column(x0), "x1": column(x1)}
    if teacher.condition:
        pairs |= label_column(teacher.condition.spread(0, settings.count))
    table.write(pa.table(pairs))


def _drawing(
    settings: AnySettings, teacher: "Model"
) -> tuple[str, int, Callable[[BlockKey], np.ndarray], Callable[[np.ndarray], pa.Array]]:
    """Return the kind of the pairs' table, the network calls for a pair, a function that draws the pairs of a
    block, (2, rows, ...), and one that turns one side of them into a table's column.

    Raises InputError unless the settings fit the teacher.
    """
    from pairflow.training import reflow
    from pairflow.training.model import DiscreteModel, VelocityModel

    parent = parse_method(settings.method).parent
    if parent != teacher.method:
        raise InputError(
            f"{teacher.folder}: a model of {teacher.method}, but {settings.method} needs {parent}"
        )
    if isinstance(teacher, VelocityModel) and isinstance(settings, SolveSettings):
        solve = partial(reflow.solve_pairs, teacher, settings)
        return "vector pairs", settings.steps, lambda block: solve(*block).numpy(), row_column
    if isinstance(teacher, DiscreteModel) and isinstance(settings, TeachSettings):
        teach, dtype = partial(reflow.draw_pairs, teacher, settings), token_dtype(teacher.corruption.symbols)
        column = partial(token_column, vocabulary_size=teacher.vocabulary_size)
        calls = settings.steps + 1  # the greedy tail
        return "pairs", calls, lambda block: teach(*block).numpy().astype(dtype), column
    raise InputError(f"{teacher.folder}: --solver is needed with a continuous flow, and only then")


if __name__ == "__main__":
    main()
