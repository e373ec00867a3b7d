"""Pairs data rows with noise: finds a source x0 for every data row x1, all at once or in shards."""

import re
from pathlib import Path

import click

from pairflow.artifacts import Provenance
from pairflow.config import PairSettings, check
from pairflow.pairing.blocks import PairOptions, read_pairing
from pairflow.pairing.pair import BACKENDS
from pairflow.runtime.resume import ResumeOptions
from pairflow.settings.fields import RowLayout
from pairflow.steps.command import setting_options, step
from pairflow.steps.options import existing, out, quiet, resumable, threads


class _Shard(click.ParamType):
    name = "k/P"

    def convert(self, value, param, ctx):
        match = re.fullmatch(r"(\d+)/(\d+)", value)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            self.fail(f"expected k/P with 1 <= k <= P, found {value!r}", param, ctx)
        return int(match[1]), int(match[2])


@step(PairSettings)
@existing(
    "--tokens",
    help="Token rows of `pairflow preprocess` (Parquet). Or your own, one per data point: a two-dimensional "
    "array of integers (.npy, .npz, .pt), a column of lists of integers (.parquet), or a stream of "
    "integers (.bin).",
)
@out(
    "--out",
    help="Output file, with one row per data point, in data order. It has the pairs x0, x1 (.parquet), or "
    "only the sources x0 (.npy), in the smallest integer type that holds K.",
)
@click.option("--vocabulary-size", type=int, help="Number of symbols K; needed only for rows of your own.")
@setting_options(RowLayout)
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    default="auto",
    show_default=True,
    help="All backends give identical output. `auto` uses a suitable GPU if there is one and the data are "
    "not small. The GPU cannot pair with noise by frequency.",
)
@click.option(
    "--shard",
    type=_Shard(),
    help="Pair only a part of the rows: 2/7 is the second of seven equal ranges. `pairflow gather` joins "
    "the results.",
)
@resumable
@threads
@quiet
def main(
    settings: PairSettings,
    tokens: Path,
    out: Path,
    resume: ResumeOptions,
    quiet: bool,
    **options,
):
    """Give every data point a source state: one computed by Algorithm 1 of the paper (pairflow), or
    independent noise (random).

    With --flow continuous the data are vectors or images of numbers. Every source is drawn from N(0, I) and
    moves to its data point; the output has a row for each source.

    An interrupted pairing resumes. The result depends only on the tokens, the vocabulary size, --steps,
    --subsets, --noise and --seed.
    """
    provenance = Provenance()
    layout = check(RowLayout, {key: options.pop(key) for key in RowLayout.model_fields}, "settings")
    chosen = PairOptions(**options, layout=layout, progress=not quiet)
    read_pairing(settings, tokens, out, chosen, provenance).write(out, resume)


if __name__ == "__main__":
    main()
