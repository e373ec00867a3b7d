"""The networks: shapes, sizes, how they start, what they see, and which rows they refuse."""

import re

import pytest
import torch
import torch.nn.functional as F

from pairflow.config import FLOWS
from pairflow.errors import InputError
from pairflow.flow.corruption import Absorbing, Uniform
from pairflow.networks import DENOISERS, VELOCITIES, build, build_velocity, names_of
from pairflow.networks.layers import TimeEmbedding

SHAPE, N, K = (3, 4, 6), 72, 5
SIZES = {"width": 32, "blocks": 2, "time_width": 16, "dropout": 0.5}
SMALL = {"mlp": {"name": "mlp", **SIZES}, "transformer": {"name": "transformer", "heads": 4, **SIZES}}
UNET = {"name": "unet", "channels": 8, "multipliers": (1, 2), "blocks": 1, "attention": (1,), "dropout": 0.3}
ENCODER = {"name": "encoder", "width": 16, "blocks": 2, "heads": 4}
ALL = {**SMALL, "unet": {**UNET, "head": "logistic"}}
VELOCITY = {
    "mlp1": ({"name": "mlp", **SIZES}, (3,)),
    "mlp3": ({"name": "mlp", **SIZES}, (2, 4, 4)),
    "encoder": (ENCODER, (6,)),
    "velocity unet": (UNET, (1, 4, 6)),
}


def shaken(network):
    """A small network off its zero initialisation, in evaluation mode."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return network.eval()


@pytest.fixture(params=ALL)
def network(request):
    """A denoiser."""
    torch.manual_seed(0)
    return shaken(build(ALL[request.param], length=N, vocabulary_size=K, shape=SHAPE))


@pytest.fixture(params=[*ALL, *VELOCITY])
def case(request):
    """A denoiser or a velocity network, with inputs and times."""
    torch.manual_seed(0)
    if request.param in ALL:
        return shaken(build(ALL[request.param], length=N, vocabulary_size=K, shape=SHAPE)), *inputs(64)
    settings, shape = VELOCITY[request.param]
    return shaken(build_velocity(settings, shape)), torch.randn(5, *shape), torch.rand(5)


def inputs(rows=4):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(K, (rows, N), generator=generator), 6.9 * torch.rand(rows, generator=generator)


def test_the_transformer_has_the_size_of_the_paper():
    sizes = {"width": 768, "blocks": 12, "heads": 12, "time_width": 128, "dropout": 0.1}
    with torch.device("meta"):
        network = build({"name": "transformer", **sizes}, length=32, vocabulary_size=40)
    assert sum(map(torch.numel, network.parameters())) == pytest.approx(92.4e6, rel=0.01)


def test_the_transformer_sees_the_time_as_in_the_release_of_udlm():
    """cos and sin of sigma times 10000^(-i/128), i = 0..127."""
    sigma = torch.tensor([0.0, 0.5, 6.9])
    network, seen = build(SMALL["transformer"], length=N, vocabulary_size=K), []
    network.time.perceptron.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    network(inputs(3)[0], sigma)
    angles = sigma[:, None] * 10_000 ** (-torch.arange(128) / 128)
    torch.testing.assert_close(seen[0], torch.cat([angles.cos(), angles.sin()], dim=1))


@pytest.mark.parametrize("name", SMALL)
def test_a_new_network_knows_nothing(name):
    x_t, sigma = inputs()
    logits = build(SMALL[name], length=N, vocabulary_size=K)(x_t, sigma)
    assert logits.shape == (4, N, K)
    assert (logits == 0).all()


def test_gradients_reach_every_parameter_and_rows_do_not_see_each_other(case, float32_error):
    network, x, t = case
    output = network(x, t)
    # A 3x3 convolution of at most 32 channels adds 288 terms, and about 20 stand one after the other.
    allowed = float32_error(288, layers=20) * output.abs().max().item()
    torch.testing.assert_close(network(x[:1], t[:1]), output[:1], rtol=0, atol=allowed)
    output.square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_positions_see_each_other_and_their_order(network):
    x_t, sigma = inputs(1)[0], torch.ones(1)
    swapped = x_t.clone()
    x_t[0, :2], swapped[0, :2] = torch.tensor([0, 1]), torch.tensor([1, 0])
    difference = (network(x_t, sigma) - network(swapped, sigma)).abs()
    assert difference[:, 2:].max() > 1e-4
    assert difference[:, -1].max() > 0  # of an image, the far corner of the last colour


def test_times_are_told_apart_at_both_ends(case):
    network, x, _ = case
    ends = [(0.99, 1.0)] if x.is_floating_point() else [(6.5, 6.9)]
    for near, far in [(0.0, 0.01), *ends]:
        difference = network(x[:1], torch.tensor([near])) - network(x[:1], torch.tensor([far]))
        assert difference.abs().max() > 1e-4


def test_dropout_is_on_in_training_only(network):
    x_t, sigma = inputs()
    assert torch.equal(network(x_t, sigma), network(x_t, sigma))
    network.train()
    assert not torch.equal(network(x_t, sigma), network(x_t, sigma))


def test_the_copy_gate_lifts_the_input_token():
    network = build(SMALL["mlp"], length=N, vocabulary_size=K)
    torch.nn.init.constant_(network.copy_gate.bias, 3.0)
    x_t, sigma = inputs()
    assert torch.equal(network(x_t, sigma), 3.0 * F.one_hot(x_t, K))


def test_log_probabilities_take_kappa_and_are_normalised(network, float32_error):
    x_t, sigma = inputs()
    log_p = Uniform(K).log_probabilities(network, x_t, torch.exp(-sigma))
    torch.testing.assert_close(log_p, network(x_t, sigma).log_softmax(-1), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(log_p.exp().sum(-1), torch.ones(4, N), rtol=0, atol=float32_error(K))


def test_every_network_has_a_class_for_each_of_its_flows():
    assert [*FLOWS] == ["discrete", "continuous"]
    for flow, classes in zip(FLOWS, (DENOISERS, VELOCITIES), strict=True):
        assert sorted(classes) == names_of(flow)


@pytest.mark.parametrize("name", SMALL)
def test_subs_keeps_tokens_and_never_predicts_the_mask(name, float32_error):
    network, mask = build(SMALL[name], length=N, vocabulary_size=K).eval(), 2
    torch.nn.init.normal_(network.head.weight)
    x_t = inputs()[0].clone()
    x_t[:, ::2] = mask
    corruption = Absorbing(K, mask)
    p = corruption.log_probabilities(network, x_t, torch.full((4,), 0.3)).exp()
    masked = x_t == mask
    assert (p[..., mask] == 0).all()
    total = p[masked].sum(-1)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=float32_error(K))
    assert len(p[masked][0].unique()) > 2
    assert torch.equal(p[~masked], F.one_hot(x_t, K).float()[~masked])
    assert torch.equal(p, corruption.log_probabilities(network, x_t, torch.full((4,), 0.9)).exp())


@pytest.mark.parametrize("name", SMALL)
def test_a_label_is_one_per_row_or_one_for_all(name):
    torch.manual_seed(0)
    network = build({**SMALL[name], "dropout": 0.0}, length=4, vocabulary_size=5, classes=(3,))
    with torch.no_grad():
        for parameter in network.parameters():  # the heads start at zero
            parameter.normal_()
    x_t, sigma = torch.randint(5, (2, 4)), torch.tensor([0.5, 0.5])
    x_t[1] = x_t[0]
    rows = network(x_t, sigma, torch.tensor([0, 3]))
    torch.testing.assert_close(network(x_t, sigma, torch.tensor(0))[0], rows[0])
    torch.testing.assert_close(network(x_t, sigma)[1], rows[1])
    assert not torch.allclose(rows[0], rows[1])


def test_the_embeddings_of_the_labels_of_several_properties_add_up():
    embed = TimeEmbedding(6, classes=(3, 2))
    time = TimeEmbedding(6)
    time.load_state_dict({key: value for key, value in embed.state_dict().items() if key != "labels.weight"})
    first, second = embed.labels.weight.split([4, 3])  # of each property, then of no label
    labels, sigma = torch.tensor([[1.0, 1.0], [2.0, 0.0], [3.0, 2.0]]), torch.full((3,), 0.5)
    expected = torch.stack([first[1] + second[1], first[2] + second[0], first[3] + second[2]])
    torch.testing.assert_close(embed(sigma, labels) - time(sigma), expected)
    torch.testing.assert_close(embed(sigma)[0], embed(sigma, labels)[2])


@pytest.mark.parametrize(("settings", "shape"), VELOCITY.values())
def test_a_new_velocity_is_0_and_later_every_number_of_a_row_sees_every_other(settings, shape):
    torch.manual_seed(0)
    network, x = build_velocity(settings, shape), torch.randn(5, *shape).requires_grad_()
    assert torch.equal(network(x, torch.rand(5)), torch.zeros_like(x))
    shaken(network)(x, torch.rand(5)).flatten(1)[0, -1].backward()
    assert (x.grad[0] != 0).all()
    assert (x.grad[1:] == 0).all()


def test_the_encoder_tells_the_pairs_of_coordinates_apart():
    """With equal pairs, only the learnt positions make the velocities of the pairs differ."""
    torch.manual_seed(0)
    network = build_velocity(ENCODER, (6,))
    torch.nn.init.normal_(network.head.weight)
    velocity = network(torch.tensor([[1.0, -0.5] * 3]), torch.tensor([0.5])).unflatten(1, (3, 2))[0]
    assert (velocity[0] - velocity[1]).abs().max() > 1e-4


def test_the_unet_of_continuous_mnist_has_64_channels_and_three_halvings():
    sizes = {"channels": 64, "multipliers": (1, 2, 4, 8), "blocks": 2, "attention": (3,), "dropout": 0.0}
    with torch.device("meta"):
        network = build_velocity({"name": "unet", **sizes}, (1, 32, 32))
    assert network.inputs.in_channels == network.outputs.out_channels == 1
    assert sum(map(torch.numel, network.parameters())) == 61_830_529


IMAGES = {"length": N, "vocabulary_size": K, "shape": SHAPE}
REFUSED = [
    ({"name": "gru"}, {}, f": expected one of {', '.join(names_of('discrete'))}, found 'gru'"),
    (ALL["unet"], {"classes": (3,)}, " unet: takes no condition; use an mlp or a transformer"),
    (ALL["unet"], {"shape": None}, " unet needs images; the data holds rows of 72 tokens without a shape"),
    (ALL["unet"], {"shape": (3, 4, 7)}, " unet: images of 3 x 4 x 7 are not rows of 72 tokens"),
    (ALL["unet"], {"mask": 1}, " unet: the mask 1 is a pixel value, expected 4"),
    (
        ALL["unet"] | {"multipliers": (1,) * 4},
        {},
        " unet: 4 scales halve an image 3 times, but 8 does not divide 3 x 4 x 6",
    ),
    ({"name": "transformer"}, (4,), ": continuous data take encoder, mlp, unet, found 'transformer'"),
    (ENCODER, (5,), " encoder needs vectors of an even length; the data have rows of shape (5,)"),
    (UNET, (4,), " unet needs images (C, H, W); the data have rows of shape (4,)"),
    (UNET, (1, 5, 4), " unet: 2 scales halve an image 1 times, but 2 does not divide 1 x 5 x 4"),
]


@pytest.mark.parametrize(("settings", "rows", "message"), REFUSED)
def test_rows_that_a_network_cannot_take_are_refused(settings, rows, message):
    """Changed facts of the rows of a denoiser, or the shape of the rows of a velocity network."""
    with pytest.raises(InputError, match=f"^network{re.escape(message)}$"):
        build(settings, **IMAGES | rows) if isinstance(rows, dict) else build_velocity(settings, rows)


@pytest.mark.parametrize("name", SMALL)
def test_labels_add_an_embedding_and_nothing_else(name):
    plain, conditional = (
        build({**SMALL[name], "dropout": 0.0}, length=4, vocabulary_size=5, classes=classes)
        for classes in ((), (3,))
    )
    added = conditional.state_dict().keys() - plain.state_dict().keys()
    assert added == {"time.labels.weight"}
    assert conditional.time.labels.weight.shape == (4, 16)  # three classes, and no label
    assert plain.state_dict().keys() <= conditional.state_dict().keys()
