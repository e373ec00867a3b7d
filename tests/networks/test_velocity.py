"""The velocity networks: shapes, sizes, what they see, and which rows they refuse."""

import re

import pytest
import torch

from pairflow.errors import InputError
from pairflow.networks import build_velocity

MLP = {"name": "mlp", "width": 16, "blocks": 2, "time_width": 16, "dropout": 0.0}
ENCODER = {"name": "encoder", "width": 16, "blocks": 2, "heads": 4}
UNET = {"name": "unet", "channels": 8, "multipliers": (1, 2), "blocks": 1, "attention": (1,), "dropout": 0.0}
CASES = [(MLP, (3,)), (MLP, (2, 4, 4)), (ENCODER, (6,)), (UNET, (1, 4, 6))]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]['name']}{len(case[1])}")
def case(request):
    """A velocity network, off its zero initialisation, with points and times."""
    torch.manual_seed(0)
    settings, shape = request.param
    network = build_velocity(settings, shape)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return network, torch.randn(5, *shape), torch.rand(5)


@pytest.mark.parametrize(("settings", "shape"), CASES)
def test_a_new_velocity_is_0_and_has_the_shape_of_the_points(settings, shape):
    x = torch.randn(5, *shape)
    assert torch.equal(build_velocity(settings, shape)(x, torch.rand(5)), torch.zeros_like(x))


def test_gradients_reach_every_parameter_and_rows_do_not_see_each_other(case, float32_error):
    network, x, t = case
    velocity = network(x, t)
    # At most 288 terms are added at a time, in about ten layers.
    allowed = float32_error(288, layers=10) * velocity.abs().max().item()
    torch.testing.assert_close(network(x[:1], t[:1]), velocity[:1], rtol=0, atol=allowed)
    velocity.square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_every_number_sees_every_other_and_the_time(case):
    network, x, t = case
    x.requires_grad_()
    velocity = network(x, t)
    velocity.flatten(1)[0, -1].backward()
    assert (x.grad[0] != 0).all()
    assert (x.grad[1:] == 0).all()
    for near, far in ((0.0, 0.01), (0.99, 1.0)):
        at = [network(x[:1], torch.tensor([time])) for time in (near, far)]
        assert (at[0] - at[1]).abs().max() > 1e-4


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


@pytest.mark.parametrize(
    ("settings", "shape", "message"),
    [
        ({"name": "transformer"}, (4,), "continuous data take encoder, mlp, unet, found 'transformer'"),
        (ENCODER, (5,), "encoder needs vectors of an even length; the data have rows of shape (5,)"),
        (UNET, (4,), "network unet needs images (C, H, W); the data have rows of shape (4,)"),
        (UNET, (1, 5, 4), "network unet: 2 scales halve an image 1 times, but 2 does not divide 1 x 5 x 4"),
    ],
)
def test_rows_that_a_network_cannot_take_are_refused(settings, shape, message):
    with pytest.raises(InputError, match=f"{re.escape(message)}$"):
        build_velocity(settings, shape)
