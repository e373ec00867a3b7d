"""`preprocess images` as a user runs it: what it writes, what it says, what fits together."""

import hashlib

import numpy as np
import pytest
from PIL import Image

from pairflow.artifacts import provenance_path, read_table, token_array
from pairflow.kinds.images.data_sets import DATA_SETS as IMAGES
from pairflow.kinds.images.prepare import to_images
from pairflow.kinds.images.settings import Images


@pytest.fixture
def preprocess(step, tmp_path):
    """Run the step into a folder; returns the run and the two files."""

    def run(name, **options):
        train, test = (tmp_path / name / f"{split}.parquet" for split in ("train", "validation"))
        files = {"train": train, "validation": test, "vocabulary": train.with_name("vocabulary.json")}
        return step("preprocess", "images", quiet=True, **options, **files), train, test

    return run


@pytest.fixture
def pictures(tmp_path):
    """A folder of ten coloured images of 4 x 6 pixels."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (10, 4, 6, 3), np.uint8)
    for row, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"{row}.png")
    return folder


def test_digits_become_token_rows_with_labels_and_their_contract(preprocess):
    run, train, test = preprocess("digits", source="digits")
    assert (run.exit_code, run.output) == (0, "")
    expected = IMAGES["digits"].read(Images(source="digits"))
    rows = {train: (expected.train, expected.train_labels), test: (expected.test, expected.test_labels)}
    for path, (tokens, labels) in rows.items():
        table, metadata = read_table(path, "tokens")
        assert table.column_names == ["tokens", "label"]
        assert np.array_equal(token_array(table["tokens"]), tokens)
        assert table["label"].to_pylist() == labels.tolist()
        assert (metadata.length, metadata.vocabulary_size, metadata.shape) == (64, 2, [1, 8, 8])
        contract = train.with_name("vocabulary.json").read_bytes().rstrip()
        assert metadata.vocabulary == hashlib.sha256(contract).hexdigest()
        assert (metadata.padding, metadata.mask) == (None, None)
        assert (metadata.parameters["source"], metadata.parameters["partial"]) == ("digits", None)
        assert metadata.inputs == {"source": expected.source}
    assert provenance_path(train).is_file()


def test_a_folder_of_images_has_no_labels(preprocess, pictures):
    run, train, test = preprocess("data", source="image_folder", folder=pictures)
    assert run.exit_code == 0
    table, metadata = read_table(train, "tokens")
    assert table["label"].to_pylist() == [None] * 9
    assert (metadata.shape, metadata.vocabulary_size) == ([3, 4, 6], 256)
    shown = to_images(token_array(read_table(test, "tokens")[0]["tokens"]), metadata.shape, 256)
    assert any(np.array_equal(shown[0], np.asarray(Image.open(path))) for path in pictures.iterdir())


def test_files_of_another_resolution_refuse_each_other(preprocess, train, pictures, refused):
    _, rows, _ = preprocess("one", source="image_folder", folder=pictures)
    _, _, test = preprocess("other", source="image_folder", folder=pictures, size=4)
    refused(train("udlm", rows, files={"validation": test}), "train", "do not belong together: vocabulary")


def test_images_that_are_all_equal_are_refused(preprocess, pictures):
    """White marks on nothing are not seen on a white ground, but on a black one."""
    for row, path in enumerate(pictures.iterdir()):
        pixels = np.zeros((2, 5, 4), np.uint8)
        pixels[:, row % 5] = 255
        Image.fromarray(pixels).save(path)
    options = {"source": "image_folder", "folder": pictures, "mode": "L"}
    run, train, _ = preprocess("white", **options)
    error = f"{pictures}: all 10 rows are equal, so that there is nothing to learn"
    last = run.stderr.splitlines()[-1]
    assert (run.exit_code, last) == (2, f"pairflow preprocess: error: {error}")
    assert not train.exists()
    run, train, _ = preprocess("black", **options, ground="black")
    note = f"{pictures}: 10 of 10 images are transparent; their ground is black"
    assert (run.exit_code, run.stderr) == (0, f"pairflow preprocess: note: {note}\n")
    assert read_table(train, "tokens")[1].parameters["ground"] == "black"
