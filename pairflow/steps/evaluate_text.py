"""Samples of text to metric rows."""

from pathlib import Path

import pandas as pd

from pairflow.artifacts import Metadata, Provenance, as_metrics, digest, save_table
from pairflow.kinds.text.files import TextFiles
from pairflow.kinds.text.settings import Judge
from pairflow.steps.command import step
from pairflow.steps.options import device, evaluation, existing, out, real_text, threads


@step(Judge)
@existing("--samples", help="Samples (Parquet).")
@real_text
@evaluation
@out("--out", help="Output file for the metric rows (Parquet).")
@device
@threads
def main(settings: Judge, samples: Path, real: TextFiles, evaluation: str, out: Path, device, threads):
    """Measure each trial's samples of text: their perplexity under judges of text that no generator
    has seen, their entropy, their words, repeats and copies of training text, and their n-grams."""
    from pairflow.kinds.text.measure import RealText, measure_trials

    provenance = Provenance()
    text = RealText.read(real, settings, device, threads, provenance)
    trials, metadata = text.read_samples(samples)
    sampling = metadata.parameters
    shared = {key: sampling[key] for key in ("method", "nfe", "seed")}
    written = Metadata(
        kind="metrics",
        vocabulary=metadata.vocabulary,
        parameters={**sampling, **settings.model_dump(mode="json")},
        inputs={"samples": digest(samples), **text.inputs},
    )
    frame = pd.DataFrame(measure_trials(trials, text))
    save_table(out, as_metrics(frame, **shared, evaluation=evaluation), written, provenance)


if __name__ == "__main__":
    main()
