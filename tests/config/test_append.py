"""One more experiment in the text of the configuration: nothing else changes."""

from pathlib import Path

import pytest
import yaml

from pairflow.config.append import append, require_free
from pairflow.errors import InputError

SHIPPED = (Path(__file__).parent.parent.parent / "workflow_config.yaml").read_text()
PATH = Path("workflow_config.yaml")
DEMO = yaml.safe_load(SHIPPED)["experiments"]["demo"]
MINE = {**DEMO, "data": {"source": 'it\'s: a "größe" #1.smi', "length": 16}}


def mini(text="", after=""):
    entry = yaml.safe_dump({"demo": DEMO}, default_flow_style=None)
    return "# top\nexperiments:\n" + "".join(f"  {line}\n" for line in entry.splitlines()) + text + after


@pytest.mark.parametrize("name", ["mine", "123", "null", "2024-01-01", "-x"])
def test_names_and_paths_survive_yaml(name):
    text = append(SHIPPED, name, MINE, "a comment", PATH)
    assert yaml.safe_load(text)["experiments"] == {**yaml.safe_load(SHIPPED)["experiments"], name: MINE}


def test_it_is_appended_and_the_rest_stays_to_the_byte():
    text = append(SHIPPED, "mine", MINE, "a comment", PATH)
    assert text.startswith(SHIPPED + "\n  mine:\n    # a comment\n    description: ")
    assert max(map(len, text[len(SHIPPED) :].splitlines())) <= 120


def test_a_key_below_the_experiments_stays_below():
    below = "\n# of the machine\npair_shards: 2\n"
    text = append(mini(after=below), "mine", MINE, "c", PATH)
    assert text.startswith(mini())
    assert text.endswith(below)
    assert list(yaml.safe_load(text)) == ["experiments", "pair_shards"]


@pytest.mark.parametrize(
    "text", [mini().rstrip("\n"), mini().replace("\n", "\r\n"), mini() + "# end\n", mini("    # inner\n")]
)
def test_ends_of_files(text):
    longer = append(text, "mine", MINE, "c", PATH)
    assert longer.startswith(text)
    assert ("\r\n" in longer) == ("\r\n" in text)
    assert longer.count("\r\n") in (0, longer.count("\n"))


def test_a_namesake_is_replaced():
    once = append(mini(after="\n# b\npair_shards: 2\n"), "mine", MINE, "c", PATH)
    other = append(once, "other", MINE, "c", PATH)
    changed = {**MINE, "description": "changed"}
    twice = append(other, "mine", changed, "d", PATH)
    assert yaml.safe_load(twice)["experiments"] == {"demo": DEMO, "mine": changed, "other": MINE}
    assert append(twice, "mine", MINE, "c", PATH) == other
    assert append(append(mini("# end\n"), "demo", MINE, "c", PATH), "demo", DEMO, "c", PATH).endswith(
        "# end\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("experiments: [", r"workflow_config\.yaml: not YAML: while parsing"),
        ("- a\n", "expected a configuration with experiments"),
        ("experiments:\n", "experiments: input should be a valid dictionary"),
        ("{}", "missing key 'experiments'"),
        (f"experiments: {yaml.safe_dump({'demo': DEMO}, default_flow_style=True)}", "are written in braces"),
        (mini().replace("scale:", "scales:"), "unknown key 'experiments.demo.scales'"),
    ],
)
def test_what_cannot_be_extended(text, message):
    with pytest.raises(InputError, match=message):
        append(text, "mine", MINE, "c", PATH)


def test_a_taken_name():
    require_free(SHIPPED, "mine", PATH)
    with pytest.raises(
        InputError,
        match=r"^workflow_config\.yaml: there is an experiment 'demo' already; "
        r"give another --name, or --force$",
    ):
        require_free(SHIPPED, "demo", PATH)


def test_an_invalid_experiment_is_not_written():
    with pytest.raises(InputError, match=r"experiments\.mine\.data\.length: input should be greater"):
        append(SHIPPED, "mine", {**MINE, "data": {"source": "a.smi", "length": 1}}, "c", PATH)
