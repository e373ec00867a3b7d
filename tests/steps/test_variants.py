"""The step `sample` with noise: variants of held-out rows, as an evaluation draws them."""

from pathlib import Path

import numpy as np

from pairflow.artifacts import digest, read_table, token_array


def test_an_evaluation_varies_held_out_rows_in_turn(udlm, step, done, token_file, refused):
    """Real steps: each trial starts with the first held-out row, and a little noise keeps most symbols."""
    shared = {"model": "udlm", "quiet": True, "nfe": 2, "trials": 2, "samples": 30, "noise": 0.01}
    done("sample", out="samples.parquet", held_out="validation.parquet", **shared)
    table, metadata = read_table(Path("samples.parquet"), "samples")
    rows = token_array(read_table(Path("validation.parquet"), "tokens")[0]["tokens"])
    origins = token_array(table["origin"]).reshape(2, 30, 8)
    assert np.array_equal(origins, [[*rows, *rows[:10]]] * 2)
    drawn = token_array(table["tokens"]).reshape(2, 30, 8)
    assert (drawn == origins).mean() > 0.9
    assert not np.array_equal(drawn[0], drawn[1])
    assert metadata.inputs["held_out"] == digest(Path("validation.parquet"))
    refused(step("sample", out="none.parquet", **shared), "sample", "--held-out: needed with --noise")
    text = "--held-out: only with --noise, and without --count"
    for other in ({"trials": 1}, {"count": 3}):
        run = step("sample", model="udlm", out="none.txt", held_out="validation.parquet", nfe=2, **other)
        refused(run, "sample", text)
    token_file("empty.parquet", rows[:0], 6)
    run = step("sample", out="none.parquet", held_out="empty.parquet", **shared)
    refused(run, "sample", "empty.parquet: holds no rows")
