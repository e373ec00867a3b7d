"""One more experiment in the text of the configuration: comments, order and everything else survive."""

from pathlib import Path

import pytest
import yaml

from pairflow.config.append import append, require_free
from pairflow.errors import InputError

SHIPPED = (Path(__file__).parent.parent.parent / "workflow_config.yaml").read_text()
PATH = Path("workflow_config.yaml")
DEMO = yaml.safe_load(SHIPPED)["experiments"]["demo"]
MINE = {**DEMO, "data": {"source": 'it\'s: a "größe" #1.smi', "length": 16}}
ENTRY = "".join(f"  {line}\n" for line in yaml.safe_dump({"demo": DEMO}, width=4096).splitlines())
ENTRY = ENTRY.replace("    training:\n", "    # above\n    training:  # beside\n")
SMALL = f"# top\nexperiments:\n  # above\n{ENTRY.rstrip()}  # behind\n    # of the demo\n"
BELOW = "\n# of the machine\npair_shards: 2  # jobs\n"


def comments(text):
    return [line.partition("# ")[2] for line in text.splitlines() if "# " in line]


@pytest.mark.parametrize("name", ["mine", "123", "null", "2024-01-01", "-x", "yes"])
def test_names_and_paths_survive_yaml(name):
    text = append(SHIPPED, name, MINE, "a comment", PATH)
    assert yaml.safe_load(text)["experiments"] == {**yaml.safe_load(SHIPPED)["experiments"], name: MINE}


def test_the_shipped_configuration_keeps_every_byte():
    text = append(SHIPPED, "mine", MINE, "a comment", PATH)
    assert text.startswith(SHIPPED + "\n  mine:\n    # a comment\n    description: ")
    assert max(map(len, text[len(SHIPPED) :].splitlines())) <= 120


@pytest.mark.parametrize("below", ["", BELOW, "# end\n"])
@pytest.mark.parametrize("change", [str, str.rstrip, lambda text: text.replace("\n", "\r\n")])
def test_comments_and_keys_stay_where_they_belong(below, change):
    text = change(SMALL + below)
    longer = append(text, "mine", MINE, "c", PATH)
    assert longer.startswith(change(SMALL))
    assert longer.count("\r\n") == (longer.count("\n") if "\r\n" in text else 0)
    plain = longer.replace("\r\n", "\n")
    assert plain.startswith(SMALL + "\n  mine:\n    # c\n")
    assert plain.rstrip().endswith(below.rstrip())
    assert list(yaml.safe_load(text)) == list(yaml.safe_load(longer))


def test_a_namesake_is_replaced():
    once = append(SMALL + BELOW, "mine", MINE, "c", PATH)
    both = append(once, "other", MINE, "c", PATH)
    changed = {**MINE, "description": "changed"}
    twice = append(both, "mine", changed, "d", PATH)
    experiments = yaml.safe_load(twice)["experiments"]
    assert list(experiments.items()) == [("demo", DEMO), ("mine", changed), ("other", MINE)]
    above = ["top", "above", "above", "beside", "behind", "of the demo"]
    assert comments(twice) == [*above, "d", "c", "of the machine", "jobs"]
    assert append(twice, "mine", MINE, "c", PATH) == both


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("experiments: [", r"workflow_config\.yaml: not YAML: while parsing"),
        ("- a\n", "expected a mapping with the key 'experiments', found list"),
        ("experiments:\n", "experiments: input should be a valid dictionary"),
        ("{}", "missing key 'experiments'"),
        (SMALL.replace("scale:", "scales:"), "unknown key 'experiments.demo.scales'"),
    ],
)
def test_what_cannot_be_extended(text, message):
    with pytest.raises(InputError, match=message):
        append(text, "mine", MINE, "c", PATH)


def test_experiments_in_braces_are_extended():
    text = f"experiments: {yaml.safe_dump({'demo': DEMO}, default_flow_style=True, width=4096)}"
    longer = append(text, "mine", MINE, "c", PATH)
    assert yaml.safe_load(longer)["experiments"] == {"demo": DEMO, "mine": MINE}


def test_a_taken_name():
    require_free(SHIPPED, "mine", PATH)
    message = r"_config\.yaml: there is an experiment 'demo' already; give another --name, or --force$"
    with pytest.raises(InputError, match=message):
        require_free(SHIPPED, "demo", PATH)


def test_an_invalid_experiment_is_not_written():
    with pytest.raises(InputError, match=r"experiments\.mine\.data\.length: input should be greater"):
        append(SHIPPED, "mine", {**MINE, "data": {"source": "a.smi", "length": 1}}, "c", PATH)
