"""Experiments in files of their own: merged with the shipped ones, written by `new`, and refused by name."""

from pathlib import Path

import pytest
import yaml

from pairflow.config.file import read
from pairflow.config.own import describe, place, require_free
from pairflow.errors import InputError

SHIPPED = Path("workflow_config.yaml")
DEMO = yaml.safe_load((Path(__file__).parents[2] / SHIPPED).read_text())["experiments"]["demo"]
MINE = {**DEMO, "data": {"source": 'it\'s: a "größe" #1.smi', "length": 16}}
pytestmark = pytest.mark.usefixtures("project")


def write(name: str, **experiments) -> None:
    Path("experiments").mkdir(exist_ok=True)
    Path("experiments", name).write_text(yaml.safe_dump({"experiments": experiments}))


def test_files_are_merged_with_the_shipped_experiments():
    shipped = read(SHIPPED).experiments
    write("a.yaml", mine=MINE, other=DEMO)
    write("b.yml", third=DEMO)
    write("c.yaml~", mine=DEMO)
    experiments = read(SHIPPED).experiments
    assert list(experiments) == [*shipped, "mine", "other", "third"]
    assert experiments["demo"] == shipped["demo"] == experiments["third"]
    assert experiments["mine"].data.source == MINE["data"]["source"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "b.yaml",
            {"mine": MINE},
            r"experiments/b\.yaml: the experiment 'mine' is also in experiments/a\.yaml; rename one of them$",
        ),
        (
            "b.yaml",
            {"demo": DEMO},
            r"experiments/b\.yaml: the experiment 'demo' is also in workflow_config\.yaml; rename one of",
        ),
        (
            "b.yaml",
            {"x": DEMO | {"scales": 1}},
            r"experiments/b\.yaml: unknown key 'experiments\.x\.scales' \(did you mean 'scale'\?\)$",
        ),
        ("b.yaml", {}, r"experiments/b\.yaml: experiments: dictionary should have at least 1 item"),
    ],
)
def test_a_mistake_names_its_file(name, text, message):
    write("a.yaml", mine=MINE)
    write(name, **text)
    with pytest.raises(InputError, match=message):
        read(SHIPPED)


def test_a_file_holds_nothing_but_experiments():
    Path("experiments").mkdir()
    Path("experiments/a.yaml").write_text(yaml.safe_dump({"pair_shards": 2, "experiments": {"x": DEMO}}))
    message = r"experiments/a\.yaml: expected only the key 'experiments', found 'pair_shards'$"
    with pytest.raises(InputError, match=message):
        read(SHIPPED)


@pytest.mark.parametrize("name", ["mine", "123", "null", "2024-01-01", "-x", "yes"])
def test_what_is_written_is_what_is_read(name):
    text = describe(SHIPPED, name, MINE, "a comment")
    assert text.startswith(
        "# yaml-language-server: $schema=../config.schema.json\n# a comment\nexperiments:\n  "
    )
    assert max(map(len, text.splitlines())) <= 120
    file = place(SHIPPED, name)
    file.parent.mkdir()
    file.write_text(text)
    assert yaml.safe_load(text)["experiments"] == {name: MINE}
    assert read(SHIPPED).experiments[name].data.source == MINE["data"]["source"]


def test_an_invalid_experiment_is_not_written():
    with pytest.raises(
        InputError, match=r"experiments/mine\.yaml: experiments\.mine\.data\.length: input should"
    ):
        describe(SHIPPED, "mine", {**MINE, "data": {"source": "a.smi", "length": 1}}, "c")


def test_a_taken_name():
    """Only a file that holds nothing else is replaced, and only with force."""
    write("mine.yaml", mine=MINE)
    write("both.yaml", both=MINE, other=MINE)
    require_free(SHIPPED, "new", force=False)
    require_free(SHIPPED, "mine", force=True)
    taken = "there is an experiment '{}' already; give another --name{}$"
    for name, force, file, advice in (
        ("mine", False, "experiments/mine", ", or --force"),
        ("both", True, "experiments/both", ""),
        ("other", True, "experiments/both", ""),
        ("demo", True, "workflow_config", ""),
    ):
        with pytest.raises(InputError, match=rf"{file}\.yaml: " + taken.format(name, advice)):
            require_free(SHIPPED, name, force=force)
