import numpy as np
import pytest

from pairflow.flow.schedule import DIFFUSION, PAIRING, gamma


def test_ends_of_the_clocks():
    assert (PAIRING.kappa(0.0), PAIRING.kappa(1.0), PAIRING.derivative(0.3)) == (0.0, 1.0, 1.0)
    assert (DIFFUSION.kappa(0.0), DIFFUSION.kappa(1.0), DIFFUSION.derivative(0.3)) == (1e-3, 1.0, 0.999)


def test_arrays_keep_their_kind():
    torch = pytest.importorskip("torch")
    t = np.linspace(0, 1, 5, dtype=np.float32)
    assert DIFFUSION.kappa(t).dtype == np.float32
    assert torch.equal(DIFFUSION.kappa(torch.from_numpy(t)), torch.from_numpy(DIFFUSION.kappa(t)))
    assert torch.isinf(gamma(torch.from_numpy(t), 40)).tolist() == [False] * 4 + [True]


def test_gamma():
    assert gamma(0.0, 40) == 1
    assert gamma(0.5, 40) == 41
    assert gamma(1.0, 40) == np.inf
    assert gamma(np.array([0.5, 1.0]), 2).tolist() == [3, np.inf]
