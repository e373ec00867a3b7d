"""Fine-tuning: a new model starts from the weights of another, symbol by symbol."""

import copy
import hashlib
import json
from dataclasses import replace

import pytest
import torch

from pairflow import networks
from pairflow.data.classes import Classes, Properties
from pairflow.errors import InputError
from pairflow.training.inherit import inherit, start_from
from pairflow.training.model import DiscreteModel, Model

MLP = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16, "dropout": 0.0}
NETWORKS = {"mlp": MLP, "transformer": MLP | {"name": "transformer", "heads": 2}}
LENGTH = 4
OLD = ["<mask>", "C", "N", "O"]
NEW = ["O", "Cl", "<mask>", "N", "C", "Br"]  # another order, and two more


def save_vocabulary(path, tokens, kind="smiles"):
    """Write a vocabulary; returns its hash."""
    text = json.dumps({"kind": kind, "tokens": tokens}, separators=(",", ":"))
    path.write_text(text + "\n")
    return hashlib.sha256(text.encode()).hexdigest()


def make(tokens, vocabulary, seed, name="mlp", method="udlm", **changes):
    """A model with random weights, also where networks start with zeros."""
    torch.manual_seed(seed)
    mask = tokens.index("<mask>")
    network = networks.build(NETWORKS[name], length=LENGTH, vocabulary_size=len(tokens), mask=mask)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    sizes = {"length": LENGTH, "vocabulary_size": len(tokens), "vocabulary": vocabulary, "mask": mask}
    facts = {"network_settings": NETWORKS[name], "method": method, "prediction": "posterior"} | changes
    return DiscreteModel(network=network.eval(), **sizes, **facts)


@pytest.fixture
def family(tmp_path):
    """`make_family(network)`: an untrained model, its parent in a folder, and the model's vocabulary."""

    def make_family(name="mlp", new=NEW, kind="smiles", **changes):
        folder = tmp_path / "parent"
        folder.mkdir()
        parent = make(OLD, save_vocabulary(folder / "vocabulary.json", OLD), 0, name)
        average = copy.deepcopy(parent.network)
        parent.save(folder / "model.safetensors", folder / "model.json", raw=parent.network, ema=average)
        vocabulary = tmp_path / "vocabulary.json"
        child = make(new, save_vocabulary(vocabulary, new, kind), 1, name, **changes)
        return child, Model.load(folder), vocabulary

    return make_family


@pytest.mark.parametrize("name", NETWORKS)
def test_old_symbols_keep_their_logits_in_any_order_and_beside_new_ones(family, name):
    child, parent, vocabulary = family(name)
    untrained = make(NEW, "", 1, name).network
    assert inherit(child, parent, vocabulary) == ["Cl", "Br"]
    places = torch.tensor([NEW.index(token) for token in OLD])
    x_t = torch.randint(0, len(OLD), (20, LENGTH), generator=torch.manual_seed(2))
    sigma = torch.linspace(0, 3, 20)
    logits = child.network(places[x_t], sigma)
    torch.testing.assert_close(logits[..., places], parent.network(x_t, sigma))
    fresh = torch.tensor([NEW.index(token) for token in ("Cl", "Br")])
    both = (child.network, untrained)
    bias, expected = (network.head.bias.unflatten(0, (-1, len(NEW))) for network in both)
    assert torch.equal(bias[:, fresh], expected[:, fresh])


def test_a_conditional_model_starts_as_its_parent_whatever_the_label(family):
    _, parent, _ = family(new=OLD)
    condition = Properties((Classes(property="qed", names=("low", "high"), thresholds=(0.5,)),))
    network = networks.build(MLP, length=LENGTH, vocabulary_size=len(OLD), mask=0, classes=(2,))
    child = replace(parent, network=network.eval(), condition=condition)
    assert inherit(child, parent, None) == []
    x_t, sigma = torch.randint(0, len(OLD), (3, LENGTH)), torch.ones(3)
    for label in (None, torch.tensor([0, 1, 2])):
        torch.testing.assert_close(network(x_t, sigma, label), parent.network(x_t, sigma))
    with pytest.raises(InputError, match=r"its condition is \('low', 'high'\), expected None"):
        inherit(parent, child, None)


def test_the_parent_is_part_of_what_a_model_was_made_from(family):
    child, parent, vocabulary = family()
    started, said = start_from(parent.folder, child, vocabulary)
    assert started.inputs == {"parent": parent.weights}
    assert said == f"starts from the udlm in {parent.folder}; it did not know 2 of the symbols: Cl Br"


def test_few_of_many_new_symbols_are_named(family):
    child, parent, vocabulary = family(new=[*NEW, "F", "I", "B", "P"])
    _, said = start_from(parent.folder, child, vocabulary)
    assert said.endswith("it did not know 6 of the symbols: Cl Br F I B ...")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"length": 5}, "its N is 4, expected 5"),
        ({"network_settings": NETWORKS["mlp"] | {"width": 32}}, "its network width is 16, expected 32"),
        ({"network_settings": NETWORKS["transformer"]}, "its network name is mlp, expected transformer"),
        ({"method": "mdlm"}, "its noise is uniform, expected absorbing"),
        ({"prediction": "leave_one_out"}, "its prediction is posterior, expected leave_one_out"),
        ({"shape": [1, 2, 2]}, r"its shape is None, expected \[1, 2, 2\]"),
    ],
)
def test_a_parent_of_another_kind_is_refused(family, changes, message):
    child, parent, vocabulary = family()
    with pytest.raises(InputError, match=message) as refusal:
        inherit(replace(child, **changes), parent, vocabulary)
    assert str(refusal.value).startswith(f"{parent.folder}: cannot start from this model: ")


def test_symbols_of_another_kind_or_of_no_vocabulary_are_refused(family):
    child, parent, vocabulary = family(kind="selfies")
    for own, message in ((vocabulary, "its vocabulary is smiles, but the data's is selfies"), (None, "give")):
        with pytest.raises(InputError, match=message):
            inherit(child, parent, own)
