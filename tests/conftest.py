"""Shared by all tests: where the real data lie, and a tiny data set of token rows on disk."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pairflow.artifacts import Metadata, atomic, token_column, write_table

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets; in CI it must be there."""
    folder = os.environ.get("PAIRFLOW_DATA_DIR")
    if not folder:
        if os.environ.get("CI"):
            pytest.fail("CI runs the tests on real data: set PAIRFLOW_DATA_DIR")
        pytest.skip("PAIRFLOW_DATA_DIR is not set: no real data here")
    return Path(folder)


@pytest.fixture
def token_file(tmp_path):
    """Write token rows (M, N) as a step's output; returns its path."""

    def write(
        name: str, tokens: np.ndarray, vocabulary_size: int, vocabulary: str = "v", padding: int | None = None
    ):
        path = tmp_path / name
        made = Metadata(
            kind="tokens",
            length=tokens.shape[1],
            vocabulary_size=vocabulary_size,
            vocabulary=vocabulary,
            padding=padding,
        )
        with atomic(path) as [temporary]:
            write_table(temporary, pa.table({"tokens": token_column(tokens, vocabulary_size)}), made)
        return path

    return write


@pytest.fixture
def pairflow_command():
    """Run `python -m pairflow.steps.<step>` or `pairflow` for real; returns the finished process."""

    def run(step: str, *arguments: object, **options):
        command = [sys.executable, "-m", f"pairflow.steps.{step}", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)

    return run
