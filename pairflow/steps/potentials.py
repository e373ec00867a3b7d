"""Computes the potentials of data rows, by which semidiscrete transport assigns new noise rows to them."""

from pathlib import Path

import click

from pairflow.artifacts import Provenance
from pairflow.config import FLOWS, PotentialsSettings
from pairflow.runtime.resume import ResumeOptions
from pairflow.steps.command import step
from pairflow.steps.options import device, existing, out, quiet, resumable, threads


@step(PotentialsSettings)
@existing("--tokens", help="Token rows, or vectors (Parquet).")
@out("--out", help="Output file for the pairs x0, x1 and the potentials of the rows (Parquet).")
@device
@threads
@resumable
@quiet
def main(
    settings: PotentialsSettings,
    tokens: Path,
    out: Path,
    device: str,
    threads: int | None,
    resume: ResumeOptions,
    quiet: bool,
):
    """Give each row a potential, such that sources go to nearby rows and reach all rows equally often.

    A model of `sdot` trains on new sources in every iteration; the potentials lead each source to its row.
    The file also has one source for each row. An interrupted search resumes, with the same bytes. Token rows
    use the GPU only with --device cuda.
    """
    from pairflow.pairing.potentials import write_potentials
    from pairflow.runtime.device import choose

    provenance = Provenance()
    named = "cpu" if FLOWS[settings.flow].tokens and device == "auto" else device
    chosen = choose(named, threads, provenance)
    arguments = settings, tokens, out, resume, provenance
    balance = write_potentials(*arguments, device=chosen, threads=threads, progress=not quiet)
    if not balance.reached:
        click.echo(
            f"pairflow potentials: note: the rows are not balanced: the variance of their hits is "
            f"{balance.spread:.2f} times the mean, expected 1; try a higher --tau",
            err=True,
        )


if __name__ == "__main__":
    main()
