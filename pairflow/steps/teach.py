"""A teacher to pairs: sources, and the samples that it makes of them."""

from pathlib import Path

import pyarrow as pa

from pairflow.artifacts import Science, Stopwatch, atomic, token_column, write_table
from pairflow.config import TeachSettings, parse_method
from pairflow.errors import InputError
from pairflow.steps._command import device, existing, out, quiet, step, threads


@step(TeachSettings)
@existing("--model", help="Folder of the teacher.")
@out("--out", help="Pairs, Parquet: x0, x1.")
@device
@threads
@quiet
def main(settings: TeachSettings, model: Path, out: Path, device, threads, quiet):
    """Draw the pairs of ReDi: uniform sources x0 and what the teacher makes of them, x1."""
    from pairflow.steps._device import choose
    from pairflow.steps._progress import bar_of
    from pairflow.training import checkpoint
    from pairflow.training.redi import draw_pairs

    stopwatch = Stopwatch()
    where = choose(device, threads)
    stopwatch.device = str(where)
    network, facts = checkpoint.load(model, device=where)
    parent = parse_method(settings.method).parent
    if parent != facts["method"]:
        raise InputError(f"{model}: a model of {facts['method']}, but {settings.method} needs {parent}")
    with bar_of(network, settings.count, settings.steps + 1, quiet):
        x0, x1 = draw_pairs(
            network,
            checkpoint.noise_of(facts),
            settings,
            length=facts["length"],
            prediction=facts["prediction"],
            device=where,
        )
    size = facts["vocabulary_size"]
    columns = {"x0": token_column(x0.numpy(), size), "x1": token_column(x1.numpy(), size)}
    made = Science(
        kind="pairs",
        length=facts["length"],
        vocabulary_size=size,
        vocabulary=facts["vocabulary"],
        mask=facts["mask"],
        shape=facts.get("shape"),
        parameters={"coupling": settings.method, **settings.model_dump(mode="json")},
        inputs={"model": facts["weights"]},
    )
    with atomic(out) as [temporary]:
        write_table(temporary, pa.table(columns), made)
    stopwatch.write(out)


if __name__ == "__main__":
    main()
