"""Model files: what was saved comes back; a folder whose parts do not belong together is refused."""

import copy
import hashlib
import json
import subprocess
import sys
from itertools import islice
from types import SimpleNamespace

import pytest
import torch

from pairflow import networks
from pairflow.config import SampleSettings
from pairflow.errors import InputError
from pairflow.flow.corruption import Uniform
from pairflow.flow.plan import SamplingPlan
from pairflow.flow.samplers import FREE
from pairflow.training.model import DiscreteModel, Model
from pairflow.training.model_files import read_description, write_description

NETWORK = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16, "dropout": 0.0}


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    raw, ema = (networks.build(NETWORK, length=4, vocabulary_size=5) for _ in range(2))
    save(tmp_path, raw, ema)
    return tmp_path, raw, ema


def described(network, **changes):
    sizes = {"length": 4, "vocabulary_size": 5, "vocabulary": "v", "mask": None}
    facts = {"network_settings": NETWORK, "method": "udlm", "prediction": "posterior"}
    return DiscreteModel(network=network, **facts | sizes | changes)


def save(path, raw, ema, **changes):
    """Save a model of both weights, which is described by the raw ones."""
    model = described(raw, **changes)
    model.save(path / "model.safetensors", path / "model.json", raw=raw, ema=ema)


def test_raw_and_averaged_weights_come_back(folder):
    path, raw, ema = folder
    for which, saved in (("raw", raw), ("ema", ema)):
        model = Model.load(path, which=which)
        assert model.vocabulary == "v"
        assert not model.network.training
        for name, tensor in saved.state_dict().items():
            assert torch.equal(model.network.state_dict()[name], tensor)


def test_frequencies_of_another_number_of_positions_are_refused(folder):
    path, raw, ema = folder
    save(path, raw, ema, frequencies=torch.full((3, 5), 0.2, dtype=torch.float64))
    with pytest.raises(InputError, match=r"noise\.frequencies is \[3, 5\] there, expected \[4, 5\]"):
        Model.load(path)


def test_a_shipped_transformer_samples_without_slow_imports(tmp_path):
    """PyTorch's compiler and scipy.stats take seconds to import."""
    command = ["sample", "--model", "zinc250k", "--count", "1", "--out", str(tmp_path / "one.smi")]
    code = (
        "import sys; from pairflow import cli; cli.main(sys.argv[1:], standalone_mode=False); "
        "assert not {'torch._dynamo', 'scipy.stats'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code, *command], check=True)


def test_every_method_with_uniform_noise_starts_from_the_same_source_states_at_every_number_of_steps(folder):
    _, raw, ema = folder
    drawn = []
    for network, method, nfe in ((raw, "udlm", 1), (ema, "pairflow", 1), (ema, "random", 4)):
        plan = SamplingPlan(steps=nfe, prediction="posterior")
        drawn.append(described(network, method=method).draw(plan, 6, 3, "sample", 0, 0))
    first, *others = (source for source, _ in drawn)
    assert first.unique().numel() == 5
    assert all(torch.equal(first, source) for source in others)


def test_rows_without_end_come_in_batches_that_grow(folder, monkeypatch):
    monkeypatch.setattr(Uniform, "rows_at_once", lambda corruption, length: 200)
    model, settings, sizes = Model.load(folder[0]), SampleSettings(nfe=1, seed=3, greedy_tail=False), []
    model.network.register_forward_pre_hook(lambda network, inputs: sizes.append(len(inputs[0])))
    rows = list(islice(model.rows_without_end(settings, 1), 500))
    assert sizes == [64, 64, 128, 200, 200]
    plan = model.plan(settings, 1, 64)
    first, second = (model.draw(plan, 64, 3, "demand", batch)[1].tolist() for batch in (0, 1))
    assert (rows[:64], rows[64:128]) == (first, second)
    assert first != second
    turns = torch.tensor([[0, FREE, FREE, FREE], [1, FREE, FREE, FREE], [2, FREE, FREE, FREE]])
    rows = islice(model.rows_without_end(settings, 1, turns), 200)
    assert [row[0] for row in rows] == [number % 3 for number in range(200)]


def test_weights_of_another_run_are_refused(folder):
    path, raw, ema = folder
    described(ema).save(path / "model.safetensors", path / "other.json", raw=ema, ema=raw)
    with pytest.raises(InputError, match=r"model\.safetensors: these are not the weights that .*model\.json"):
        Model.load(path)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('{"format": 99}', "format 99, this version reads 1"),
        ("[" * 200_000, "not a model description of pairflow"),
        (None, "no such file"),
    ],
)
def test_missing_and_broken_files_are_named(folder, content, text):
    description = folder[0] / "model.json"
    description.write_text(content) if content else description.unlink()
    with pytest.raises(InputError, match=rf"model\.json: {text}"):
        Model.load(folder[0])


def test_no_flipped_bit_of_the_description_goes_unnoticed(folder):
    """It is refused, but where the bit was in space between words: then it says what it said."""
    path = folder[0] / "model.json"
    content, facts = path.read_bytes(), read_description(path)
    refused = 0
    for place in range(len(content)):
        altered = bytearray(content)
        altered[place] ^= 1 << place % 8
        path.write_bytes(altered)
        try:
            found = read_description(path)
        except InputError:
            refused += 1
        else:
            assert {key: found[key] for key in facts} == facts
    assert refused >= len(content) - content.count(b" ") - content.count(b"\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prediction": None}, "missing key 'prediction'"),
        ({"network": {"name": "mlp", "heads": 2}}, "unknown key 'network.mlp.heads'"),
        ({"network": {"name": "mlp", "width": 8}}, "does not fit the network that its description names: "),
        ({"network": {"name": "mlp", "width": 8192, "blocks": 128}}, "does not fit the network"),
        ({"network": {"name": "rnn"}}, "network: unknown name 'rnn'"),
        ({"network": "mlp"}, "network: "),
        ({"length": 0}, "length: input should be greater than or equal to 1, found 0"),
        ({"method": 5}, "method: input should be a valid string, found 5"),
        ({"prediction": "evil"}, "prediction: input should be 'leave_one_out', 'posterior' or"),
        ({"training": {}}, r"model\.json: missing key 'training\.batch_size'$"),
        ({"inputs": "x"}, "inputs: input should be a valid dictionary, found 'x'"),
        ({"shape": [1, 2, 3]}, r"shape: expected C, H, W of 4 pixel values, found \[1, 2, 3\]"),
        ({"mask": 5}, "mask: expected one of 5 symbols, found 5"),
        ({"method": "mdlm", "mask": 0, "prediction": "leave_one_out"}, "mdlm has no 'leave_one_out'"),
    ],
)
def test_a_model_of_another_version_is_refused_with_the_reason(folder, change, message):
    """A field that is missing, unknown, or means another network."""
    path = folder[0] / "model.json"
    facts = {**read_description(path), **change}
    facts = {key: value for key, value in facts.items() if value is not None or key == "mask"}
    write_description(path, facts, folder[0] / "model.safetensors")
    with pytest.raises(InputError, match=message):
        Model.load(folder[0])


def test_a_transformer_that_learnt_other_time_frequencies_is_refused(tmp_path):
    """An earlier version had others and did not store them: with these its samples would be wrong."""
    settings = {"name": "transformer", "width": 8, "blocks": 1, "heads": 2, "time_width": 8, "dropout": 0.0}
    network = networks.build(settings, length=4, vocabulary_size=5)
    frequencies = network.time.frequencies
    del network.time.frequencies
    network.time.register_buffer("frequencies", frequencies, persistent=False)
    save(tmp_path, network, copy.deepcopy(network), network_settings=settings)
    text = r"ema\.time\.frequencies is missing there, expected \[128\]; train the model again"
    with pytest.raises(InputError, match=text):
        Model.load(tmp_path)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"kind": "characters", "tokens": [*"abcd"]}, r"expected 5 symbols, as .*model\.json says, found 4$"),
        ({"kind": ["smiles"], "tokens": [*"abcde"]}, r"kind: input should be a valid string"),
        ({"kind": "smiles", "tokens": [1, 2, 3, 4, 5]}, r"tokens\.0: input should be a valid string"),
        ([], "not a vocabulary: no JSON object"),
    ],
)
def test_a_vocabulary_that_a_model_cannot_have_is_refused(folder, content, text):
    """Its hash is the one in model.json, as in a folder that somebody else has made."""
    path, raw, ema = folder
    vocabulary = json.dumps(content)
    (path / "vocabulary.json").write_text(vocabulary + "\n")
    save(path, raw, ema, vocabulary=hashlib.sha256(vocabulary.encode()).hexdigest())
    with pytest.raises(InputError, match=rf"vocabulary\.json: {text}"):
        Model.load(path).vocabulary_file()


def test_weights_of_integers_are_refused(folder):
    path, raw, ema = folder
    integers = SimpleNamespace(state_dict=lambda: {name: w.int() for name, w in raw.state_dict().items()})
    described(raw).save(path / "model.safetensors", path / "model.json", raw=integers, ema=ema.double())
    Model.load(path)
    with pytest.raises(InputError, match=r"raw\..*: expected one of F16, BF16, F32, F64, found I32"):
        Model.load(path, which="raw")


@pytest.mark.parametrize(
    ("value", "rows", "text"),
    [
        (1e38, slice(None), "the network gives no finite numbers: its training diverged"),
        (float("inf"), 0, r"model\.safetensors: holds weights that are not finite"),
    ],
)
def test_weights_of_a_training_that_diverged_are_refused(folder, value, rows, text):
    path, raw, ema = folder
    with torch.no_grad():
        for parameter in ema.parameters():
            parameter[rows] = value
    save(path, raw, ema)
    with pytest.raises(InputError, match=text):
        Model.load(path)
    Model.load(path, which="raw")
