"""An empty working directory; token rows, a model trained on them for a moment, its pairs, a distillation."""

import re

import numpy as np
import pytest

NETWORK = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16}
RUN = {"batch_size": 8, "iterations": 4, "learning_rate": 1e-2, "validate_every": 2}
SHARED = {"threads": 1, "quiet": True}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The working directory, which is empty when a test begins."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def token_rows(token_file, here):
    """The working directory: train.parquet and validation.parquet, of 8 tokens of 6 symbols."""
    rng = np.random.default_rng(0)
    token_file("train.parquet", rng.integers(0, 6, (60, 8)), 6)
    token_file("validation.parquet", rng.integers(0, 6, (20, 8)), 6)
    return here


@pytest.fixture
def train(step, model_files):
    """Train a method in the working directory, into the folder of its name or another one."""

    def run(method, data="train.parquet", network=NETWORK, files=(), noise=None, folder=None, **training):
        training = {name: value for name, value in (RUN | training).items() if value is not None}
        settings = {"method": method, "network": network, "training": training}
        settings |= {"noise": noise} if noise else {}
        rows = {"data": data, "validation": "validation.parquet"} | dict(files)
        return step("train", settings=settings, **rows, **model_files(folder or method), **SHARED)

    return run


@pytest.fixture
def udlm(token_rows, train):
    """The working directory with a trained model in the folder udlm."""
    assert train("udlm").exit_code == 0
    return token_rows


@pytest.fixture
def teach(step):
    """Draw the pairs of a ReDi method."""

    def run(method="udlm+redi", out="pairs.parquet", model=None, **settings):
        settings = {"method": method, "count": 30, "steps": 3, **settings}
        return step("teach", settings=settings, model=model or method.rpartition("+")[0], out=out, quiet=True)

    return run


@pytest.fixture
def distill(step, model_files):
    """Distil by a method, into the folder `name` or that of the method's name."""

    def run(method, how, data, parent=None, name=None):
        settings = {"method": method, "distillation": RUN | how}
        files = {"parent": parent or method.rpartition("+")[0], "data": data, **model_files(name or method)}
        files |= {"validation": "validation.parquet"}
        return step("distill", settings=settings, **files, **SHARED)

    return run


@pytest.fixture(scope="session")
def require_own_words():
    """The page of an experiment on plain rows has no word that belongs to molecules or images."""

    def require(page: str) -> None:
        text = re.sub(r"<script.*?</script>", "", page.partition("<body>")[2], flags=re.DOTALL)
        for word in ("olecule", "SMILES", "RDKit", "pixel", "image"):
            assert word not in text

    return require
