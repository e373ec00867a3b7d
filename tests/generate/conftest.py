import pytest

import pairflow


@pytest.fixture(scope="package")
def digits():
    return pairflow.load("digits", device="cpu")
