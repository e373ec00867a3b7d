"""JSON of others: an object of bounded size and depth, or a refusal before memory is taken."""

import json
import tracemalloc

import pytest

from pairflow.artifacts import read_object
from pairflow.errors import InputError
from pairflow.training.model import Model


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@pytest.mark.parametrize("depth", [1, 60])
def test_an_object_comes_back(tmp_path, depth):
    path = tmp_path / "x.json"
    path.write_text(nested(depth))
    assert read_object(path) == json.loads(nested(depth))


@pytest.mark.promise("json")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (nested(65), "nested too deeply"),
        (nested(900), "nested too deeply"),
        (nested(100_000), "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
        ("[1]", "no JSON object"),
        ("NaN", "no JSON object"),
        ("{", "Expecting property name"),
    ],
)
def test_what_is_no_object_or_too_deep_is_refused(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_object(path)


@pytest.mark.promise("json")
def test_a_description_of_200_megabytes_takes_no_memory(tmp_path):
    description = tmp_path / "model.json"
    with description.open("wb") as file:
        file.truncate(200 * 2**20)
    tracemalloc.start()
    with pytest.raises(InputError, match=r"model\.json: .*: 200 MiB are more than 64"):
        Model.load(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20
