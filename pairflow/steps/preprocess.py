"""Turns raw data into the rows that a model learns: reads, checks, tokenises and splits them."""

from collections.abc import Callable
from pathlib import Path

from pairflow.artifacts import Provenance
from pairflow.config import DataSettings
from pairflow.kinds.kind import Kind
from pairflow.runtime.threads import granted_threads
from pairflow.steps.command import by_kind, step
from pairflow.steps.options import out, parent_vocabulary, quiet, threads, together


def _preprocess(kind: Kind) -> Callable:
    options = [out(f"--{Path(name).stem}", help=text) for name, text in kind.prepared.items()]
    if kind.keeps_symbols:
        options.append(parent_vocabulary)
    if kind.uses_threads:
        options.append(threads)

    @together(*options)
    @quiet
    def run(
        settings: DataSettings,
        quiet: bool,
        parent_vocabulary: Path | None = None,
        threads: int | None = None,
        **files: Path,
    ):
        provenance = Provenance()
        parallel = {"threads": threads or granted_threads()} if kind.uses_threads else {}
        kind.prepare(settings, files, parent_vocabulary, not quiet, **parallel)
        provenance.write(files["train"])

    run.__doc__ = kind.prepare.__doc__
    return step(kind.settings)(run)


main = by_kind(_preprocess, "Turn raw data into rows for training, held-out rows and a vocabulary.")

if __name__ == "__main__":
    main()
