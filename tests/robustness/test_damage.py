"""A truncated, altered or swapped artifact of any kind ends in one line that names it; never in a result."""

import contextlib
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from pairflow.artifacts import read_table
from pairflow.errors import InputError

FLIPS = 70
READERS = {  # an artifact -> the step that reads it
    "data/train.parquet": "pair",
    "seed0/pairs/pairflow.parquet": "train",
    "seed0/models/pairflow/model.safetensors": "sample",
    "seed0/models/pairflow/model.json": "sample",
    "seed0/samples/pairflow/main/nfe1.parquet": "evaluate",
    "seed0/models/pairflow/log.parquet": "report",
    "data/vocabulary.json": "report",
}


@pytest.fixture(scope="module")
def damaged(calm, place):
    """A copy of the undisturbed miniature, to be harmed and restored."""
    made = place("damaged")
    shutil.copytree(calm.root, made.root)
    return made


@pytest.fixture
def refused(damaged, capsys):
    """Run a step of the miniature: the line that it ends with, exit code 2; it has written nothing."""

    def run(step, **changes):
        outputs = damaged.outputs(step)
        contents = {path: path.read_bytes() for path in outputs if path.exists()}
        for path in contents:
            path.unlink()
        try:
            assert damaged.run(step, **changes) == 2
            assert not any(path.exists() for path in outputs)
            return capsys.readouterr().err.splitlines()[-1]
        finally:
            for path, content in contents.items():
                path.write_bytes(content)

    return run


@contextlib.contextmanager
def replaced(path, content):
    """A file with another content for a moment."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def truncated(path) -> bytes:
    content = path.read_bytes()
    return content[: len(content) // 2]


def altered(path) -> bytes:
    """One bit flipped in what the file says: of a table, in its first column."""
    content = path.read_bytes()
    place = len(content) // 2
    if path.suffix == ".parquet":
        column = pq.ParquetFile(path).metadata.row_group(0).column(0)
        place = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 1
    return content[:place] + bytes([content[place] ^ 2]) + content[place + 1 :]


@pytest.mark.promise("damage")
@pytest.mark.parametrize("artifact", READERS)
def test_a_harmed_artifact_is_named(damaged, refused, artifact):
    """Every second one is altered, the others are truncated."""
    path, step = damaged.root / artifact, READERS[artifact]
    harm = (truncated, altered)[[*READERS].index(artifact) % 2]
    with replaced(path, harm(path)):
        line = refused(step)
    assert line.startswith(f"pairflow {step}: error: ")
    assert path.name in line or path.parent.name in line


@pytest.mark.promise("damage", times=FLIPS)
def test_no_single_flipped_bit_of_a_table_goes_unnoticed(calm, tmp_path):
    """One bit of each of about FLIPS bytes: the table is refused, or reads as it was."""
    sound, path = calm.root / "data/train.parquet", tmp_path / "table.parquet"
    content, (whole, metadata) = sound.read_bytes(), read_table(sound)
    bits = np.random.default_rng(0).integers(0, 8, len(content))
    places, unnoticed = range(0, len(content), max(1, len(content) // FLIPS)), 0
    for place in places:
        harmed = bytearray(content)
        harmed[place] ^= 1 << int(bits[place])
        path.write_bytes(harmed)
        try:
            table, found = read_table(path)
        except InputError:
            continue
        unnoticed += 1
        assert table.to_pydict() == whole.to_pydict()
        assert found == metadata
    assert unnoticed < len(places) / 2  # statistics, padding and names of the format itself


def test_a_report_leaves_the_users_files_among_its_figures(damaged, capsys):
    """Of which then one has a figure's name."""
    folder = damaged.root / "my papers"
    folder.mkdir()
    for name in ("thesis.pdf", "photo.png", ".hidden"):
        (folder / name).write_text("mine")
    assert damaged.run("report", figures=folder) == 0
    (folder / "main-valid.pdf").write_text("mine")
    assert damaged.run("report", figures=folder) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith(f"pairflow report: error: {folder}/main-valid.pdf: is there, and is no file")
    mine = {path.name for path in folder.iterdir() if path.read_bytes() == b"mine"}
    assert mine == {"thesis.pdf", "photo.png", ".hidden", "main-valid.pdf"}
    shutil.rmtree(folder)


@pytest.mark.promise("exchange")
@pytest.mark.parametrize("kind", ["samples", "metrics"])
def test_the_report_refuses_files_of_another_seed(damaged, refused, kind, tmp_path):
    """Samples drawn with another seed, and metrics of them, under the name of those of seed 0."""
    settings = damaged.experiment.sample_settings("main", 1, 1).model_dump_json()
    files = {name: tmp_path / name for name in ("samples", "metrics", "properties")}
    evaluated = {"samples": files["samples"], "out": files["metrics"], "properties": files["properties"]}
    assert damaged.run("sample", settings=settings, out=files["samples"]) == 0
    assert damaged.run("evaluate", **evaluated) == 0
    path = damaged.root / "seed0" / kind / "pairflow/main/nfe1.parquet"
    with replaced(path, files[kind].read_bytes()):
        line = refused("report")
    assert f"{kind}/pairflow/main/nfe1.parquet: from another configuration, seed is 1 there and 0" in line


@pytest.fixture(scope="module")
def other(place, calm):
    """The same experiment but for its split of the molecules: same vocabulary, same settings, other rows."""
    made = place("other", data=calm.experiment.data.model_dump() | {"split_seed": 1})
    for step in made.chain:
        made.finish(step)
    return made


OTHER_DATA = "do not belong together: they come from different data, "
OTHER_FILE = "was made from a file other than "


@pytest.mark.promise("exchange")
@pytest.mark.parametrize(
    ("step", "flag", "file", "text"),
    [
        ("train", "data", "seed0/pairs/pairflow.parquet", OTHER_DATA),
        ("train", "validation", "data/validation.parquet", OTHER_DATA),
        ("distill", "parent", "seed0/models/pairflow", OTHER_DATA),
        ("evaluate", "samples", "seed0/samples/pairflow/main/nfe1.parquet", OTHER_DATA),
        ("evaluate", "molecules", "reference/molecules.parquet", OTHER_FILE),
    ],
)
def test_a_file_of_another_split_is_refused(refused, other, step, flag, file, text):
    assert text in refused(step, **{flag: other.root / file})


@pytest.mark.promise("exchange")
def test_validation_rows_are_not_trained_on(damaged, refused, tmp_path):
    train, validation = (f"results/mini/data/{name}.parquet" for name in ("train", "validation"))
    assert "holds validation rows, expected train rows" in refused("distill", data=validation)
    assert "holds train rows, expected validation rows" in refused("distill", validation=train)
    pairs = tmp_path / "pairs.parquet"
    assert damaged.run("pair", tokens=validation, out=pairs) == 0
    assert "pairs.parquet: holds validation rows, expected train rows" in refused("train", data=pairs)


MADE_OF = OTHER_FILE + "results/mini/"
AGAIN = "; to make it again: pairflow run mini -- --forcerun results/mini/"


@pytest.mark.promise("exchange")
@pytest.mark.parametrize(
    ("artifact", "text"),
    [
        ("data/smiles.parquet", "split_seed is 1 there and 42 in the configuration"),
        ("seed0/pairs/pairflow.parquet", MADE_OF + "data/train.parquet"),
        ("seed0/models/pairflow", MADE_OF + "data/validation.parquet"),
        ("seed0/samples/pairflow/main/nfe1.parquet", MADE_OF + "seed0/models/pairflow/model.safetensors"),
        ("seed0/metrics/pairflow/main/nfe1.parquet", MADE_OF + "seed0/samples/pairflow/main/nfe1.parquet"),
    ],
)
def test_the_report_refuses_files_of_another_experiment(damaged, refused, other, artifact, text):
    path, spare = damaged.root / artifact, damaged.folder / "spare"
    path.rename(spare)
    copy = shutil.copytree if spare.is_dir() else shutil.copy
    copy(other.root / artifact, path)
    try:
        line = refused("report")
    finally:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        spare.rename(path)
    made = "seed0/models/pairflow/model.json" if "models" in artifact else artifact
    assert line.endswith(f"{text}{AGAIN}{made}")


@pytest.mark.promise("exchange")
def test_the_report_refuses_pairs_of_other_settings(damaged, refused, tmp_path):
    settings = damaged.experiment.pair_settings("pairflow", 0).model_copy(update={"steps": 2})
    made = tmp_path / "made.parquet"
    assert damaged.run("pair", settings=settings.model_dump_json(), out=made) == 0
    with replaced(damaged.root / "seed0/pairs/pairflow.parquet", made.read_bytes()):
        line = refused("report")
    said = "steps is 2 there and 3 in the configuration"
    assert line.endswith(f"{said}{AGAIN}seed0/pairs/pairflow.parquet")
