"""Turns raw data into the rows that a model learns: reads, checks, tokenises and splits them."""

from pathlib import Path

import click

from pairflow.artifacts import Provenance
from pairflow.config import DataSettings
from pairflow.kinds.kind import AnyKind, Preprocessing
from pairflow.runtime.resume import LongWork, ResumeOptions
from pairflow.runtime.threads import granted_threads
from pairflow.steps.command import ByKind, step
from pairflow.steps.options import out, parent_vocabulary, quiet, resume_folder, threads, together


def _preprocess(kind: AnyKind) -> click.Command:
    options = [out(f"--{Path(name).stem}", help=text) for name, text in kind.settings.prepared.items()]
    if kind.settings.keeps_symbols:
        options.append(parent_vocabulary)
    if kind.costs.takes_long:
        options += [resume_folder, threads]

    @together(*options)
    @quiet
    def run(
        settings: DataSettings,
        quiet: bool,
        parent_vocabulary: Path | None = None,
        resume: Path | None = None,
        threads: int | None = None,
        **files: Path,
    ):
        provenance = Provenance()
        work = LongWork(threads or granted_threads(), ResumeOptions(resume), provenance)
        kind.prepare(settings, Preprocessing(files, parent_vocabulary, not quiet, work))
        provenance.write(files["train"])

    run.__doc__ = kind.prepare.__doc__
    return step(kind.settings)(run)


main = ByKind(_preprocess, "Turn raw data into rows for training, held-out rows and a vocabulary.")

if __name__ == "__main__":
    main()
