"""A folder is replaced only if it holds nothing else than what the command writes there."""

from pathlib import Path

import pytest

from pairflow.artifacts.targets import require_own_folder
from pairflow.errors import InputError

FIGURES = (".pdf", ".svg", ".png")
OTHER = "would be replaced, but holds {}, which is not one of its files (.pdf, .svg, .png)"


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        ("home", OTHER.format("thesis.tex")),
        ("experiment", OTHER.format("data")),
        ("link", "a link, or the working directory; name a folder of its own"),
        (".", "a link, or the working directory; name a folder of its own"),
    ],
)
def test_a_folder_of_other_files_stays(tmp_path, monkeypatch, folder, text):
    monkeypatch.chdir(tmp_path)
    for name in ("home/thesis.tex", "experiment/data/train.parquet", "figures/main.pdf"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    Path("link").symlink_to("home")
    with pytest.raises(InputError) as raised:
        require_own_folder("--figures", Path(folder), FIGURES)
    assert str(raised.value).startswith(f"--figures {folder}: {text}")
    for free in ("figures", "absent"):
        require_own_folder("--figures", Path(free), FIGURES)


def test_paper_leaves_a_folder_of_other_files_as_it_is(step, refused, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.doc").write_text("mine")
    files = {name: tmp_path / name for name in ("results", "values", "out")}
    refused(
        step("paper", **files, tables=tmp_path / "mine"), "paper", "would be replaced, but holds thesis.doc"
    )
    assert (tmp_path / "mine/thesis.doc").read_text() == "mine"
