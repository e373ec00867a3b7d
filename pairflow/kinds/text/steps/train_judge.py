"""Text that no generator has seen to a transformer that judges samples."""

from pathlib import Path

from pairflow.artifacts import Provenance, atomic, digest, read_table, token_array
from pairflow.errors import InputError
from pairflow.kinds.text.settings import JudgeTransformer
from pairflow.steps.command import step
from pairflow.steps.options import existing, out, quiet, threads


@step(JudgeTransformer)
@existing("--judge", help="Rows of text that only the judge learns from (Parquet).")
@existing("--vocabulary", help="The tokeniser (JSON).")
@out("--out", help="Output file for the weights (safetensors).")
@out("--description", help="Output file for the description: the name of --out, with .json.")
@threads
@quiet
def main(settings: JudgeTransformer, judge: Path, vocabulary: Path, out: Path, description, threads, quiet):
    """Train the second judge of samples of text, a small autoregressive transformer, on the CPU.

    A tenth of the judge's rows is held back: the weights of the lowest loss on them are written.
    """
    from pairflow.kinds.text.judge import save, train
    from pairflow.kinds.text.ngrams import mark_padding
    from pairflow.kinds.text.tokenisers import load_tokeniser
    from pairflow.runtime.device import choose

    provenance = Provenance()
    choose("cpu", threads)
    (table, metadata), tokeniser = read_table(judge, "tokens"), load_tokeniser(vocabulary)
    metadata.require_split("judge", judge)
    metadata.require_same_vocabulary(tokeniser.hash, judge, vocabulary)
    if description != out.with_suffix(".json"):
        raise InputError(f"--description: expected {out.with_suffix('.json')}, found {description}")
    provenance.samples = settings.iterations * settings.batch_size
    rows = mark_padding(token_array(table["tokens"]), tokeniser.padding)
    if len(rows) < 2:
        raise InputError(f"{judge}: {len(rows)} row is too little text for a judge; raise judge_fraction")
    running = not tokeniser.lines and not tokeniser.margins
    network, nll = train(rows, metadata.dimensions[1], settings, running, not quiet)
    sizes = dict(zip(("length", "vocabulary_size"), metadata.dimensions, strict=True))
    inputs = {"judge": digest(judge), "vocabulary": digest(vocabulary)}
    facts = {**settings.model_dump(mode="json"), **sizes, "held_back_nll": nll, "inputs": inputs}
    with atomic(out, description) as [new_weights, new_description]:
        save(new_weights, new_description, network, facts)
    provenance.write(out)


if __name__ == "__main__":
    main()
