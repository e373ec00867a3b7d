"""The configuration is closed, bounded and cross-checked; each mistake is one line that names it."""

import copy
import json
from pathlib import Path

import pytest
import yaml

from pairflow import config
from pairflow.config import BASES, Configuration, Settings, check, parse_method
from pairflow.config.file import schema
from pairflow.errors import InputError
from pairflow.plan import paths

REPOSITORY = Path(__file__).parent.parent.parent
SHIPPED = yaml.safe_load((REPOSITORY / "workflow_config.yaml").read_text())


def changed(path: str, value) -> dict:
    """Only the shipped experiment `demo`, with one key set (`value` None: removed)."""
    values = {"experiments": {"demo": copy.deepcopy(SHIPPED["experiments"]["demo"])}}
    place = values["experiments"]["demo"]
    *keys, last = path.split(".")
    for key in keys:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return values


def test_shipped_configuration_is_valid_and_carries_the_papers_numbers():
    experiments = check(Configuration, SHIPPED, "workflow_config.yaml").experiments
    assert {"demo", "qm9_small", "qm9"} <= set(experiments)
    qm9 = experiments["qm9"]
    assert qm9.scale == "paper"
    assert (qm9.data.length, qm9.data.validation_fraction, qm9.data.split_seed) == (32, 0.05, 42)
    assert qm9.data.drop_duplicates is False
    assert qm9.network.model_dump() == {
        "name": "transformer",
        "width": 768,
        "blocks": 12,
        "heads": 12,
        "time_width": 128,
        "dropout": 0.1,
    }
    assert qm9.pairing.steps == 20
    training = qm9.training
    assert (training.batch_size, training.iterations, training.loss) == (1024, 50_000, "nelbo")
    assert (training.learning_rate, training.warmup_iterations, training.final_learning_rate) == (
        3e-4,
        1000,
        3e-6,
    )
    assert (training.decay, training.ema_decay, training.gradient_clip) == ("cosine", 0.9999, 1.0)
    main = qm9.evaluations["main"]
    assert (main.nfe, main.samples, main.trials, main.greedy_tail) == (
        (1, 2, 4, 8, 16, 32, 64),
        1024,
        10,
        True,
    )
    dcd, redi = qm9.distillation.dcd, qm9.distillation.redi
    assert (dcd.iterations, dcd.teacher_every, dcd.learning_rate, dcd.final_learning_rate) == (
        10_000,
        2000,
        6e-5,
        1e-6,
    )
    assert (dcd.noise_min, dcd.noise_max, dcd.ema_decay, redi.ema_decay) == (-4, -1, 0.999, 0.999)
    assert (redi.iterations, redi.pairs.count, redi.pairs.steps, redi.learning_rate) == (
        10_000,
        20_000,
        256,
        3e-4,
    )
    correlation = qm9.correlation
    assert (correlation.sources, correlation.samples, correlation.steps) == (20_000, 10, 256)
    zinc = experiments["zinc250k"]
    assert (zinc.data.length, zinc.pairing.steps, zinc.network) == (74, 64, qm9.network)
    assert (zinc.training.batch_size, zinc.training.iterations, zinc.training.decay) == (
        256,
        200_000,
        "constant",
    )
    assert (zinc.training.learning_rate, zinc.training.warmup_iterations) == (3e-4, 2500)
    assert experiments["demo"].scale == experiments["qm9_small"].scale == "reduced"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("pairing.stepz", 3, r"unknown key 'experiments\.demo\.pairing\.stepz' \(did you mean 'steps'\?\)"),
        ("trainings", {}, r"unknown key 'experiments\.demo\.trainings' \(did you mean 'training'\?\)"),
        ("pairing.steps", 0, r"demo\.pairing\.steps: input should be greater than or equal to 1, found 0"),
        ("pairing.steps", 2.5, r"demo\.pairing\.steps: input should be a valid integer.*found 2\.5"),
        ("training.learning_rate", "fast", r"learning_rate: input should be a valid number.*found 'fast'"),
        (
            "training.learning_rate",
            float("nan"),
            r"learning_rate: input should be a finite number, found nan",
        ),
        ("training.batch_size", None, r"missing key 'experiments\.demo\.training\.batch_size'"),
        ("training.warmup_iterations", 10**6, r"warmup_iterations: 1000000 is not below \d+ iterations"),
        ("training.final_learning_rate", 0.5, r"final_learning_rate: 0\.5 is above 0\.002"),
        ("data.validation_fraction", 1.0, r"validation_fraction: input should be less than 1, found 1\.0"),
        (
            "network.name",
            "mpl",
            r"network: unknown name 'mpl' \(did you mean 'mlp'\?\): known are transformer, mlp",
        ),
        ("network.heads", 4, r"unknown key 'experiments\.demo\.network\.mlp\.heads'"),
        (
            "methods",
            ["udlm", "pairflw"],
            r"unknown method 'pairflw' \(did you mean 'pairflow'\?\): known are mdlm, udlm",
        ),
        ("methods", ["udlm", "udlm"], r"methods: \['udlm', 'udlm'\] names one twice"),
        ("methods", [], r"methods: tuple should have at least 1 item"),
        ("evaluations.main.nfe", [1, 1], r"evaluations\.main: nfe: \[1, 1\] names a number twice"),
        ("evaluations.main.nfe", [0], r"nfe\.0: input should be greater than or equal to 1, found 0"),
        (
            "evaluations.main.methods",
            ["udlm", "pairflow+redi+redi"],
            r"evaluations\.main\.methods: 'pairflow\+redi\+redi' is not among methods \(did you mean",
        ),
        ("seeds", [-1], r"seeds\.0: input should be greater than or equal to 0, found -1"),
        ("chemistry", {"fdc": True}, r"unknown key 'experiments\.demo\.chemistry\.fdc' \(did you mean 'fcd'"),
        ("chemistry", {"fcd": "ja"}, r"chemistry\.fcd: input should be a valid boolean.*found 'ja'"),
        ("scale", "huge", r"scale: input should be 'paper' or 'reduced', found 'huge'"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(path, value, message):
    with pytest.raises(InputError, match=message) as raised:
        check(Configuration, changed(path, value), "my.yaml")
    assert str(raised.value).startswith("my.yaml: ")
    assert "\n" not in str(raised.value)


def test_transformer_heads_must_divide_the_width():
    network = {"name": "transformer", "width": 100, "heads": 3}
    with pytest.raises(InputError, match="heads: 2 x 3 does not divide the width 100"):
        check(Configuration, changed("network", network), "my.yaml")


def test_methods_follow_one_grammar():
    assert [parse_method(name).base for name in BASES] == list(BASES)
    assert parse_method("pairflow-sub4").subsets == 4
    assert parse_method("pairflow-sub4").coupling == "pairflow-sub4"
    assert parse_method("udlm").coupling is None
    for name in (
        "pairflow-sub0",
        "pairflow-sub1",
        "udlm-sub2",
        "pairflow+",
        "Pairflow",
        "pairflow-sub",
        "../x",
        "",
    ):
        with pytest.raises(InputError, match="method"):
            parse_method(name)


def test_settings_hold_only_what_the_step_depends_on():
    experiment = check(Configuration, SHIPPED, "x").experiments["demo"]
    assert experiment.couplings() == ["pairflow", "random"]
    assert experiment.pair_settings("random", 0).steps is None  # a changed step count leaves `random` alone
    assert experiment.pair_settings("pairflow", 3).model_dump() == {
        "coupling": "pairflow",
        "steps": 20,
        "subsets": 1,
        "seed": 3,
    }
    assert set(experiment.sample_settings("main", 4, 0).model_dump()) == {
        "nfe",
        "samples",
        "trials",
        "sampler",
        "conversion",
        "greedy_tail",
        "seed",
    }


def test_a_methods_lineage_is_trained_from_the_base_on():
    method = parse_method("pairflow-sub4+redi+dcd")
    assert (method.base, method.subsets, method.distillations) == ("pairflow", 4, ("redi", "dcd"))
    assert (method.parent, method.coupling) == ("pairflow-sub4+redi", "pairflow-sub4")
    assert method.lineage == ["pairflow-sub4", "pairflow-sub4+redi", "pairflow-sub4+redi+dcd"]
    assert (parse_method("mdlm").parent, parse_method("mdlm").coupling) == (None, None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("udlm+dc", r"unknown method 'udlm\+dc' \(did you mean 'dcd'\?\): distillations are dcd, redi"),
        ("mdlm+dcd", r"'mdlm\+dcd': mdlm starts from masks, and no distillation supports that"),
        ("udlm+", r"unknown method 'udlm\+'"),
        ("udlm-sub2", r"only pairflow has subsets"),
    ],
)
def test_a_method_that_cannot_be_is_refused_by_the_part_that_is_wrong(name, message):
    with pytest.raises(InputError, match=message):
        parse_method(name)


def test_a_distillation_named_needs_its_settings():
    with pytest.raises(InputError, match=r"methods: 'udlm\+dcd' needs the settings distillation\.dcd"):
        check(Configuration, changed("distillation", {}), "my.yaml")


IMAGES = {"source": "image_folder", "folder": "faces"}


def test_chemistry_is_only_for_molecules():
    values = changed("data", {"source": "digits"})
    values["experiments"]["demo"]["chemistry"] = {"fcd": True}
    with pytest.raises(InputError, match=r"demo: chemistry: only for molecules, and the data are images"):
        check(Configuration, values, "my.yaml")


def test_the_report_reads_histograms_of_both_ends_of_an_evaluation(tmp_path):
    demo = check(Configuration, SHIPPED, "workflow_config.yaml").experiments["demo"]
    found = paths.report_inputs(tmp_path, demo)["properties"]
    assert len(found) == 2 * len(demo.methods)
    assert {path.name for path in found} == {"nfe1.parquet", "nfe32.parquet"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"source": "qm9", "lenght": 8},
            r"unknown key 'experiments\.demo\.data\.lenght' \(did you mean 'length'",
        ),
        (
            {"source": "qm9", "length": 8, "size": 8},
            r"^my\.yaml: unknown key 'experiments\.demo\.data\.size'",
        ),
        ({"length": 8}, r"^my\.yaml: missing key 'experiments\.demo\.data\.source'$"),
        ({"source": "digits", "lenght": 8}, r"unknown key 'experiments\.demo\.data\.lenght' \(did you mean"),
        (
            {"source": "digits", "size": 8},
            r"demo\.data: size: only the source image_folder takes this key, digits has its",
        ),
        (
            {"source": "mnist_binray"},
            r"data\.source: unknown name 'mnist_binray' \(did you mean 'mnist_binary'",
        ),
        (
            {"source": "cifar10", "validation_fraction": 0.2},
            r"demo\.data: validation_fraction: cifar10 has a published test set$",
        ),
        (
            {"source": "image_folder"},
            r"demo\.data: folder: expected a folder, which the source image_folder needs; found none$",
        ),
        ({**IMAGES, "levels": 100}, r"data\.levels: 100 does not divide 256; 2, 4, 8, \.\.\. 256 do$"),
        ({**IMAGES, "levels": 512}, r"data\.levels: input should be less than or equal to 256, found 512$"),
        ({**IMAGES, "mode": "CMYK"}, r"data\.mode: input should be 'L' or 'RGB', found 'CMYK'$"),
        ("digits", r"experiments\.demo\.data: input should be a valid dictionary .* found 'digits'$"),
    ],
)
def test_a_mistake_in_the_data_names_its_key(data, message):
    with pytest.raises(InputError, match=message) as raised:
        check(Configuration, changed("data", data), "my.yaml")
    assert "\n" not in str(raised.value)


def test_the_source_tells_images_from_molecules():
    experiments = check(Configuration, SHIPPED, "x").experiments
    assert (experiments["demo"].modality, experiments["digits"].modality) == ("molecules", "images")
    mine = check(Configuration, changed("data", IMAGES), "x").experiments["demo"]
    assert mine.modality == "images"
    assert mine.model_dump(mode="json")["data"]["folder"] == "faces"


def test_the_settings_of_molecules_are_the_json_that_they_were():
    """Another JSON would run every finished experiment again."""
    data = check(Configuration, SHIPPED, "x").experiments["demo"].data
    assert data.model_dump_json() == (
        '{"fragments":"keep","charges":"keep","isotopes":"keep","stereo":"keep",'
        '"source":"small_molecules","column":"smiles","length":16,"drop_duplicates":false,"split":"random",'
        '"validation_fraction":0.05,"split_seed":42,"training_rows":null,"max_heavy_atoms":null,'
        '"max_too_long_share":0.001}'
    )


def test_image_experiments_carry_the_papers_numbers():
    experiments = check(Configuration, SHIPPED, "x").experiments
    mnist, cifar = experiments["mnist_binary"], experiments["cifar10"]
    assert (mnist.scale, cifar.scale, mnist.modality) == ("paper", "paper", "images")
    assert (mnist.data.flips, cifar.data.flips) == (False, True)
    assert (mnist.network.multipliers, cifar.network.multipliers) == ((1, 2, 2), (1, 2, 2, 2))
    for experiment, numbers in (
        (mnist, (256, 10_000, 2000, 5000, 1000, 5000, 10_000, 256, 1000, 7)),
        (cifar, (512, 300_000, 5000, 50_000, 10_000, 50_000, 10_000, 1024, 5000, 11)),
    ):
        training, dcd, redi = experiment.training, experiment.distillation.dcd, experiment.distillation.redi
        assert numbers == (
            *(training.batch_size, training.iterations, training.warmup_iterations),
            *(dcd.iterations, dcd.teacher_every),
            *(redi.iterations, redi.pairs.count, redi.pairs.steps),
            *(experiment.evaluations["main"].samples, len(experiment.evaluations["main"].nfe)),
        )
        assert (training.learning_rate, training.decay, training.loss) == (2e-4, "constant", "nelbo")
        assert (dcd.learning_rate, redi.learning_rate, dcd.warmup_iterations) == (
            6e-5,
            6e-5,
            dcd.iterations / 10,
        )
        assert (experiment.network.channels, experiment.network.blocks) == (128, 2)
        assert (experiment.pairing.steps, len(experiment.methods)) == (20, 8)
    check_table = cifar.evaluations["check"]
    assert (check_table.nfe, check_table.samples) == ((1000,), 50_000)


def test_an_evaluation_of_some_methods_samples_only_those():
    experiment = check(Configuration, changed("evaluations.main.methods", ["pairflow"]), "my.yaml")
    runs = list(paths.runs(experiment.experiments["demo"]))
    assert {run.method for run in runs} == {"pairflow"}
    assert [run.nfe for run in runs] == list(experiment.experiments["demo"].evaluations["main"].nfe)
    settings = experiment.experiments["demo"].sample_settings("main", 1, 0)
    assert "methods" not in settings.model_dump()


def test_the_schema_in_the_repository_is_up_to_date():
    """`python -m pairflow.config.file > config.schema.json` writes it again."""
    assert (REPOSITORY / "config.schema.json").read_text() == schema()
    assert (
        (REPOSITORY / "workflow_config.yaml")
        .read_text()
        .startswith("# yaml-language-server: $schema=config.schema.json\n")
    )
    assert {"experiments", "pair_shards"} == set(json.loads(schema())["properties"])


def test_every_help_is_a_sentence_or_a_noun_phrase():
    settings = [
        value for value in vars(config).values() if isinstance(value, type) and issubclass(value, Settings)
    ]
    texts = [
        info.description for model in settings for info in model.model_fields.values() if info.description
    ]
    assert len(texts) > 100
    assert not [text for text in texts if not text.endswith(".") or not (text[0].isupper() or text[0] == "`")]


def test_the_name_of_the_papers_page_is_taken():
    values = copy.deepcopy(SHIPPED)
    values["experiments"]["paper"] = values["experiments"]["demo"]
    with pytest.raises(InputError, match=r"experiments: 'paper' is the name of the page"):
        check(Configuration, values, "my.yaml")


def test_the_papers_page_depends_only_on_experiments_on_its_data():
    named = check(Configuration, SHIPPED, "x").paper_settings().experiments
    assert {"qm9", "qm9_small", "zinc250k", "cifar10"} <= set(named)
    assert not {"demo", "digits"} & set(named)
