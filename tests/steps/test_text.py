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
from miniatures import call_of, experiment, root_of

from pairflow.artifacts import read_table, token_array
from pairflow.kinds.text.kneser_ney import KneserNey
from pairflow.kinds.text.ngrams import mark_padding, token_entropy
from pairflow.kinds.text.tokenisers import Characters, load_tokeniser
from pairflow.plan.jobs import jobs

ROOT, EXPERIMENT, N = root_of("text"), experiment("text"), 12
CONTROLS = ("data", "shuffled", "chain", "snippet")
METRICS = {"judge_ppl", "entropy", "known_words", "rep_4", "distinct_4", "js_trigram"}


@pytest.fixture(scope="module")
def finished(finish):
    return finish("text")


def test_the_parts_have_one_tokeniser_and_the_long_line_is_listed(finished):
    data, parts = finished / ROOT / "data", ("train", "validation", "judge")
    tables = {name: read_table(data / f"{name}.parquet", "tokens") for name in parts}
    tokeniser = load_tokeniser(data / "vocabulary.json")
    assert [len(table) for table, _ in tables.values()] == [210, 60, 30]
    for name, (table, metadata) in tables.items():
        assert (metadata.split, metadata.padding) == (name, tokeniser.padding)
        assert (metadata.vocabulary, metadata.dimensions) == (tokeniser.hash, (N, tokeniser.size))
        words = tokeniser.decode(token_array(table["tokens"])[0]).split()
        assert set(words) <= {"sun", "moon", "star"}
    rejected = read_table(data / "rejected.parquet", "rejected rows")[0].to_pandas()
    assert rejected.reason.tolist() == ["too long (27 tokens, limit 11)"]


def test_ignored_padding_changes_the_model(finished, tmp_path, run_call):
    """The loss without padding is another loss: that of the mean over text and end symbols."""
    folder, training = tmp_path / "copy", EXPERIMENT.training.model_copy(update={"ignore_padding": False})
    shutil.copytree(finished, folder)
    log = Path("seed0/models/udlm/log.parquet")
    planned = jobs(ROOT, EXPERIMENT.model_copy(update={"training": training}))
    train = next(job for job in planned if job.method == "udlm")
    with contextlib.chdir(folder):
        before = pd.read_parquet(ROOT / log).loss
        run_call(call_of(ROOT, train, "text"))
        after = pd.read_parquet(ROOT / log).loss
    assert before.iloc[0] != after.iloc[0]


def test_the_page_shows_text_and_pairs(finished, require_own_words):
    page = (finished / ROOT / "report.html").read_text()
    data = finished / ROOT / "data"
    tokeniser = load_tokeniser(data / "vocabulary.json")
    first = token_array(read_table(data / "train.parquet")[0]["tokens"])[0]
    sample = token_array(read_table(finished / ROOT / "seed0/samples/udlm/main/nfe2.parquet")[0]["tokens"])[0]
    for row in (first, sample):
        assert html.escape(tokeniser.decode(row)) in page
    assert "Pairs of pairflow" in page
    assert re.search(r"t = 1     \w+␣\w+&lt;end&gt;", page)
    for text in ("Training rows", "perplexity bound", "Rejected pieces", "Rows of the judge", "␣"):
        assert text in page
    require_own_words(page)


def test_lines_of_text_are_scored_and_garbled_ones_stand_out(finished, tmp_path, done):
    lines = ["sun moon", "moon sun", "nus noom", "no umlaut ä", "a line that is far too long"]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = {"model": finished / ROOT, "draws": 64, "quiet": True}
    run = done("score", tmp_path / "lines.txt", out=tmp_path / "scores.parquet", **options)
    assert re.search(r"takes (udlm|pairflow); by the metrics its judge perplexity is", run.stderr)
    table = pd.read_parquet(tmp_path / "scores.parquet")
    assert table.text.tolist() == lines
    assert [bool(reason) for reason in table.reason] == [False, False, False, True, True]
    assert table.nll_bound[2] > table.nll_bound[:2].max()
    assert table.tokens.tolist()[:3] == [9, 9, 9]  # with the end


def test_texts_on_demand_are_those_of_the_model(finished, tmp_path, step, done):
    out = tmp_path / "samples.txt"
    run = done("sample", model=finished / ROOT, count=20, out=out, quiet=True)
    assert re.search(
        r"takes \w+ with --nfe [12]; by the metrics its judge perplexity is \d+\.\d+ ", run.stderr
    )
    assert f"20 texts, seed 0 -> {out}" in run.stderr
    lines = out.read_text().splitlines()
    assert len(lines) == 20
    model = finished / ROOT / "seed0/models/udlm"
    table = tmp_path / "samples.csv"
    options = {"model": model, "nfe": 2, "quiet": True}
    run = step("sample", **options, count=20, prefix="star m", out=out)
    assert "20 texts (100.0% of them begin with the prefix), seed 0" in run.stderr
    assert all(line.startswith("star m") for line in out.read_text().splitlines())
    done("sample", **options, count=20, template="s*n m", out=out)
    assert {(line[:1], line[2:5]) for line in out.read_text().splitlines() if len(line) > 4} == {("s", "n m")}
    done("sample", **options, count=30, unique=True, out=table)
    texts = pd.read_csv(table, keep_default_na=False).text
    assert texts.is_unique
    done("sample", **options, count=5, out=out)
    assert out.read_text().splitlines()[0] == texts[0]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"novel": True}, "--novel is for molecules; this model makes text"),
        ({"prefix": "Zug"}, "prefix: unknown symbol 'Z'"),
    ],
)
def test_what_texts_on_demand_cannot_be_is_refused(finished, here, step, refused, options, text):
    model = finished / ROOT / "seed0/models/udlm"
    run = step("sample", model=model, nfe=1, **{"count": 5, "out": "x.txt", **options})
    refused(run, "sample", text)
    assert list(here.iterdir()) == []


def test_what_cannot_be_read_is_told_in_one_line(done):
    names = ("train", "validation", "judge", "rejected")
    files = {name: f"{name}.parquet" for name in names} | {"vocabulary": "vocabulary.json"}
    settings = {"source": "./folder", "tokeniser": "characters", "length": 8}
    Path("folder").mkdir()
    Path("folder/a.txt").write_bytes(b"\xff")
    Path("folder/b.txt").write_text("plain text " * 99)
    run = done("preprocess", "text", settings=settings, **files)
    said = "note: 1 piece was left out: 1 not UTF-8 text (the first: a.txt, '\ufffd')"
    assert run.stderr == f"pairflow preprocess: {said}\n"
    assert json.loads(Path("vocabulary.json").read_text())["tokens"] == sorted(set("plain text "))


def test_gpt2_reads_the_decoded_text_without_padding_and_masks(finished, tmp_path, monkeypatch, done):
    """With a reader in its place: every row is decoded, whatever it is, and N tokens of it count."""
    heard = []

    class Reader:
        name, sha256 = "gpt2-large-01234567", "0" * 64

        def perplexity(self, texts, length):
            heard.append((texts, length))
            return float(len(heard))

    monkeypatch.setattr("pairflow.kinds.text.gpt2.GPT2.load", lambda device: Reader())
    monkeypatch.setattr(Characters, "mask", property(lambda self: self.tokens.index("o")))
    settings = {"order": 3, "gen_ppl": True, "samples": 30, "trials": 2}
    data, out = finished / ROOT / "data", tmp_path / "floor.parquet"
    files = {"tokens": data / "train.parquet", "vocabulary": data / "vocabulary.json"}
    files |= {name: data / f"{name}.parquet" for name in ("validation", "judge")}
    done("floor", "text", **files, settings=settings, evaluation="main", out=out, device="cpu")
    table, metadata = read_table(out, "metrics")
    own = table.to_pandas().query("metric == 'gen_ppl'")
    assert own.value.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert own.method.unique().tolist() == [*CONTROLS]
    assert set(own.extractor) == {Reader.name}
    assert metadata.inputs["gpt2"] == Reader.sha256
    texts, length = heard[0]
    assert (len(texts), length) == (30, N)
    assert {word for text in texts for word in text.split()} == {"sun", "mn", "star"}


@pytest.fixture(scope="module")
def rows(finished):
    return pd.read_parquet(finished / ROOT / "metrics.parquet")


def tokens(folder: Path, name: str) -> np.ndarray:
    table, _ = read_table(folder / ROOT / name)
    padding = load_tokeniser(folder / ROOT / "data/vocabulary.json").padding
    return mark_padding(token_array(table["tokens"]), padding)


def test_every_metric_is_there_of_samples_of_real_text_and_of_controls(rows):
    for name in ("main", "main_t0_5"):
        own = rows[rows.evaluation == name]
        for method in (*EXPERIMENT.methods, *CONTROLS):
            assert set(own[own.method == method].metric) == METRICS
        assert (own.samples == 30).all()
        assert own[own.method.isin(EXPERIMENT.methods)].nfe.notna().all()
        assert own[own.method.isin(CONTROLS)].nfe.isna().all()
    references = dict(zip(rows.metric, rows.reference.fillna(""), strict=True))
    found = [references[name] for name in ("js_trigram", "known_words", "entropy")]
    assert found == ["test", "train", ""]


def test_the_values_are_those_of_a_judge_of_its_own_text(finished, rows):
    size = read_table(finished / ROOT / "data/train.parquet")[1].vocabulary_size
    judge = KneserNey.fit(tokens(finished, "data/judge.parquet").reshape(1, -1), size, 3)
    samples = tokens(finished, "seed0/samples/pairflow/main/nfe2.parquet")[:30]
    own = rows.query("method == 'pairflow' and evaluation == 'main' and nfe == 2 and trial == 0")
    [[name, perplexity]] = own[own.metric == "judge_ppl"][["extractor", "value"]].to_numpy()
    assert perplexity == pytest.approx(judge.perplexity(samples))
    assert re.fullmatch(r"kneser-ney-3-[0-9a-f]{8}", name)
    assert own.set_index("metric").value["entropy"] == pytest.approx(token_entropy(samples).mean())


def test_the_judge_finds_shuffled_text_worse_than_real_text(finished, rows):
    own = rows[(rows.metric == "judge_ppl") & (rows.evaluation == "main")]
    means = own.groupby("method").value.mean()
    assert 1.5 * means["data"] < means["shuffled"]
    page = (finished / ROOT / "report.html").read_text()
    assert re.search(r"The judge is a Kneser-Ney model of 3-grams, [0-9a-f]{8}. It has learnt", page)
    assert "GPT-2’s" not in page


def test_the_bounds_are_one_number_in_three_units(finished, rows):
    """A character is a token here, beside the end symbol: 9 or 10 characters with one symbol more."""
    bounds = rows[rows.evaluation == "likelihood"].pivot_table("value", "method", "metric")
    assert list(bounds.index) == sorted(EXPERIMENT.methods)
    assert bounds.ppl_bound.to_numpy() == pytest.approx(np.exp(bounds.nll_bound.to_numpy()))
    density = bounds.bpc_bound.to_numpy() / bounds.nll_bound.to_numpy() * np.log(2)
    held_out = tokens(finished, "data/validation.parquet")
    characters = (held_out >= 0).sum() - len(held_out)
    assert density == pytest.approx((held_out >= 0).sum() / characters)
