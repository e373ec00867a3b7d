"""Experiments in files of their own: merged with the shipped ones, written by `new`, and refused by name."""

from pathlib import Path

import pytest
import yaml

from pairflow.config.file import describe, experiment, experiment_file, read, require_free
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
    write("._a.yaml", hidden=DEMO)
    experiments = read(SHIPPED).experiments
    assert list(experiments) == [*shipped, "mine", "other", "third"]
    assert experiments["demo"] == shipped["demo"] == experiments["third"]
    assert experiments["mine"].data.source == MINE["data"]["source"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({"mine": MINE}, r"b\.yaml: the experiment 'mine' is also in experiments/a\.yaml; rename"),
        ({"demo": DEMO}, r"b\.yaml: the experiment 'demo' is also in workflow_config\.yaml; ren"),
        ({"x": DEMO | {"scales": 1}}, r"b\.yaml: unknown key '.*\.scales' \(did you mean 'scale'\?\)$"),
        ({}, r"experiments/b\.yaml: experiments: dictionary should have at least 1 item"),
    ],
)
def test_a_mistake_names_its_file_and_stops_only_its_experiments(text, message):
    write("a.yaml", mine=MINE, other=MINE)
    write("b.yaml", **text)
    workflow = read(SHIPPED)
    assert experiment(workflow, "other", SHIPPED).data.source == MINE["data"]["source"]
    for asked in ("b", *text):
        with pytest.raises(InputError, match=message):
            experiment(workflow, asked, SHIPPED)


def test_a_file_that_is_left_out_is_a_line(capsys):
    Path("experiments").mkdir()
    Path("experiments/left_out.yaml").write_text("a: 2026-13-45")
    for _ in range(2):  # Snakemake reads the configuration again
        experiment(read(SHIPPED), "demo", SHIPPED)
    error = "experiments/left_out.yaml: not YAML: 2026-13-45 is a timestamp; put it in quotes (line 1)"
    assert capsys.readouterr().err == f"pairflow: note: left out {error}\n"


def test_a_file_holds_nothing_but_experiments():
    Path("experiments").mkdir()
    Path("experiments/a.yaml").write_text(yaml.safe_dump({"pair_shards": 2, "experiments": {"x": DEMO}}))
    mistake = "experiments/a.yaml: expected only the key 'experiments', found 'pair_shards'"
    assert read(SHIPPED).mistakes == {"a": mistake, "x": mistake}


@pytest.mark.parametrize("name", ["mine", "123", "null", "2024-01-01"])
def test_what_is_written_is_what_is_read(name):
    text = describe(SHIPPED, name, MINE, "a comment")
    assert text.startswith("# yaml-language-server: $schema=../config/schema.json\n# a comment\n")
    file = experiment_file(SHIPPED, name)
    file.parent.mkdir()
    file.write_text(text)
    assert yaml.safe_load(text)["experiments"] == {name: MINE}
    assert read(SHIPPED).experiments[name].data.source == MINE["data"]["source"]
    with pytest.raises(InputError, match=rf"{name}\.yaml: experiments\.{name}\.data\.length: input"):
        describe(SHIPPED, name, {**MINE, "data": {"source": "a.smi", "length": 1}}, "c")


def test_a_taken_name():
    """Only a file that holds nothing else is replaced, and only with force."""
    write("mine.yaml", mine=MINE)
    write("both.yaml", both=MINE, other=MINE)
    write("new.yaml", third=MINE)
    Path("experiments/broken.yaml").write_text("a: [")
    require_free(SHIPPED, "fresh", force=False)
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
    with pytest.raises(InputError, match=r"experiments/new\.yaml: there are other experiments already"):
        require_free(SHIPPED, "new", force=True)
    with pytest.raises(InputError, match=r"experiments/broken\.yaml: not YAML: "):
        require_free(SHIPPED, "broken", force=True)
