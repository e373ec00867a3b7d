"""Steps as a user runs them: artifacts that fit one another, one line and exit code 2 for each mistake."""

import gzip
import json
import signal
import subprocess
import sys
import time

import click
import numpy as np
import pandas as pd
import pytest

from pairflow.artifacts import digest, provenance_path, read_provenance, read_table, token_array
from pairflow.cli import STEPS

MOLECULES = ["CCO", "OCC", "c1ccccc1", "CC(=O)O", "C#N", "CCN", "C1CC1", "CC=O"] * 4
MOLECULES += ["O=C=O", "CO", "CN", "CF"] * 4
NETWORK = json.dumps({"name": "mlp", "width": 16, "blocks": 1, "time_width": 16})
TRAINING = {"batch_size": 8, "iterations": 4, "learning_rate": 1e-3, "validate_every": 2}
TABLES = ("train", "validation", "smiles", "known", "rejected")
EVALUATE = [
    *("--vocabulary", "data/vocabulary.json", "--smiles", "data/smiles.parquet"),
    *("--molecules", "molecules.parquet", "--out", "metrics.parquet"),
    *("--properties", "properties.parquet", "--quiet"),
]


def mistake(run, step: str, text: str) -> None:
    """The run ended with exit code 2 and one line on stderr, which holds `text`."""
    assert run.returncode == 2, run.stderr
    lines = [line for line in run.stderr.splitlines() if line and "%|" not in line]
    assert lines[-1].startswith((f"pairflow {step}: error: ", "Error: "))
    assert text in lines[-1]
    assert "Traceback" not in run.stderr


def parts(folder):
    """The options of `preprocess` that name what it writes into a folder."""
    options = [f"--{name}={folder}/{name}.parquet" for name in TABLES]
    return [*options, f"--vocabulary={folder}/vocabulary.json"]


@pytest.fixture
def preprocess(pairflow_command, tmp_path):
    """Run the preprocess step on rows of a CSV file."""

    def run(rows, *options, folder="data", header="smiles", text=None):
        source = tmp_path / "raw.csv"
        source.write_text("\n".join([header, *rows]) + "\n" if text is None else text)
        options = [*parts(tmp_path / folder), *(options or ("--length", 16))]
        return pairflow_command("preprocess", "--quiet", "--source", source, *options)

    return run


@pytest.fixture
def model(preprocess, pairflow_command, train, tmp_path):
    """A folder with data/, pairs.parquet and model/, made by the steps themselves."""
    assert preprocess(MOLECULES).returncode == 0
    files = ["--tokens", tmp_path / "data/train.parquet", "--out", tmp_path / "pairs.parquet"]
    run = pairflow_command("pair", "--quiet", *files)
    assert run.returncode == 0, run.stderr
    run = train("pairflow", "pairs.parquet")
    assert run.returncode == 0, run.stderr
    return tmp_path


@pytest.fixture
def train(pairflow_command, model_files, tmp_path):
    """Train a method on a file of the folder, in a process of its own."""

    def run(method, data, *options):
        files = {**model_files("model"), "data": data, "validation": "data/validation.parquet"}
        flags = [f"--{key}={value}" for key, value in files.items()]
        settings = ["--settings", json.dumps({"training": TRAINING}), "--network", NETWORK]
        settings += ["--method", method, "--quiet", "--threads", 1, *options]
        return pairflow_command("train", *flags, *settings, cwd=tmp_path)

    return run


def test_the_chain_by_hand_gives_fitting_artifacts_and_equal_bytes(model, train, pairflow_command):
    pairs, metadata = read_table(model / "pairs.parquet", "pairs")
    assert metadata.parameters == {"coupling": "pairflow", "steps": 20, "subsets": 1, "seed": 0}
    assert metadata.inputs == {"tokens": digest(model / "data/train.parquet")}
    train_rows, _ = read_table(model / "data/train.parquet", "tokens")
    np.testing.assert_array_equal(token_array(pairs["x1"]), token_array(train_rows["tokens"]))
    before = digest(model / "model/model.safetensors")
    assert train("pairflow", "pairs.parquet").returncode == 0
    assert digest(model / "model/model.safetensors") == before
    assert json.loads((model / "model/model.json").read_text())["prediction"] == "leave_one_out"
    for _ in range(2):
        flags = ["--model", model / "model", "--nfe", 2, "--samples", 20, "--trials", 3, "--quiet"]
        run = pairflow_command("sample", *flags, "--out", model / "samples.parquet")
        assert run.returncode == 0, run.stderr
        before, last = digest(model / "samples.parquet"), before
    assert before == last
    described = ["--smiles", "data/smiles.parquet", "--quiet", "--out", "molecules.parquet"]
    run = pairflow_command("describe_molecules", *described, cwd=model)
    assert run.returncode == 0, run.stderr
    run = pairflow_command("evaluate", *EVALUATE, "--samples", "samples.parquet", cwd=model)
    assert run.returncode == 0, run.stderr
    rows = pd.read_parquet(model / "metrics.parquet")
    assert rows["method"].unique() == "pairflow"
    assert set(map(tuple, rows.groupby("metric")["trial"].apply(list))) == {(0, 1, 2)}
    counted = rows[rows["metric"].str.fullmatch("valid|invalid_.*")].groupby("trial")["value"].sum()
    assert counted.tolist() == [20, 20, 20]
    assert json.loads(provenance_path(model / "samples.parquet").read_text())["device"] in ("cpu", "cuda")


def test_rejected_rows_are_listed_with_reasons(preprocess, tmp_path):
    run = preprocess(
        [*MOLECULES, "C(", "", "CCCCCCCCCCCCCCCCCC"], "--length", 16, "--max-too-long-share", 0.1
    )
    assert run.returncode == 0, run.stderr
    rejected, _ = read_table(tmp_path / "data/rejected.parquet", "rejected rows")
    reasons = dict(zip(rejected["text"].to_pylist(), rejected["reason"].to_pylist(), strict=True))
    assert reasons["C("].startswith("unparsable")
    assert "too long" in reasons["CCCCCCCCCCCCCCCCCC"]


@pytest.mark.parametrize(
    ("rows", "options", "text"),
    [
        (MOLECULES, ("--length", 16, "--column", "smile"), "raw.csv: no column 'smile'; found 'smiles'"),
        (["(", "C1", "xyz"], ("--length", 16), "no molecule is left"),
        (MOLECULES, ("--length", 5), "length"),
        (MOLECULES, ("--length", 3), "length: input should be greater than or equal to 4, found 3"),
        (MOLECULES, (), "length"),
        (MOLECULES, ("--length", 16, "--training-rows", 10**6), "training_rows"),
    ],
)
def test_bad_molecules_end_in_one_line_and_leave_nothing(preprocess, tmp_path, rows, options, text):
    run = preprocess(rows, *(options or ("--split-seed", 1)))
    mistake(run, "preprocess", text)
    assert not (tmp_path / "data").exists() or not list((tmp_path / "data").iterdir())


def test_bad_files_end_in_one_line(preprocess, pairflow_command, tmp_path):
    mistake(preprocess([], text=""), "preprocess", "raw.csv: empty")
    (tmp_path / "x.csv.gz").write_text("smiles\nCC\n")
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress(b"smiles\nCC\nCCO\nCO\nCN\n"))

    def read(source):
        options = ["--source", source, "--length", 16, *parts(tmp_path)]
        return pairflow_command("preprocess", *options, cwd=tmp_path)

    mistake(read("absent.csv"), "preprocess", "absent.csv: no such file")
    mistake(read("qm8"), "preprocess", "unknown name 'qm8' (did you mean 'qm9'?)")
    mistake(read("x.csv.gz"), "preprocess", "x.csv.gz: not a readable CSV file")
    run = read("y.csv.gz")
    assert run.returncode == 0, run.stderr


def test_files_that_do_not_belong_together_are_refused_by_name(model, train, preprocess, pairflow_command):
    assert preprocess(["C", "CC", "CCC", "N", "NC"], folder="other").returncode == 0
    options = ["--model", "model", "--nfe", 1, "--out", "s.parquet", "--samples", 4]
    assert pairflow_command("sample", *options, cwd=model).returncode == 0
    other = ["--vocabulary", "other/vocabulary.json", "--smiles", "other/smiles.parquet"]
    run = pairflow_command("evaluate", *EVALUATE, "--samples", "s.parquet", *other, cwd=model)
    mistake(run, "evaluate", "s.parquet and other/vocabulary.json do not belong together: vocabulary")
    assert not (model / "metrics.parquet").exists()
    (model / "data/validation.parquet").write_bytes((model / "other/validation.parquet").read_bytes())
    mistake(train("udlm", "data/train.parquet"), "train", "do not belong together")


def test_training_refuses_what_does_not_fit_the_method(model, train):
    for method, options, text in (
        ("random", [], "pairs of the coupling pairflow"),
        ("udlm", [], "holds pairs, expected tokens"),
        ("udml", [], "(did you mean 'udlm'?)"),
        (
            "pairflow",
            ["--learning-rate", 7],
            "learning_rate: input should be less than or equal to 1, found 7",
        ),
        ("pairflow", ["--network", '{"name": "mlp", "heads": 2}'], "unknown key 'network.mlp.heads'"),
        ("pairflow", ["--network", "{"], "not JSON"),
    ):
        mistake(train(method, "pairs.parquet", *options), "train", text)
    run = train("pairflow", "pairs.parquet", "--device", "cuda")
    if run.returncode:
        mistake(run, "train", "--device cuda: torch sees no CUDA device")


def test_pairing_reads_npy_and_says_what_it_needs(pairflow_command, tmp_path):
    tokens = np.random.default_rng(0).integers(0, 5, (40, 6))
    np.save(tmp_path / "rows.npy", tokens)
    flags = ["--tokens", tmp_path / "rows.npy", "--out", tmp_path / "pairs.parquet", "--quiet"]
    size = ("--vocabulary-size", 5)
    for options, text in (
        ((), "rows.npy: --vocabulary-size is needed with a .npy file"),
        (("--vocabulary-size", 4), "expected a token in 0..3, found 4"),
        (("--vocabulary-size", 4, "--coupling", "random"), "expected a token in 0..3, found 4"),
        ((*size, "--steps", 0), "steps: input should be greater than or equal to 1, found 0"),
        ((*size, "--subsets", 10_000), "subsets (of 40 rows): expected an integer in 1..40, found 10000"),
        ((*size, "--stepz", 3), "No such option '--stepz'. (Did you mean"),
    ):
        mistake(pairflow_command("pair", *flags, *options), "pair", text)
    assert not (tmp_path / "pairs.parquet").exists()
    for coupling in ("pairflow", "random"):
        (tmp_path / "pairs.parquet").unlink(missing_ok=True)
        run = pairflow_command("pair", *flags, *size, "--coupling", coupling)
        assert run.returncode == 0, run.stderr
        table, _ = read_table(tmp_path / "pairs.parquet", "pairs")
        np.testing.assert_array_equal(token_array(table["x1"]), tokens)
        assert 0 <= token_array(table["x0"]).min() <= token_array(table["x0"]).max() < 5


def test_an_interrupted_pairing_stops_at_once_and_leaves_no_file(tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).integers(0, 40, (60_000, 32), dtype=np.uint8))
    command = [sys.executable, "-m", "pairflow.steps.pair", "--tokens", tmp_path / "rows.npy"]
    options = ["--out", tmp_path / "pairs.parquet", "--vocabulary-size", "40", "--steps", "200"]
    run = subprocess.Popen(
        [*map(str, command + options)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job would ignore it
    )
    run.stderr.read(1)  # the progress bar: pairing has begun
    time.sleep(1)
    run.send_signal(signal.SIGINT)
    started = time.monotonic()
    error = run.communicate(timeout=30)[1]
    assert time.monotonic() - started < 10
    assert run.returncode == 128 + signal.SIGINT
    assert error.endswith(
        "pairflow pair: stopped after 0 of 2 blocks, which are saved: rerun the same command to resume\n"
    )
    assert "Traceback" not in error
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


@pytest.fixture
def rows(tmp_path):
    """A .npy file of 60 rows, and the options that pair it."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).integers(0, 5, (60, 6)))
    return ["--tokens", tmp_path / "rows.npy", "--vocabulary-size", 5, "--quiet"]


def test_shards_join_to_the_bytes_of_the_whole(pairflow_command, rows, tmp_path):
    def pair(out, *options):
        return pairflow_command("pair", *rows, *options, "--out", tmp_path / out)

    def gather(*shards, out="x.parquet"):
        return pairflow_command("gather", *shards, "--out", tmp_path / out)

    for shard in (2, 3, 1):
        run = pair(f"{shard}.parquet", "--shard", f"{shard}/3")
        assert run.returncode == 0, run.stderr
    assert pair("whole.parquet").returncode == 0
    shards = [tmp_path / f"{shard}.parquet" for shard in (3, 1, 2)]
    run = gather(*shards, out="joined.parquet")
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "joined.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    spent = [read_provenance(path)["device_seconds"] for path in shards]
    assert read_provenance(tmp_path / "joined.parquet")["device_seconds"] >= sum(spent) > 0
    mistake(gather(*shards[:2]), "gather", "no shard begins at row 20")
    assert pair("other.parquet", "--steps", 7, "--shard", "2/3").returncode == 0
    run = gather(*shards[:2], tmp_path / "other.parquet")
    mistake(run, "gather", "other.parquet: a shard of another pairing than")
    mistake(pair("x.parquet", "--shard", "4/3"), "pair", "expected k/P with 1 <= k <= P, found '4/3'")
    run = pair("x.parquet", "--shard", "4/61")
    mistake(
        run,
        "pair",
        "--shard: 61 shards are too many for 60 rows, because some would be empty; choose fewer shards",
    )
    assert not (tmp_path / "x.parquet").exists()


def test_a_dry_run_says_what_it_would_take_and_writes_nothing(pairflow_command, rows, tmp_path):
    run = pairflow_command("pair", *rows, "--dry-run", "--out", tmp_path / "pairs.parquet")
    assert run.returncode == 0, run.stderr
    assert "rows: 60 of 6 tokens, 4.3e+05 token comparisons" in run.stdout
    assert "time: about" in run.stdout
    assert "memory: about" in run.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


def test_an_output_of_other_parameters_is_not_overwritten(pairflow_command, rows, tmp_path):
    def pair(*options):
        return pairflow_command("pair", *rows, "--out", tmp_path / "pairs.parquet", *options)

    for _ in range(2):
        assert pair("--steps", 4).returncode == 0
    before = (tmp_path / "pairs.parquet").read_bytes()
    text = "pairs.parquet: exists, with steps 4 instead of 5; remove it or choose another --out"
    mistake(pair("--steps", 5), "pair", text)
    run = pair("--steps", 4, "--vocabulary-size", 6)
    mistake(run, "pair", "pairs.parquet: exists, with K 5 instead of 6")
    assert (tmp_path / "pairs.parquet").read_bytes() == before


def test_a_long_pairing_goes_on_from_its_finished_blocks(rows, tmp_path, monkeypatch):
    """In one process, with small blocks: what was paired is not paired again, and the bytes are the same."""
    from pairflow.steps import pair

    arguments = [str(item) for item in rows]
    pair.main([*arguments, "--out", str(tmp_path / "whole.parquet")], standalone_mode=False)
    monkeypatch.setattr(pair, "BLOCK", 20 * 60 * 6 * 20)  # 20 rows
    paired, done = pair.pairflow.pair, []

    def record(*positional, **options):
        if len(done) == 2 and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        done.append(options["rows"])
        return paired(*positional, **options)

    interrupted = []
    monkeypatch.setattr(pair.pairflow, "pair", record)
    resumed = [*arguments, "--out", str(tmp_path / "pairs.parquet")]
    with pytest.raises(click.Abort):
        pair.main(resumed, standalone_mode=False)
    assert done == [(0, 20), (20, 40)]
    assert not (tmp_path / "pairs.parquet").exists()
    assert len(list(tmp_path.glob(".pairs.parquet.resume/*/*.block"))) == 2
    [spent] = tmp_path.glob(".pairs.parquet.resume/*/*.json")
    spent.write_text('{"seconds": 5000, "device_seconds": 7000}')
    pair.main(resumed, standalone_mode=False)
    assert done[2:] == [(40, 60)]
    assert (tmp_path / "pairs.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert not list(tmp_path.glob(".pairs.parquet.resume"))
    facts = read_provenance(tmp_path / "pairs.parquet")
    assert 5000 < facts["seconds"] < 5100
    assert 7000 < facts["device_seconds"] < 7100


@pytest.mark.parametrize("step", STEPS)
def test_help_teaches_every_step(pairflow_command, step):
    run = pairflow_command(step, "--help")
    assert run.returncode == 0
    assert run.stdout.count("\n  --") >= 2
    assert f"Usage: python -m pairflow.steps.{step}" in run.stdout
