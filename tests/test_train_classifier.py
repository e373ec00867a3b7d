"""The classifiers that come with pairflow: their training, on the embedded digits."""

import numpy as np
import pytest
import torch

from benchmarks.train_classifier import accuracy, bring_to_unit_scale, train
from pairflow.kinds.images.data_sets import read_digits
from pairflow.kinds.images.extractors import Classifier, as_input

DIGITS, LABELS = read_digits().images, read_digits().labels.astype(np.int64)
HELD_OUT = np.arange(len(DIGITS)) % 5 == 0


def test_it_learns_features_of_unit_mean_square_as_a_function_of_its_seed():
    network = train(DIGITS[~HELD_OUT], LABELS[~HELD_OUT], iterations=300, seed=0)
    assert accuracy(network, DIGITS[HELD_OUT], LABELS[HELD_OUT]) > 0.9
    with torch.inference_mode():
        assert network(as_input(DIGITS[~HELD_OUT])).square().mean().item() == pytest.approx(1, rel=0.02)
    weights = [train(DIGITS, LABELS, iterations=3, seed=seed).head[-1].weight for seed in (0, 0, 1)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_the_scale_changes_no_logit(float32_error):
    torch.manual_seed(0)
    images = np.random.default_rng(0).integers(0, 256, (9, 8, 8, 1), dtype=np.uint8)
    network, inputs = Classifier((1, 8, 8), 4), as_input(images)
    with torch.no_grad():
        before = network.head(network(inputs))
        bring_to_unit_scale(network, images)
        # The features add 64 x 2 x 2 pixels of the last convolution, the convolutions 288 terms at most.
        allowed = float32_error(288, layers=5) * before.abs().max().item()
        torch.testing.assert_close(network.head(network(inputs)), before, rtol=0, atol=allowed)
        assert network(inputs).square().mean().item() == pytest.approx(1, rel=float32_error(288, layers=5))
