"""Lines of text through every step, to the page and to texts on demand, without Snakemake."""

import contextlib
import html
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pairflow.artifacts import read_table, token_array
from pairflow.config import Experiment, check
from pairflow.data.tokenisers import load_tokeniser
from pairflow.plan.jobs import jobs

ROOT, N = Path("results/lines"), 12
SETTINGS = {
    "description": "lines of two words",
    "scale": "reduced",
    "data": {
        **{"source": "lines.txt", "tokeniser": "characters", "rows": "lines", "length": N},
        **{"validation_fraction": 0.2, "judge_fraction": 0.1},
    },
    "network": {"name": "mlp", "width": 16, "blocks": 1, "time_width": 8},
    "pairing": {"steps": 3},
    "training": {
        **{"batch_size": 16, "iterations": 40, "learning_rate": 1e-2, "validate_every": 20},
        "ignore_padding": True,
    },
    "methods": ["udlm", "pairflow"],
    "evaluations": {"main": {"nfe": [1, 2], "samples": 30, "trials": 2}},
}


@pytest.fixture(scope="module")
def experiment():
    return check(Experiment, SETTINGS, "test")


@pytest.fixture(scope="module")
def finished(made_once, experiment, run_job):
    """A folder with the text and the results of all jobs, in the order of the plan."""

    def make(folder: Path) -> None:
        folder.mkdir()
        words = np.array(["sun", "moon", "star"])[np.random.default_rng(0).integers(3, size=(300, 2))]
        with contextlib.chdir(folder):
            Path("lines.txt").write_text("\n".join([*map(" ".join, words), "a line that is far too long"]))
            for job in jobs(ROOT, experiment):
                run_job(ROOT, job, "text")

    return made_once("text", make)


def test_the_parts_have_one_tokeniser_and_the_long_line_is_listed(finished):
    data = finished / ROOT / "data"
    tables = {
        name: read_table(data / f"{name}.parquet", "tokens") for name in ("train", "validation", "judge")
    }
    tokeniser = load_tokeniser(data / "vocabulary.json")
    assert [len(table) for table, _ in tables.values()] == [210, 60, 30]
    for name, (table, metadata) in tables.items():
        assert (metadata.split, metadata.padding) == (name, tokeniser.padding)
        assert (metadata.vocabulary, metadata.dimensions) == (tokeniser.hash, (N, tokeniser.size))
        words = tokeniser.decode(token_array(table["tokens"])[0]).split()
        assert set(words) <= {"sun", "moon", "star"}
    rejected = read_table(data / "rejected.parquet", "rejected rows")[0].to_pandas()
    assert rejected.reason.tolist() == ["too long (27 tokens, limit 11)"]


def test_ignored_padding_changes_the_model(finished, tmp_path, experiment, run_job):
    """The loss without padding is another loss: that of the mean over text and end symbols."""
    settings = SETTINGS | {"training": {**SETTINGS["training"], "ignore_padding": False}, "methods": ["udlm"]}
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    log = Path("seed0/models/udlm/log.parquet")
    with contextlib.chdir(folder):
        before = pd.read_parquet(ROOT / log).loss
        [train] = [job for job in jobs(ROOT, check(Experiment, settings, "test")) if job.rule == "train"]
        run_job(ROOT, train, "text")
        after = pd.read_parquet(ROOT / log).loss
    assert before.iloc[0] != after.iloc[0]


def test_the_page_shows_text_and_pairs(finished):
    page = (finished / ROOT / "report.html").read_text()
    data = finished / ROOT / "data"
    tokeniser = load_tokeniser(data / "vocabulary.json")
    first = token_array(read_table(data / "train.parquet")[0]["tokens"])[0]
    sample = token_array(read_table(finished / ROOT / "seed0/samples/udlm/main/nfe2.parquet")[0]["tokens"])[0]
    for row in (first, sample):
        assert html.escape(tokeniser.decode(row)) in page
    assert "Pairs of pairflow" in page
    assert re.search(r"t = 1     \w+␣\w+&lt;end&gt;", page)
    said = re.sub(r"<script.*?</script>", "", page.partition("<body>")[2], flags=re.DOTALL)
    for text in ("Training rows", "NLL bound", "Rejected pieces", "Rows of the judge", "␣"):
        assert text in said
    for word in ("olecule", "SMILES", "RDKit", "pixel", "image"):
        assert word not in said


def test_texts_on_demand_are_those_of_the_model(finished, tmp_path, step):
    out = tmp_path / "samples.txt"
    run = step("sample", model=finished / ROOT, count=20, out=out, quiet=True)
    assert run.exit_code == 0, run.output
    assert re.search(r"takes \w+ with --nfe [12]; by the metrics its bigram_tv is 0\.\d+ at NFE", run.stderr)
    assert f"20 texts, seed 0 -> {out}" in run.stderr
    lines = out.read_text().splitlines()
    assert len(lines) == 20
    model = finished / ROOT / "seed0/models/udlm"
    table = tmp_path / "samples.csv"
    options = {"model": model, "nfe": 2, "quiet": True}
    assert step("sample", **options, count=30, unique=True, out=table).exit_code == 0
    texts = pd.read_csv(table, keep_default_na=False).text
    assert texts.is_unique
    assert step("sample", **options, count=5, out=out).exit_code == 0
    assert out.read_text().splitlines()[0] == texts[0]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"novel": True}, "--novel is for molecules; this model makes text"),
        ({"weight": ":100"}, "--weight is for molecules; this model makes text"),
        ({"out": "x.sdf"}, "x.sdf: unknown suffix '.sdf'; expected .txt or .csv for text"),
    ],
)
def test_what_texts_on_demand_cannot_be_is_refused(
    finished, tmp_path, monkeypatch, step, refused, options, text
):
    monkeypatch.chdir(tmp_path)
    model = finished / ROOT / "seed0/models/udlm"
    run = step("sample", model=model, nfe=1, **{"count": 5, "out": "x.txt", **options})
    refused(run, "sample", text)
    assert list(tmp_path.iterdir()) == []


def test_line_breaks_in_a_text_are_written_as_two_characters(tmp_path):
    from pairflow.training.text_demand import _write_lines

    _write_lines(tmp_path / "x.txt", [{"text": "a\nb\\n"}, {"text": "c"}])
    assert (tmp_path / "x.txt").read_text() == "a\\nb\\\\n\nc\n"


def test_what_cannot_be_read_is_told_in_one_line(tmp_path, monkeypatch, step, refused):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_bytes(b"\xff")
    names = ("train", "validation", "judge", "known", "rejected")
    files = {name: f"{name}.parquet" for name in names} | {"vocabulary": "vocabulary.json"}
    settings = {"source": "a.txt", "tokeniser": "characters", "length": 8}
    refused(step("preprocess_text", settings=settings, **files), "preprocess_text", "a.txt: not UTF-8 text")
    Path("folder").mkdir()
    Path("folder/a.txt").write_bytes(b"\xff")
    Path("folder/b.txt").write_text("plain text " * 99)
    run = step("preprocess_text", settings={**settings, "source": "./folder"}, **files)
    assert run.exit_code == 0
    assert run.stderr == (
        "pairflow preprocess_text: note: 1 piece was left out: 1 not UTF-8 text "
        "(the first: a.txt, '\ufffd')\n"
    )
    assert json.loads(Path("vocabulary.json").read_text())["tokens"] == sorted(set("plain text "))
