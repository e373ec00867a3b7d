"""Turns raw data into the rows that a model learns: reads, checks, tokenises and splits them."""

from collections.abc import Callable
from pathlib import Path

from pairflow.artifacts import Provenance
from pairflow.config import DataSettings
from pairflow.kinds.kind import Kind
from pairflow.steps.command import by_kind, step
from pairflow.steps.options import out, parent_vocabulary, quiet, together


def _preprocess(kind: Kind) -> Callable:
    options = [out(f"--{Path(name).stem}", help=text) for name, text in kind.prepared.items()]
    if kind.keeps_symbols:
        options.append(parent_vocabulary)

    @together(*options)
    @quiet
    def run(settings: DataSettings, quiet: bool, parent_vocabulary: Path | None = None, **files: Path):
        provenance = Provenance()
        kind.prepare(settings, files, parent_vocabulary, not quiet)
        provenance.write(files["train"])

    run.__doc__ = kind.prepare.__doc__
    return step(kind.settings)(run)


main = by_kind(_preprocess, "Turn raw data into rows for training, held-out rows and a vocabulary.")

if __name__ == "__main__":
    main()
