"""Real text and rows that anyone can draw from it to metric rows."""

from pathlib import Path

import pandas as pd

from pairflow.artifacts import Metadata, Provenance, as_metrics, save_table
from pairflow.kinds.text.files import TextFiles
from pairflow.kinds.text.settings import JudgedDraws
from pairflow.steps.command import step
from pairflow.steps.options import device, evaluation, out, real_text, threads


@step(JudgedDraws)
@real_text
@evaluation
@out("--out", help="Output file for the metric rows of real text and of the controls (Parquet).")
@device
@threads
def main(settings: JudgedDraws, real: TextFiles, evaluation: str, out: Path, device, threads):
    """Compute the floor and the controls: the same metrics as for samples, but of other rows.

    Rows of the method 'data' are held-out text. Those of 'shuffled', 'chain' and 'snippet' are drawn from the
    training text without a model: tokens in no order, a chain of trigrams, one training row repeated.
    """
    from pairflow.kinds.text.measure import RealText, measure_real

    provenance = Provenance()
    text = RealText.read(real, settings, device, threads, provenance)
    written = Metadata(
        kind="metrics",
        vocabulary=text.real.metadata.vocabulary,
        parameters=settings.model_dump(mode="json"),
        inputs=text.inputs,
    )
    frame = pd.DataFrame(measure_real(text, settings))
    save_table(out, as_metrics(frame, seed=settings.seed, evaluation=evaluation), written, provenance)


if __name__ == "__main__":
    main()
