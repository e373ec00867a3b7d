"""A teacher to pairs: sources, and the samples that it makes of them."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, atomic, token_column, token_dtype, write_table
from pairflow.config import TeachSettings, parse_method
from pairflow.errors import InputError
from pairflow.runtime.resume import Blocks, folder_of, remove
from pairflow.steps.command import device, existing, out, quiet, resumable, step, threads


@step(TeachSettings)
@existing("--model", help="Folder of the teacher.")
@out("--out", help="Pairs, Parquet: x0, x1.")
@resumable
@device
@threads
@quiet
def main(settings: TeachSettings, model: Path, out: Path, resume, save_every, device, threads, quiet):
    """Draw the pairs of ReDi: uniform sources x0 and what the teacher makes of them, x1.

    Stopped, it goes on where it was, to the same bits.
    """
    import torch

    from pairflow.runtime.device import choose
    from pairflow.runtime.progress import bar_of
    from pairflow.training import model as checkpoint
    from pairflow.training.redi import draw_pairs

    provenance = Provenance()
    where = choose(device, threads)
    provenance.device = str(where)
    network, facts = checkpoint.load(model, device=where)
    parent = parse_method(settings.method).parent
    if parent != facts["method"]:
        raise InputError(f"{model}: a model of {facts['method']}, but {settings.method} needs {parent}")
    size = facts["vocabulary_size"]
    made = Metadata(
        kind="pairs",
        length=facts["length"],
        vocabulary_size=size,
        vocabulary=facts["vocabulary"],
        mask=facts["mask"],
        shape=facts.get("shape"),
        data=facts.get("data"),
        parameters={"coupling": settings.method, **settings.model_dump(mode="json")},
        inputs={"model": facts["weights"]},
    )
    resume = resume or out.parent / f".{out.name}.resume"
    run = {**made.__dict__, "device": where.type, "torch": torch.__version__}
    states = folder_of(resume, settings.method, run)
    corruption = checkpoint.corruption_of(facts)
    teacher = {"length": facts["length"], "prediction": facts["prediction"], "device": where}

    def batch(block: tuple[int, int]) -> np.ndarray:
        pairs = draw_pairs(network, corruption, settings, *block, **teacher)
        return pairs.numpy().astype(token_dtype(corruption.symbols))

    at_once = corruption.rows_at_once(facts["length"])
    batches = [(first, min(at_once, settings.count - first)) for first in range(0, settings.count, at_once)]
    blocks = Blocks(batches, states, save_every, provenance)
    with bar_of(network, sum(rows for _, rows in blocks.left), settings.steps + 1, quiet):
        x0, x1 = np.concatenate(blocks.make(batch), axis=1)
    columns = {"x0": token_column(x0, size), "x1": token_column(x1, size)}
    with atomic(out) as [temporary]:
        write_table(temporary, pa.table(columns), made)
    provenance.write(out)
    remove(states)


if __name__ == "__main__":
    main()
