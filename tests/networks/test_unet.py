"""The U-Net: its sizes, its heads, what it sees of pixels, masks and time, and what it refuses."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pairflow.config import TrainSettings, check
from pairflow.errors import InputError
from pairflow.flow.corruption import Absorbing, Uniform
from pairflow.networks import build
from pairflow.networks.unet import truncated_logistic

SMALL = {"name": "unet", "channels": 8, "multipliers": (1, 2), "blocks": 1, "attention": (1,), "dropout": 0.3}
SMALL["head"] = "logistic"
SHAPE, N = (3, 4, 6), 72  # C, H and W all differ
PAPER = {**SMALL, "channels": 128, "blocks": 2, "dropout": 0.1}
HEADS = ("logistic", "categorical")


def unet(levels=4, *, masked=False, shape=SHAPE, **changes):
    mask = levels if masked else None
    sizes = {"length": math.prod(shape), "vocabulary_size": levels + masked, "shape": shape, "mask": mask}
    return build({**SMALL, **changes}, **sizes)


def shaken(levels=4, **changes):
    """A small network off its zero initialisation, in evaluation mode."""
    torch.manual_seed(0)
    network = unet(levels, **changes)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return network.eval()


def tokens(levels=4, rows=3):
    return torch.randint(levels, (rows, N), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("shape", "levels", "multipliers", "head", "published", "exact"),
    [
        ((1, 28, 28), 2, (1, 2, 2), "logistic", 25.84e6, 25_835_138),
        ((3, 32, 32), 256, (1, 2, 2, 2), "logistic", 35.75e6, 35_749_766),
        ((3, 32, 32), 256, (1, 2, 2, 2), "categorical", 36.6e6, 36_628_352),
    ],
)
def test_it_has_the_sizes_of_the_paper(shape, levels, multipliers, head, published, exact):
    with torch.device("meta"):
        network = unet(levels, **{**PAPER, "multipliers": multipliers, "head": head}, shape=shape)
    assert sum(map(torch.numel, network.parameters())) == exact == pytest.approx(published, rel=1e-3)


def test_a_new_network_is_uniform_or_near_its_input(float32_error):
    x_t, sigma = tokens(8), torch.ones(3)
    assert (unet(8, head="categorical")(x_t, sigma) == 0).all()
    mean = torch.tanh(x_t * 2 / 7 - 1.0)
    expected = truncated_logistic(mean, torch.full_like(mean, -2.0), 8)
    # Of each logit, a handful of functions one after the other.
    allowed = float32_error(1, layers=8) * expected.abs().max().item()
    torch.testing.assert_close(unet(8)(x_t, sigma), expected, rtol=0, atol=allowed)


@pytest.mark.parametrize("levels", [2, 8, 256])
def test_the_logistic_head_is_the_brute_force_distribution(levels):
    means, log_scales = np.meshgrid([-0.999, -0.3, 0.0, 0.5, 0.999], [-4.0, -2.0, 0.0, 3.0])
    half = 1 / (levels - 1)
    z = np.linspace(-1, 1, levels) - means[..., None]
    scale = np.exp(log_scales)[..., None]
    mass = (np.tanh((z + half) / scale / 2) - np.tanh((z - half) / scale / 2)) / 2  # sigmoid = (1 + tanh) / 2
    expected = mass / mass.sum(-1, keepdims=True)
    means, log_scales = torch.tensor(means).float(), torch.tensor(log_scales).float()
    logits = truncated_logistic(means, log_scales, levels).log_softmax(-1)
    assert logits.exp().sum(-1).numpy() == pytest.approx(1.0, abs=1e-5)
    assert logits.exp().numpy() == pytest.approx(expected, rel=2e-4, abs=1e-9)
    likely = expected > 1e-9
    assert logits.numpy()[likely] == pytest.approx(np.log(expected[likely]), rel=1e-4, abs=2e-4)


def test_the_logistic_head_goes_from_a_point_mass_to_the_uniform_distribution():
    mean, levels = torch.tensor([0.2]), 256
    narrow, wide = (truncated_logistic(mean, torch.tensor([s]), levels).softmax(-1)[0] for s in (-9.0, 9.0))
    assert narrow[153].item() == pytest.approx(1.0)  # 0.2 = 2 x 153 / 255 - 1
    torch.testing.assert_close(wide, torch.full((levels,), 1 / levels), rtol=1e-3, atol=0)


@pytest.mark.parametrize("levels", [2, 8, 256])
def test_gradients_stay_finite_at_extreme_outputs(levels):
    mean = torch.tensor([-40.0, -1.0, 0.0, 1.0, 40.0]).repeat(5).requires_grad_()
    log_scale = torch.tensor([-1e4, -9.0, 0.0, 9.0, 1e4]).repeat_interleave(5).requires_grad_()
    log_p = truncated_logistic(torch.tanh(mean), log_scale, levels).log_softmax(-1)
    assert log_p.isfinite().all()
    log_p.sum().backward()
    assert mean.grad.isfinite().all()
    assert log_scale.grad.isfinite().all()


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_reach_every_parameter(head, masked):
    network, x_t = shaken(head=head, masked=masked), tokens(4 + masked, rows=16)
    corruption = Absorbing(4) if masked else Uniform(4)
    log_p = corruption.log_probabilities(network, x_t, torch.linspace(0.01, 0.9, 16))
    F.nll_loss(log_p[..., :4].clamp(min=-50).flatten(0, 1), tokens(rows=16).roll(1, 0).flatten()).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("levels", [2, 8, 256])
def test_a_network_made_to_copy_returns_its_input(levels):
    network, x_t = unet(levels), tokens(levels, rows=8)
    network.transform = lambda pixels, time: torch.cat(
        [torch.atanh(0.9999 * pixels) - pixels, torch.full_like(pixels, -3.0)], dim=1
    )
    p = network(x_t, torch.ones(8)).softmax(-1)
    assert torch.equal(p.argmax(-1), x_t)
    free = unet(levels, head="categorical")
    free.transform = lambda pixels, time: (
        F.one_hot(x_t.unflatten(1, SHAPE), levels).float().movedim(-1, 2).flatten(1, 2)
    )
    assert torch.equal(free(x_t, torch.ones(8)).argmax(-1), x_t)


def position(colour, row, column):
    return (colour * SHAPE[1] + row) * SHAPE[2] + column


@pytest.mark.parametrize("head", HEADS)
def test_tokens_are_in_channel_height_width_order(head):
    """One 3x3 convolution from pixels to outputs: a changed pixel changes its neighbours, in every colour."""
    network = unet(head=head, multipliers=(1,), attention=())
    direct = torch.nn.Conv2d(3, network.outputs.out_channels, 3, padding=1)
    torch.nn.init.constant_(direct.weight, 1.0)
    network.transform = lambda h, time: direct(h)
    x_t = torch.full((1, N), 1)
    changed = x_t.clone()
    changed[0, position(1, 2, 3)] = 2
    difference = (network(changed, torch.ones(1)) != network(x_t, torch.ones(1))).any(-1)[0]
    near = [position(c, h, w) for c in range(3) for h in (1, 2, 3) for w in (2, 3, 4)]
    assert difference.nonzero().flatten().tolist() == near


@pytest.mark.parametrize("head", HEADS)
def test_a_mask_is_no_pixel_value_and_is_never_predicted(head, float32_error):
    network, sigma = shaken(5, head=head, masked=True), torch.zeros(1)
    grey, masked = torch.full((1, N), 2), torch.full((1, N), 5)  # both 0 in [-1, 1]
    black, seen = torch.zeros_like(grey), [network(x, sigma) for x in (masked, grey)]
    assert (seen[0][..., 5] == -torch.inf).all()
    assert not torch.allclose(seen[0][..., :5], seen[1][..., :5], atol=1e-4)
    one = black.clone()
    one[0, 7] = 5
    assert not torch.allclose(network(one, sigma)[..., :5], network(black, sigma)[..., :5], atol=1e-4)
    log_p = Absorbing(5).log_probabilities(network, masked, torch.full((1,), 0.3))
    torch.testing.assert_close(log_p.exp().sum(-1), torch.ones(1, N), rtol=0, atol=float32_error(6))
    assert (log_p.exp()[..., 5] == 0).all()


def test_it_computes_in_float32_under_autocast():
    network, x_t, sigma = shaken(), tokens(), torch.ones(3)
    expected = network(x_t, sigma)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(network(x_t, sigma), expected)


def test_its_settings_are_the_papers_for_mnist_and_name_scales_that_it_has():
    training = {"batch_size": 4, "iterations": 1, "learning_rate": 0.1}
    values = {"method": "udlm", "network": {"name": "unet"}, "training": training}
    found = check(TrainSettings, values, "test").network.model_dump()
    assert found == {**PAPER, "multipliers": (1, 2, 2)}
    values["network"] |= {"attention": [3]}
    with pytest.raises(InputError, match=r"unet: attention: there is no scale 3, multipliers name 0 to 2$"):
        check(TrainSettings, values, "test")


def test_black_is_minus_one_and_white_is_one():
    pixels, _ = unet(256)._pixels(torch.tensor([0, 255, 51] * 24)[None])
    assert pixels.shape == (1, *SHAPE)
    assert pixels[0, 0, 0, :3].tolist() == pytest.approx([-1.0, 1.0, -0.6], abs=1e-5)


def test_the_categorical_head_gives_every_colour_its_own_logits():
    network = unet(5, head="categorical")
    with torch.no_grad():
        network.outputs.bias.copy_(torch.arange(15.0))
    logits = network(tokens(5), torch.ones(3)).unflatten(1, SHAPE)
    assert torch.equal(logits[0, 2, 0, 0], torch.arange(10.0, 15.0))
    assert torch.equal(logits[1, 0, 3, 5], torch.arange(5.0))
