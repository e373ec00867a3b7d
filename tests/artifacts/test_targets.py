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
        require_own_folder("--figures", Path(folder), FIGURES, [Path("page.html")])
    assert str(raised.value).startswith(f"--figures {folder}: {text}")
    for free in ("figures", "absent"):
        require_own_folder("--figures", Path(free), FIGURES, [Path("page.html")])


@pytest.mark.parametrize(("name", "option"), [("report", "figures"), ("paper", "tables")])
@pytest.mark.parametrize(
    ("folder", "text"),
    [
        ("mine", "mine: would be replaced, but holds thesis.doc"),
        ("new", "new: would be replaced with new/page.html in it; name a folder of its own"),
    ],
)
def test_report_and_paper_leave_what_is_not_theirs(
    step, refused, miniature, tmp_path, monkeypatch, name, option, folder, text
):
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("mine/thesis.doc").write_text("mine")
    files = {"report": ("root", "metrics", "timings"), "paper": ("results", "values")}[name]
    settings = miniature() if name == "report" else {}
    options = {**{key: key for key in files}, "out": "new/page.html", option: folder}
    refused(step(name, settings=settings, **options), name, f"--{option} {text}")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert Path("mine/thesis.doc").read_text() == "mine"
