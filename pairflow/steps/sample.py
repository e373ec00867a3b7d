"""A model to samples: token rows for an evaluation, or molecules on demand."""

from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, atomic, token_column, token_dtype, write_table
from pairflow.config import DemandSettings, SampleSettings
from pairflow.runtime.resume import Blocks, folder_of, remove
from pairflow.steps.command import device, existing, out, quiet, resumable, step, threads


def _former_name(context: click.Context, _: click.Parameter, value: int | None) -> None:
    """`--steps` is still accepted in the place of `--nfe`, for one release."""
    if value is not None:
        context.default_map = {"nfe": value}


@step(SampleSettings, count=DemandSettings)
@click.option("--steps", type=int, hidden=True, is_eager=True, expose_value=False, callback=_former_name)
@existing("--model", help="Folder of the model: it alone suffices, wherever it was copied to.")
@out("--out", help="Token rows, Parquet: tokens, trial, sample. With --count: .smi, .csv, .sdf or .parquet.")
@resumable
@device
@threads
@quiet
def main(
    settings: SampleSettings | DemandSettings,
    model: Path,
    out: Path,
    resume,
    save_every,
    device,
    threads,
    quiet,
):
    """Draw samples: updates in float64 from source states, then the greedy tail.

    For an evaluation, token rows of some trials, as the workflow has them; stopped, it goes on where it was:

    \b
      pairflow sample --model models/pairflow --nfe 4 --samples 1024 --trials 10 --out samples.parquet

    On demand, as many molecules as asked for, filtered; the suffix of --out says in which kind of file:

    \b
      pairflow sample --model models/pairflow --count 1000 --nfe 4 --unique --novel --out molecules.sdf
    """
    from pairflow.runtime.device import choose

    provenance = Provenance()
    where = choose(device, threads)
    provenance.device = str(where)
    if isinstance(settings, DemandSettings):
        from pairflow.training.demand import deliver

        deliver(settings, model, out, where, quiet)
        provenance.write(out)
    else:
        resume = resume or out.parent / f".{out.name}.resume"
        _evaluate(settings, model, out, where, quiet, resume, save_every, provenance)


def _evaluate(
    settings: SampleSettings, model: Path, out: Path, where, quiet: bool, resume: Path, save_every, provenance
) -> None:
    """Write the token rows of all trials: every method and NFE starts from the same noise."""
    import torch

    from pairflow.runtime.progress import bar_of
    from pairflow.training import model as checkpoint
    from pairflow.training.generate import draw

    network, facts = checkpoint.load(model, device=where)
    made = Metadata(
        kind="samples",
        length=facts["length"],
        vocabulary_size=facts["vocabulary_size"],
        vocabulary=facts["vocabulary"],
        shape=facts.get("shape"),
        data=facts.get("data"),
        parameters={"method": facts["method"], **settings.model_dump(mode="json")},
        inputs={"model": facts["weights"]},
    )
    run = {**made.__dict__, "device": where.type, "torch": torch.__version__}
    states = folder_of(resume, facts["method"], run)
    corruption = checkpoint.corruption_of(facts)
    at_once = corruption.rows_at_once(facts["length"])
    batches = [
        (trial, first, min(at_once, settings.samples - first))
        for trial in range(settings.trials)
        for first in range(0, settings.samples, at_once)
    ]

    def batch(block: tuple[int, int, int]) -> np.ndarray:
        trial, first, rows = block
        tokens = draw(network, facts, settings, settings.nfe, rows, where, "sample", trial, first)
        return tokens.numpy().astype(token_dtype(corruption.symbols))

    blocks = Blocks(batches, states, save_every, provenance)
    left = sum(rows for _, _, rows in blocks.left)
    with bar_of(network, left, settings.nfe + settings.greedy_tail, quiet):
        tokens = np.concatenate(blocks.make(batch))
    columns = {
        "tokens": token_column(tokens, facts["vocabulary_size"]),
        "trial": pa.array([trial for trial, _, rows in batches for _ in range(rows)], pa.int32()),
        "sample": pa.array([first + row for _, first, rows in batches for row in range(rows)], pa.int32()),
    }
    with atomic(out) as [temporary]:
        write_table(temporary, pa.table(columns), made)
    provenance.write(out)
    remove(states)


if __name__ == "__main__":
    main()
