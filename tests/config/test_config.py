"""The configuration is closed, bounded and cross-checked; each mistake is one line that names it."""

import copy
import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml
from deadline import within

from pairflow import config
from pairflow.config import BASES, Configuration, Experiment, Settings, TrainSettings, check, parse_method
from pairflow.config.file import MOST_BYTES, MOST_VALUES, load, parse, read, schema
from pairflow.errors import InputError
from pairflow.kinds.registry import SETTINGS
from pairflow.limits import KEYS
from pairflow.plan import paths
from pairflow.plan.jobs import report_inputs

REPOSITORY = Path(__file__).parent.parent.parent
SHIPPED = parse((REPOSITORY / "workflow_config.yaml").read_text(), Path("workflow_config.yaml"))

PAPER_SOURCES = [name for settings in SETTINGS for name in settings.paper]
IMAGES = {"source": "image_folder", "folder": "faces"}
OTHERS = [base for base in BASES if base != "pairs"]  # those without a name
KEYWORDS = {"properties", "anyOf", "items", "prefixItems", "$defs"}  # of JSON schemas
LM1B = [f"lm1b_n{length}" for length in (16, 32, 64, 128)]


def changed(path: str, value) -> dict:
    """Only the shipped experiment `demo`, with one key set (`value` None: removed), or several (no path)."""
    values = {"experiments": {"demo": copy.deepcopy(SHIPPED["experiments"]["demo"])}}
    place = values["experiments"]["demo"]
    if not path:
        place |= value
        return values
    *keys, last = path.split(".")
    for key in keys:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return values


def test_the_shipped_configuration_is_valid_and_the_papers_experiments_can_be_judged():
    experiments = check(Configuration, SHIPPED, "workflow_config.yaml").experiments
    scales = {name: (entry.scale, entry.seeds) for name, entry in experiments.items()}
    moons = {f"two_moons_paper_d{2**fold}" for fold in range(1, 9)}
    expected = {*PAPER_SOURCES, *LM1B, *moons, "mnist_continuous"} - {"lm1b", "mnist", "two_moons"}
    assert {name for name, (scale, _) in scales.items() if scale == "paper"} == expected
    assert {seeds for scale, seeds in scales.values() if scale == "paper"} == {(0, 1, 2)}


TOKENS = {"source": "tokens", "file": "my.npy", "vocabulary_size": 40}
PLAIN = {"source": "small_molecules", "length": 16}
TWO = PLAIN | {"condition": [{"property": "qed"}, {"property": "logp"}]}
RATED = ["udlm+redi", "pairflow+redi", "pairflow-sub4+redi+redi"]


def asking(**of_main):
    return {"evaluations": {"main": {"nfe": [1], **of_main}}}


DEMO, MOONS = (SHIPPED["experiments"][name] for name in ("demo", "two_moons_d2"))
SPLIT = {"source": "a.csv", "length": 8, "split_column": "s"}
OWN = {"data": TOKENS, "pairs": {"mine": "a.parquet"}, "methods": ["udlm"]}
GUIDED = asking(condition="qed=high", guidances=[0, 2.5])
GUIDED |= {"data": PLAIN | {"condition": {"property": "qed"}}, "methods": ["mdlm", "pairflow"]}
GUIDED["distillation"] = {}


def with_rates(rates: dict) -> dict:
    redi = SHIPPED["experiments"]["qm9"]["distillation"]["redi"] | {"learning_rate_of": rates}
    return SHIPPED["experiments"]["qm9"] | {"methods": RATED, "distillation": {"redi": redi}}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("pairing.stepz", 3, r"unknown key 'experiments\.demo\.pairing\.stepz' \(did you mean 'steps'\?\)"),
        ("evaluations.main.qqq", 1, r"main\.qqq': known are sampler, [^:]*nfe, methods, [a-z, ]*shown$"),
        ("qqq", 1, r"demo\.qqq': known are description, scale, [^:]*correlation"),
        ("evaluations.x" + "x" * 100, {}, r"string should have at most 100 characters"),
        ("pairing.steps", 0, r"demo\.pairing\.steps: input should be greater than or equal to 1, found 0"),
        ("pairing.steps", 2.5, r"demo\.pairing\.steps: input should be a valid integer.*found 2\.5"),
        ("pairing.subsets", 4, r"demo\.pairing\.subsets: input should be 'auto', found 4"),
        ("pairing.keys", 400, r"demo\.pairing: keys: only with subsets: auto, found 400$"),
        ("training.learning_rate", "fast", r"learning_rate: input should be a valid number.*found 'fast'"),
        ("training.batch_size", None, r"missing key 'experiments\.demo\.training\.batch_size'"),
        ("training.warmup_iterations", 10**6, r"warmup_iterations: 1000000 is not below \d+ iterations"),
        ("training.final_learning_rate", 0.5, r"final_learning_rate: 0\.5 is above 0\.002"),
        ("network.name", "mpl", r"network: unknown name 'mpl' \(did you mean 'mlp'\?\): known are"),
        (
            "network.heads",
            4,
            r"demo\.network\.mlp\.heads': known are name, width, blocks, time_width, dropout$",
        ),
        ("network", {"name": "transformer", "width": 100, "heads": 3}, "heads: 2 x 3 does not divide"),
        ("methods", ["pairflw"], r"unknown method 'pairflw' \(did you mean 'pairflow'\?\): known are"),
        ("methods", ["udlm", "udlm"], r"methods: \['udlm', 'udlm'\] contains a duplicate"),
        ("methods", [], r"methods: tuple should have at least 1 item"),
        ("distillation", {}, r"methods: 'pairflow\+dcd' needs the settings distillation\.dcd"),
        ("evaluations.main.shown", [1, 2], r"evaluations\.main: shown: 2 is not among nfe, \[1, 4, 32\]"),
        ("evaluations.main.methods", ["udlm+dc"], r"main\.methods: expected one of .*, found 'udlm\+dc' "),
        ("chemistry", {"fcd": "ja"}, r"chemistry\.fcd: input should be a valid boolean.*found 'ja'"),
        (
            "data",
            {"source": "qm9", "length": 8, "size": 8},
            r"unknown key 'experiments\.demo\.data\.size': known are fragments, .*length",
        ),
        ("data", {"length": 8}, r"^my\.yaml: missing key 'experiments\.demo\.data\.source'$"),
        ("data", {"source": "digits", "lenght": 8}, r"unknown key '.*\.data\.lenght': known are .*, folder,"),
        ("data", {"source": "digits", "ground": "black"}, r"ground: only the source image_folder has this"),
        ("data", {"source": "mnist_binray"}, r"unknown name 'mnist_binray' \(did you mean 'mnist_binary'"),
        ("data", {"source": "cifar10", "validation_fraction": 0.2}, "fraction: cifar10 has a published test"),
        ("data", {"source": "ffhq64"}, r"no classifier \(the default\) for ffhq64; set features: "),
        ("data", IMAGES, r"no classifier .* for image_folder; set features: \{extractor: inception\}"),
        ("data", {"source": "image_folder"}, r"data: folder: expected a folder, which .* needs; found none$"),
        ("data", {**IMAGES, "levels": 100}, r"levels: 100 does not divide 256; expected 2, 4, 8,"),
        ("data", {**IMAGES, "mode": "CMYK"}, r"data\.mode: input should be 'L' or 'RGB', found 'CMYK'$"),
        ("data", "digits", r"experiments\.demo\.data: input should be a valid dictionary .* found 'digits'$"),
        ("", OWN | {"data": TOKENS | {"file": "{a}.npy"}}, r"file: \{a\}\.npy: braces in a name are wildc"),
        ("", OWN | {"chemistry": {"fcd": True}}, r"chemistry: only for molecules, and the data are tokens"),
        ("", OWN | {"methods": ["pairs-mime"]}, r"'pairs-mime' needs a file of pairs \(did you mean 'mine'"),
        ("", OWN | {"pairs": {"mine": "{x}"}}, r"pairs\.mine: \{x\}: braces in a name are wildcards"),
        ("", OWN | {"pairs": {"Mine": "x"}}, r"pairs\.Mine"),
        ("data", SPLIT | {"held_out": "b.smi"}, "split_column: does not go with held_out"),
        ("data", SPLIT | {"split": "scaffold"}, "split_column: does not go with split: scaffold"),
        ("data", {"source": "qm9", "length": 8, "held_out": "b.smi"}, "only for a file of your own, not"),
        ("data", {**IMAGES, "held_out": "./faces/b"}, "held_out: expected a path outside faces, found"),
        ("data", {"source": "digits", "split": "folders"}, "only the source image_folder has these keys"),
        (
            "",
            MOONS | {"methods": ["udlm"]},
            "'udlm' has no continuous flow; expected one of pairflow, condot",
        ),
        (
            "",
            MOONS | {"training": DEMO["training"]},
            "loss: expected velocity in a continuous flow, found ne",
        ),
        ("data", {"source": "two_moons"}, "dims: the source two_moons needs this key"),
        ("", GUIDED | {"data": PLAIN}, r"condition: needs the settings data\.cond"),
        ("", GUIDED | asking(condition="qed=hihg"), r"class 'hihg' of qed \(did you mean 'high'"),
        ("", GUIDED | {"methods": ["pairflow+redi"]}, r"methods: 'pairflow\+redi'"),
        ("", GUIDED | {"methods": ["ot"], "data": TWO}, "'ot' takes only a condition of one property, or"),
        ("", GUIDED | asking(guidances=[2]), "guidances: needs a condition, such as"),
        ("", GUIDED | asking(condition="qed=high", guidances=[1]), r"with 1 itself, \[1.0, 1.0\] contains"),
        ("data", PLAIN | {"condition": {"property": "ph"}}, "'ph': known are qed, .* your table: column: ph"),
        ("data", PLAIN | {"condition": {"classes": 2}}, "condition: expected either property or column"),
        ("", with_rates({"pairflaw": 3e-4}), r"rate_of: expected one of .* \(did you mean 'pairflow'"),
        ("", with_rates({"pairflow": 1e-6}), "final_learning_rate: 3e-06 is above learning_rate_of.pairflow"),
        ("scale", "huge" * 99, r"scale: input should be 'paper' or 'reduced', found '(huge){49}hug\.\.\.$"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(path, value, message):
    with pytest.raises(InputError, match=message) as raised:
        check(Configuration, changed(path, value), "my.yaml")
    assert str(raised.value).startswith("my.yaml: ")
    assert "\n" not in str(raised.value)


def test_settings_hold_only_what_the_step_depends_on():
    experiment = read(REPOSITORY / "workflow_config.yaml").experiments["demo_full"]
    assert experiment.couplings() == ["pairflow", "random"]
    assert experiment.pair_settings("random", 0).steps is None  # a changed step count does not affect it
    pairflow = {"coupling": "pairflow", "steps": 20, "subsets": 1, "keys": KEYS}
    pairflow |= {"seed": 3, "flow": "discrete"}
    assert experiment.pair_settings("pairflow", 3).model_dump() == pairflow
    many = experiment.pairing.model_copy(update={"subsets": "auto", "keys": 100})
    many = experiment.model_copy(update={"pairing": many})
    automatic = many.pair_settings("pairflow", 3)
    assert automatic.model_dump() == {**pairflow, "subsets": "auto", "keys": 100}
    assert [automatic.count_subsets(rows) for rows in (1, 100, 101, 1000, 1001)] == [1, 1, 2, 10, 11]
    assert many.pair_settings("pairflow-sub4", 3).model_dump() == {**pairflow, "subsets": 4}
    assert many.pair_settings("random", 0) == experiment.pair_settings("random", 0)
    keys = {"nfe", "samples", "trials", "sampler", "conversion", "greedy_tail", "seed"}
    keys |= {"temperature", "condition", "guidance"}
    assert set(experiment.sample_settings("main", 4, 0).model_dump()) == keys


def test_noise_by_frequency_is_passed_where_noise_is_uniform_otherwise():
    [experiment] = check(Configuration, changed("methods", ["udlm"]), "my.yaml").experiments.values()
    assert "noise" not in experiment.model_dump()
    values = changed("methods", ["mdlm", "sdot", "pairflow"])["experiments"]["demo"]
    values |= {"noise": "frequencies"}
    chosen = check(Experiment, values, "my.yaml")
    pairings = [chosen.pair_settings(name, 0) for name in ("pairflow", "sdot")]
    for settings in (chosen.train_settings("udlm", 0), *pairings):
        assert settings.model_dump()["noise"] == "frequencies"
    masked = chosen.train_settings("mdlm", 0).model_dump()
    assert "noise" not in masked
    for kind, wrong, message in (
        (Experiment, {**values, "methods": ["udlm+dcd"]}, r"methods: 'udlm\+dcd' needs noise: uniform"),
        (Experiment, {**values, "pairing": {"coverage": True}}, r"pairing\.coverage: needs noise: uniform"),
        (TrainSettings, {**masked, "noise": "frequencies"}, "noise: frequencies is not for mdlm"),
    ):
        with pytest.raises(InputError, match=message):
            check(kind, wrong, "my.yaml")


def test_an_evaluation_is_repeated_at_each_temperature():
    values = changed("evaluations.main.temperatures", [0.7, 2])
    experiment = check(Configuration, values, "x").experiments["demo"]
    names = {"main": 1.0, "main_t0_7": 0.7, "main_t2": 2.0}
    assert experiment.repeated("temperatures") == {"main": names}
    assert [name for name in experiment.evaluations if name in names] == [*names]
    for name, temperature in names.items():
        settings = experiment.sample_settings(name, 4, 0)
        assert settings.temperature == temperature
        assert "temperatures" not in settings.model_dump()
    again = check(Experiment, experiment.model_dump(mode="json"), "x")
    assert again == experiment
    values = changed("evaluations.main.temperatures", [0.7])
    values["experiments"]["demo"]["evaluations"]["main_t0_7"] = {"nfe": [1]}
    with pytest.raises(InputError, match=r"'main_t0_7' is the name of 'main' at temperature 0\.7; choose"):
        check(Configuration, values, "x")
    with pytest.raises(InputError, match=r"temperatures: with 1 itself, \[1\.0, 1\.0\] contains a duplicate"):
        check(Configuration, changed("evaluations.main.temperatures", [1]), "x")


def moons(**pairing):
    """Only the shipped experiment `two_moons_d2`, with other settings of its pairing."""
    values = SHIPPED["experiments"]["two_moons_d2"] | {"pairing": pairing}
    return check(Configuration, {"experiments": {"moons": values}}, "x").experiments["moons"]


def test_heun_calls_the_network_twice_per_step():
    calls = [config.FlowSampleSettings(nfe=4, solver=name).count_calls(4) for name in ("euler", "heun")]
    assert calls == [4, 8]


def test_only_ot_has_a_pool_of_whole_batches():
    pooled = moons(pool=512)
    pools = {name: pooled.train_settings(name, 0).training.pool for name in pooled.methods}
    assert pools == {"condot": None, "ot": 512, "pairflow": None}
    with pytest.raises(InputError, match=r"pool: expected a multiple of training\.batch_size, 256; found 1"):
        moons(pool=1000)


def test_a_methods_lineage_is_trained_from_the_base_on():
    method = parse_method("pairflow-sub4+redi+dcd")
    assert (method.base, method.subsets, method.distillations) == ("pairflow", 4, ("redi", "dcd"))
    assert (method.parent, method.coupling) == ("pairflow-sub4+redi", "pairflow-sub4")
    assert [parse_method(f"{name}-mine" if name == "pairs" else name).base for name in BASES] == list(BASES)
    assert method.lineage == ["pairflow-sub4", "pairflow-sub4+redi", "pairflow-sub4+redi+dcd"]
    assert (parse_method("mdlm").parent, parse_method("mdlm").coupling) == (None, None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("udlm+dc", r"unknown method 'udlm\+dc' \(did you mean 'dcd'\?\): distillations are dcd, redi"),
        ("mdlm+dcd", r"'mdlm\+dcd': distillations need uniform noise; mdlm has absorbing noise"),
        ("udlm+", r"unknown method 'udlm\+'"),
        ("udlm-sub2", r"only pairflow has subsets"),
        ("pairs", r"method 'pairs': your own pairs have a name, write 'pairs-<name>'"),
        ("pairs-my_own", f"known are {', '.join(OTHERS)}, pairflow-sub<P> and pairs-<name>"),
        ("udlm-mine", r"unknown method 'udlm-mine': known are .*mdlm, udlm, random, pairflow, condot, ot, "),
        ("condot+dcd", r"in common: condot is for continuous flows, \+dcd is for discrete flows$"),
        ("pairflow-sub4+rf", r"in common: pairflow-sub4 is for discrete flows, \+rf is for continuous"),
        ("pairflow+dcd+rf", r"pairflow is for discrete and continuous flows, \+dcd is for discrete flow"),
        ("pairflow-sub1", "one subset is the full pairing, write 'pairflow'"),
        *((name, "unknown method") for name in ("pairflow-sub0", "Pairflow", "")),
    ],
)
def test_a_method_that_cannot_be_is_refused_by_the_part_that_is_wrong(name, message):
    with pytest.raises(InputError, match=message):
        parse_method(name)


def test_an_evaluation_says_which_samples_reports_show(tmp_path):
    cifar10 = check(Configuration, SHIPPED, "workflow_config.yaml").experiments["cifar10"]
    assert paths.shown_nfe(cifar10, "main") == (64, 256)
    shown = {(run.seed, run.evaluation, run.nfe) for run in paths.shown_runs(cifar10)}
    assert shown == {(0, "main", 64), (0, "main", 256)}
    samples = report_inputs(tmp_path, cifar10)["samples"]
    names = {(path.parent.name, path.name) for path in samples}
    assert names == {("main", "nfe64.parquet"), ("main", "nfe256.parquet"), ("check", "nfe1000.parquet")}


@pytest.mark.parametrize(
    ("size", "mode", "method", "fits"),
    [(128, "L", "pairflow", True), (129, "L", "udlm", True), (74, "RGB", "pairflow", False)],
)
def test_images_that_are_too_large_to_pair_are_refused(size, mode, method, fits):
    values = changed("data", {**IMAGES, "size": size, "mode": mode})
    values["experiments"]["demo"] |= {"features": {"extractor": "inception"}, "methods": [method]}
    values["experiments"]["demo"]["evaluations"]["main"].pop("methods", None)
    with nullcontext() if fits else pytest.raises(InputError, match="pixel values are too many to pair; exp"):
        check(Configuration, values, "my.yaml")


BOMB = "a0: &a0 {k: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], k{n}: 1}}\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("a: {b: 1}\na: {c: 2}\n", "the key 'a' occurs twice in one mapp"),
        ("x: {scale: reduced, scale: paper}\n", "the key 'scale' occurs twice"),
        ("? [a, b]\n: 1", r"a key that is no text; put it in quotes \(line 1\)"),
        ("a: 1\n1: 2", r"a key that is no text; put it in quotes \(line 2\)"),
        ("a: =", "= is a value; put it in quotes"),
        ("a: !!int x", r"a tag \(!\), which no setting needs"),
        ("a: " + "1" * 4301, "a number of 4,301 characters; expected at most 100"),
        ("a: 1" + ":00" * 4301, "a number of 12,904 characters"),
        (BOMB, "more than 10,000 values"),
        ("".join(f"k{n}: 1\n" for n in range(100_000)), r"more than 10,000 values \(line 5001\)"),
        ("a: &d {<<: *d}", r"\*d inside its own definition"),
        ("[" * 100_000, "more than 30 levels"),
        ('a: "\\ud800"', "a character that is no text"),
        ("a: \x01", "unacceptable character"),
        ("<<: 3", "expected a mapping"),
        ("--- 1\n--- 2", "but found another document"),
    ],
)
def test_what_no_configuration_needs_is_refused_in_seconds(text, mistake):
    with within(20), pytest.raises(InputError, match=rf"^my\.yaml: not YAML: [^\n]*{mistake}"):
        load(text, Path("my.yaml"))


@pytest.mark.parametrize(
    "text", ["012", "1_000", "1:30", "0x1f", "1e3", ".5", "~", "yes", "'no'", "[a, {b: 1}]"]
)
def test_other_values_are_what_yaml_says(text):
    assert load(text, Path("my.yaml")) == yaml.safe_load(text)


def test_the_shipped_file_is_what_yaml_says_and_far_below_the_bounds():
    text = (REPOSITORY / "workflow_config.yaml").read_text()
    assert load(text, Path("my.yaml")) == yaml.safe_load(text)
    assert len(text) < MOST_BYTES / 10
    assert load(f"a: [{'1, ' * (MOST_VALUES - 4)}1]", Path("my.yaml")) == {"a": [1] * (MOST_VALUES - 3)}


def test_anchors_may_be_merged_and_overridden():
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\nc: {<<: *a, <<: *a}\n"
    one = {"x": 1, "y": 2}
    assert load(text, Path("my.yaml")) == {"a": one, "b": one | {"x": 3}, "c": one}


def test_features_are_one_extractor_or_a_list():
    def dumped(features):
        values = changed("data", {"source": "digits"})
        values["experiments"]["demo"]["features"] = features
        return check(Configuration, values, "x").experiments["demo"].model_dump(mode="json")["features"]

    inception = {"extractor": "inception", "weights": None, "sha256": None}
    assert dumped("inception") == dumped({"extractor": "inception"}) == inception
    assert dumped(["inception"]) == [inception]
    assert dumped(["inception", "dinov2"])[1] == inception | {"extractor": "dinov2"}
    for features, message in (
        (["inception", {"extractor": "inception"}], r"\['inception', 'inception'\] contains a duplicate"),
        (["inception", "dino"], r"features\.1\.extractor: input should be 'classifier', 'inception' or"),
        ({"extracter": "inception"}, r"unknown key '.*features\.extracter' \(did you mean 'extractor'"),
    ):
        with pytest.raises(InputError, match=message):
            dumped(features)


def test_an_evaluation_of_some_methods_samples_only_those():
    experiment = check(Configuration, changed("evaluations.main.methods", ["pairflow"]), "my.yaml")
    runs = list(paths.runs(experiment.experiments["demo"]))
    assert {run.method for run in runs} == {"pairflow"}
    assert [run.nfe for run in runs] == list(experiment.experiments["demo"].evaluations["main"].nfe)


def test_the_schema_in_the_repository_is_up_to_date():
    """`python -m pairflow.config.file > config/schema.json` writes it again."""
    assert (REPOSITORY / "config/schema.json").read_text() == schema()
    first = (REPOSITORY / "workflow_config.yaml").read_text().partition("\n")[0]
    assert first == "# yaml-language-server: $schema=config/schema.json"
    assert {"experiments", "pair_shards"} == set(json.loads(schema())["properties"])


def test_coverage_has_the_steps_of_the_pairing_unless_it_names_others():
    values = changed("pairing", {"steps": 20})
    demo = check(Configuration, values, "my.yaml").experiments["demo"]
    assert demo.cover_settings(0).steps == demo.pairing.steps == 20
    values["experiments"]["demo"]["pairing"] = {"steps": 20, "coverage_steps": 12}
    demo = check(Configuration, values, "my.yaml").experiments["demo"]
    assert demo.cover_settings(0).steps == 12
    assert demo.pair_settings("pairflow", 0).steps == 20


def test_an_evaluation_is_repeated_at_each_weight_of_guidance():
    experiment = check(Configuration, changed("", GUIDED), "x").experiments["demo"]
    assert experiment.repeated("guidances") == {"main": {"main": 1, "main_g0": 0, "main_g2_5": 2.5}}
    assert experiment.repeated("temperatures") == {}
    for name, weight in experiment.repeated("guidances")["main"].items():
        settings = experiment.sample_settings(name, nfe=1, seed=0).model_dump()
        assert (settings["condition"], settings["guidance"]) == ("qed=high", weight)


def test_each_distillation_is_passed_the_learning_rate_of_its_base():
    made, without = (check(Experiment, with_rates(of), "x") for of in ({"pairflow": 3e-4}, {}))
    passed = [made.distill_settings(method, 0).model_dump(mode="json")["distillation"] for method in RATED]
    assert [how["learning_rate"] for how in passed] == [6e-5, 3e-4, 3e-4]
    assert all(how["learning_rate_of"] == {} for how in passed)
    assert without.distill_settings("udlm+redi", 0) == made.distill_settings("udlm+redi", 0)


def unbounded(name: str, node: object) -> Iterator[str]:
    """Names of numbers in a JSON schema that have no largest value."""
    if isinstance(node, list):
        for member in node:
            yield from unbounded(name, member)
    elif isinstance(node, dict):
        bounds = {"maximum", "exclusiveMaximum", "const", "enum"}
        if node.get("type") in ("integer", "number") and not bounds & node.keys():
            yield name
        for key, value in node.items():
            yield from unbounded(name if key in KEYWORDS else f"{name}.{key}", value)


def test_every_number_of_the_settings_has_a_largest_value():
    """Without one a number of twenty digits would be accepted, and the work would not end."""
    every, todo = set(), [Settings]
    while todo:
        classes = todo.pop().__subclasses__()
        every.update(classes)
        todo += classes
    ours = [kind for kind in every if kind.__module__.startswith(("pairflow.config.", "pairflow.settings."))]
    assert len(ours) > 40
    assert not {name for kind in ours for name in unbounded(kind.__name__, kind.model_json_schema())}
