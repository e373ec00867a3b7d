"""A user's own token rows through every step, to the page, without Snakemake."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from miniatures import SOURCES, K, N, experiment, root_of, token_rows

import pairflow
from pairflow.artifacts import read_table, row_column, token_array, write_table

ROOT, EXPERIMENT = root_of("tokens"), experiment("tokens")


@pytest.fixture(scope="module")
def finished(finish):
    return finish("tokens")


@pytest.fixture
def parts(finished):
    """The files of the rows as a step takes them."""
    data = finished / ROOT / "data"
    return {"tokens": data / "train.parquet", "validation": data / "validation.parquet"}


def test_rows_are_split_and_keep_their_order(finished):
    data = finished / ROOT / "data"
    train, validation = (read_table(data / f"{name}.parquet", "tokens") for name in ("train", "validation"))
    rows = [token_array(table["tokens"]) for table, _ in (train, validation)]
    assert [len(part) for part in rows] == [160, 40]
    every = [tuple(row) for row in token_rows().tolist()]
    places = [every.index(tuple(row)) for row in rows[0].tolist()]
    assert len(set(every) - {tuple(row) for part in rows for row in part.tolist()}) == 0
    assert places[0] < 20
    assert (train[1].dimensions, train[1].split, validation[1].split) == ((N, K), "train", "validation")
    assert train[1].vocabulary == validation[1].vocabulary
    assert train[1].data == validation[1].data


def test_a_row_of_an_unknown_class_is_named(tmp_path, step, done, refused):
    rows = token_rows().tolist()
    write_column(tmp_path / "rows.parquet", "tokens", rows, kind=["a", "b", "c", ""] * (len(rows) // 4))
    condition = {"column": "kind", "classes": ["a", "b"]}
    data = {"source": "tokens", "file": str(tmp_path / "rows.parquet"), "vocabulary_size": K}
    names = ("train.parquet", "validation.parquet", "vocabulary.json")
    files = {Path(name).stem: tmp_path / "data" / name for name in names}
    run = step("preprocess", "tokens", settings=data | {"condition": condition}, quiet=True, **files)
    refused(run, "preprocess", "column 'kind': row 2: expected one of a, b, found 'c'")
    condition["classes"].append("c")
    run = done("preprocess", "tokens", settings=data | {"condition": condition}, quiet=True, **files)
    assert "rows have no class in column 'kind'" in run.stderr
    made, metadata = read_table(files["train"], "tokens")
    assert metadata.condition["names"] == ["a", "b", "c"]
    assert set(made["label"].to_pylist()) == {0, 1, 2, 3}  # 3: no class


def test_every_metric_is_there_with_its_floor(finished):
    rows = pd.read_parquet(finished / ROOT / "metrics.parquet")
    sampled = rows[rows.evaluation == "main"]
    names = {"bigram_tv", "unigram_tv", "nn_hamming", "copies", "distinct"}
    for method in (*EXPERIMENT.methods, "data"):
        assert set(sampled[sampled.method == method].metric) == names
    models = sampled[sampled.method != "data"]
    assert len(models) == len(EXPERIMENT.methods) * 2 * 2 * len(names)  # NFE, trials, metrics
    assert (models.samples == 30).all()
    assert set(zip(sampled.metric, sampled.reference.fillna(""), strict=True)) == {
        *(("bigram_tv", "test"), ("unigram_tv", "test"), ("nn_hamming", "train")),
        *(("copies", "train"), ("distinct", "")),
    }
    bounds = rows[rows.metric == "nll_bound"].set_index("method").value
    assert list(bounds.index) == list(EXPERIMENT.methods)
    log = pd.read_parquet(finished / ROOT / "seed0/models/udlm/log.parquet")
    assert bounds["udlm"] == log.validation_nll.iloc[-1]


def test_the_page_shows_distances_their_floor_and_rows(finished, require_own_words):
    page = (finished / ROOT / "report.html").read_text()
    for text in ("bigram distance", "real rows", "Training rows", "NLL bound", "Hamming distance"):
        assert text in page
    row = token_array(read_table(finished / ROOT / "data/train.parquet")[0]["tokens"])[0]
    assert " ".join(map(str, row)) in page
    require_own_words(page)


def test_a_method_trains_on_own_pairs_of_training_rows(finished):
    """Each training row keeps the source that the user's file has for it; pairs of held-out rows are gone."""
    train = read_table(finished / ROOT / "data/train.parquet")[0]
    pairs = read_table(finished / ROOT / "seed0/pairs/pairs-mine.parquet")[0]
    x0, x1 = (token_array(pairs[name]) for name in ("x0", "x1"))
    known = {tuple(row) for row in token_array(train["tokens"]).tolist()}
    mine = zip(SOURCES.tolist(), token_rows().tolist(), strict=True)
    expected = [(x0, x1) for x0, x1 in mine if tuple(x1) in known]
    assert list(zip(x0.tolist(), x1.tolist(), strict=True)) == expected
    rows = pd.read_parquet(finished / ROOT / "metrics.parquet")
    rows = rows[(rows.method == "pairs-mine") & (rows.evaluation == "coupling")].set_index("metric").value
    assert rows["hamming_mean"] == np.mean([np.not_equal(*pair).sum() for pair in expected])
    assert (rows["unpaired_rows"], rows["held_out_pairs"]) == (0, 200 - len(expected))
    words = (finished / ROOT / "report.html").read_text()
    assert "Your own pairs, pairs-mine: 0 of the 160 training rows have no pair" in words


def test_rows_are_the_same_whatever_integers_a_file_holds(parts, done):
    pairflow.write_pairs(SOURCES, token_rows(), "mine.parquet", vocabulary_size=K)
    table, metadata = read_table(parts["validation"])
    wide = {name: row_column(token_array(table[name]).astype(np.int64)) for name in table.column_names}
    write_table(Path("wide.parquet"), pa.table(wide), metadata)
    for held_out, out in ((parts["validation"], "narrow.pairs"), (Path("wide.parquet"), "wide.pairs")):
        done("adopt", **ADOPTED | parts | {"out": out, "validation": held_out})
    narrow, wide = (read_table(Path(name))[0] for name in ("narrow.pairs", "wide.pairs"))
    assert narrow.equals(wide)


ADOPTED = {"settings": {"coupling": "pairs-mine"}, "user_pairs": "mine.parquet", "out": "pairs.parquet"}


@pytest.mark.parametrize(
    ("x0", "x1", "size", "text"),
    [
        (SOURCES, token_rows(), K + 1, "mine.parquet: (N, K) is (6, 6), expected (6, 5) as in"),
        (SOURCES[:9], np.eye(9, N, -3, int) * 3, K, "mine.parquet: row 3: x1 is no row of the data; pair"),
        (token_rows(), SOURCES, K, "row 0: x1 is no row of the data, but x0 is one; are x0 and x1 swapped?"),
    ],
)
def test_own_pairs_that_do_not_fit_are_refused(parts, step, refused, x0, x1, size, text):
    pairflow.write_pairs(x0, x1, "mine.parquet", vocabulary_size=size)
    refused(step("adopt", **ADOPTED, **parts), "adopt", text)


def test_a_file_of_held_out_rows_only_and_a_plain_file_are_refused(parts, step, refused):
    known, held_out = (token_array(read_table(path)[0]["tokens"]) for path in parts.values())
    only = np.array([row for row in held_out.tolist() if row not in known.tolist()])
    pairflow.write_pairs(only, only, "mine.parquet", vocabulary_size=K)
    refused(step("adopt", **ADOPTED, **parts), "adopt", "mine.parquet: no x1 is a training row; pair")
    pq.write_table(pa.table({"x0": [[1]], "x1": [[1]]}), "mine.parquet")
    text = "mine.parquet: was not written by pairflow; `pairflow.write_pairs` makes such a file of your own"
    refused(step("adopt", **ADOPTED, **parts), "adopt", text)


@pytest.mark.parametrize(
    ("x0", "x1", "path", "text"),
    [
        ([[0, 1]], [[0, 1], [1, 2]], "a.parquet", "x0, x1: expected one shape (rows, positions), found"),
        ([[0, 1]], [[0, 1]], "no/a.parquet", "no/a.parquet: expected a file in a folder that is there"),
        ([[0, 1]], [[0, 1]], "/proc/a.parquet", "/proc/a.parquet: cannot be written: No such file or dir"),
    ],
)
def test_pairs_that_cannot_be_written_are_refused(here, x0, x1, path, text):
    with pytest.raises(pairflow.InputError, match=re.escape(text)):
        pairflow.write_pairs(x0, x1, path, vocabulary_size=K)
    assert list(here.iterdir()) == []


def test_pairs_come_back_as_they_were_written(finished, tmp_path):
    pairflow.write_pairs(SOURCES, token_rows(), tmp_path / "a.parquet", vocabulary_size=K)
    np.testing.assert_array_equal(pairflow.read_pairs(tmp_path / "a.parquet"), (SOURCES, token_rows()))
    x0, x1 = pairflow.read_pairs(finished / ROOT / "seed0/pairs/pairflow.parquet")
    train = token_array(read_table(finished / ROOT / "data/train.parquet")[0]["tokens"])
    np.testing.assert_array_equal(x1, train)
    paired = pairflow.pair(train, vocabulary_size=K, steps=EXPERIMENT.pairing.steps, progress=False)
    np.testing.assert_array_equal(x0, paired)
    with pytest.raises(pairflow.InputError, match="holds tokens, expected pairs or vector pairs"):
        pairflow.read_pairs(finished / ROOT / "data/train.parquet")


BAD_TABLES = {
    "reference of copies: expected one of train, found ['train']": {"reference": ["train"]},
    "copies has no extractor, found 'zzz'": {"extractor": "zzz"},
    "evaluation: expected one of main, found ['main']": {"evaluation": ["main"]},
    "no metric None in the evaluation 'main'": {"metric": None},
}


def test_results_are_tables_for_notebooks(finished, monkeypatch):
    monkeypatch.chdir(finished)
    own = pairflow.results("tokens")
    table = own.table("bigram_tv")
    assert (list(table.index), list(table.columns)) == (list(EXPERIMENT.methods), [1, 2])
    rows = own.metrics[(own.metrics.method == "udlm") & (own.metrics.metric == "bigram_tv")]
    assert table.loc["udlm", 2] == pytest.approx(rows[rows.nfe == 2].value.mean())
    assert own.dataset == "rows.npy"
    assert pairflow.results(finished / ROOT).table("copies", "main", "train").equals(own.table("copies"))
    with pytest.raises(pairflow.InputError, match=r"no metric 'copy' .*: it has nn_hamming, copies"):
        own.table("copy")
    for text, arguments in BAD_TABLES.items():
        with pytest.raises(pairflow.InputError, match=f"^tokens: {re.escape(text)}"):
            own.table(**{"metric": "copies", **arguments})
    with pytest.raises(pairflow.InputError, match=r"results/none: no finished experiment, because"):
        pairflow.results("none")


PARTS = {name: f"new/{name}" for name in ("train", "validation", "vocabulary")}


CUT = {"dtype": "uint16", "length": N}
FILES = {  # name of a file of rows -> how it is written, and the options that it needs
    "rows.npy": (np.save, {}),
    "ROWS.NPY": (lambda name, rows: Path(name).write_bytes(Path("rows.npy").read_bytes()), {}),
    "lists.parquet": (lambda name, rows: write_column(name, "tokens", rows.tolist(), title=["a"] * 200), {}),
    "fixed.PARQUET": (lambda name, rows: write_column(name, "tokens", row_column(rows)), {}),
    "large.parquet": (
        lambda name, rows: write_column(name, "t", pa.array(rows.tolist(), pa.large_list(pa.int64()))),
        {},
    ),
    "hf.parquet": (
        lambda name, rows: write_column(name, "input_ids", rows.tolist(), mask=rows.tolist()),
        {"column": "input_ids"},
    ),
    "rows.npz": (lambda name, rows: np.savez_compressed(name, tokens=rows, mask=rows > 0), {}),
    "one.npz": (np.savez, {}),
    "rows.pt": (lambda name, rows: torch.save(torch.tensor(rows), name), {}),
    "dict.pt": (lambda name, rows: torch.save({"a": torch.tensor(rows), "b": 1}, name), {"column": "a"}),
    "train.bin": (lambda name, rows: np.append(rows, [1, 2]).astype(np.uint16).tofile(name), CUT),
    "stream.npy": (lambda name, rows: np.save(name, rows.ravel()), {"length": N}),
}


def write_column(file, name, values, **others):
    pq.write_table(pa.table({name: values, **others}), file)


def test_every_file_of_rows_gives_the_same_bytes(done):
    rows, stored = token_rows(), set()
    for file, (write, layout) in FILES.items():
        write(file, rows)
        options = {name: f"of {file}/{name}" for name in PARTS}
        own = {"source": "tokens", "file": file, "vocabulary_size": K, **layout}
        run = done("preprocess", "tokens", **own, **options)
        left = 2 if file == "train.bin" else 0
        end = "; the last 2 were left out" if left else ""
        cut = f"{200 * N + left:,} tokens, one after another, were cut into 200 rows of {N}{end}\n"
        assert (cut in run.stderr) == ("length" in layout)
        table, metadata = read_table(Path(options["train"]), "tokens")
        stored.add((table["tokens"].combine_chunks().flatten().to_numpy().tobytes(), metadata.vocabulary))
        assert layout.items() <= metadata.parameters.items()
    assert len(stored) == 1


WRITERS = {name: write for name, (write, _) in FILES.items()}
WRITERS["rows.parquet"] = lambda name, columns: pq.write_table(pa.table(columns), name)
WRITERS["pickle.pt"] = lambda name, _: torch.save({"tokens": Path}, name)
MISSING = {"tokens": [[1, 2], None]}
RAGGED, EMPTY = {"tokens": [[1, 2], [3]]}, {"tokens": pa.array([], pa.list_(pa.int64()))}


@pytest.mark.parametrize(
    ("name", "rows", "layout", "text"),
    [
        ("rows.npy", np.ones((20, 2)), {}, "rows.npy: expected an integer dtype, found float64"),
        ("rows.npy", np.eye(20, 3, k=-7, dtype=int) * 5, {}, "row 7, position 0: expected a token in 0..4"),
        ("rows.npy", np.zeros((9, 2), int), {}, "rows.npy: expected at least 10 rows, found 9"),
        ("rows.npy", np.ones((20, 2), int), {}, "rows.npy: all 20 rows are equal, so that there is"),
        ("rows.npy", token_rows(), {"column": "a"}, "a .npy file has no column to choose"),
        ("rows.npz", token_rows(), {"column": "token"}, "expected one column 'token'; it has tokens, mask"),
        ("train.bin", np.zeros(41, int), {}, "as by --dtype uint16 (of nanoGPT's files) --length N"),
        ("train.bin", np.zeros(41, int), CUT | {"dtype": "int32"}, "bytes are no whole number of int32"),
        ("rows.parquet", {"a": [[1]], "b": [[1]]}, {}, "expected one column 'tokens'; it has a, b; choose"),
        ("rows.parquet", RAGGED, {}, "rows of one length, found 2 tokens in row 0 and 1 in row 1"),
        ("rows.parquet", EMPTY, {}, "expected at least one row and one position, found"),
        ("rows.parquet", MISSING, {}, "rows.parquet: column 'tokens': has missing tokens"),
        ("rows.parquet", {"tokens": [[1], [9]]}, {}, "row 1, position 0: expected a token in 0..4, found 9"),
        pytest.param(
            *("pickle.pt", None, {}, "pickle.pt: not a PyTorch file of tensors"),
            marks=pytest.mark.promise("code"),
        ),
    ],
)
def test_rows_that_cannot_be_used_are_refused(step, refused, name, rows, layout, text):
    WRITERS[name](name, rows)
    own = {"source": "tokens", "file": name, "vocabulary_size": K, **layout}
    refused(step("preprocess", "tokens", **own, **PARTS), "preprocess", text)
    assert not Path("new").exists()
