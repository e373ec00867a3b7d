import csv
import html
import io
import re

import pandas as pd
import pytest

from benchmarks.paper.export import export_files, tabulate
from benchmarks.paper.grids import make_sections
from benchmarks.paper.page import PaperPage, render
from benchmarks.paper.printed import TITLES

ZINC = "zinc_results_valid-my_zinc"
THREE = [[50.0, 52.0], [49.0, 51.0], [51.0, 55.0]]


@pytest.fixture
def runs(make_run):
    """A judged method, and the run of another data set."""
    qm9 = make_run({("mdlm", 1): THREE, ("udlm", 1): [[17.0, 18.0]] * 3}, methods=("mdlm", "udlm"))
    values = {("mdlm", 1): [[1234.5, -3.0]]}
    return [qm9, make_run(values, "my_zinc", source="zinc250k", scale="reduced", seeds=(0,))]


@pytest.fixture
def exported(runs):
    """Name -> text of all files."""
    return {name: text for section in make_sections(runs) for name, text in export_files(section).items()}


def test_each_table_has_its_files(exported):
    assert {f"{table}.{kind}" for table in TITLES for kind in ("tex", "csv")} <= set(exported)
    others = {name for name in exported if name.removesuffix(".tex").rpartition("-")[1]}
    assert others == {f"{name}.tex" for name in ("qm9_results_valid-qm9", "qm9_rect_validity-qm9", ZINC)}


def test_latex_is_well_formed(exported):
    for name, text in exported.items():
        if name.endswith(".csv"):
            continue
        assert re.findall(r"\\begin\{(\w+)", text).count("tabular") == text.count(r"\toprule")
        bare = re.sub(r"\\.", "", text)
        assert bare.count("{") == bare.count("}"), name
        assert bare.count("$") % 2 == 0, name
        for part in text.split(r"\begin{tabular}")[1:]:
            columns = len(re.match(r"\{(\w+)\}", part)[1])
            rows = [line for line in part.splitlines() if line.endswith(r"\\")]
            assert len(rows) > 1, name
            assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {columns - 1}, name
        assert not re.search(r"[^\x00-\x7f]", text), name


def test_latex_has_the_papers_layout_and_says_what_it_is(exported):
    lines = exported["qm9_results_valid.tex"].splitlines()
    assert r"NFE & 1 & 2 & 4 & 8 & 16 & 32 & 64 \\" in lines
    [row] = [line for line in lines if line.startswith("PairFlow+DCD")]
    assert row.startswith(r"PairFlow+DCD & $\mathbf{453.8} \pm 16.4$ & $\mathbf{685.8} \pm 16.7$")
    [row] = [line for line in exported["binary_mnist_results.tex"].splitlines() if line.startswith("MDLM")]
    assert row.startswith("MDLM & $204.64$ &")
    assert exported["cifar10_results.tex"].count(r"\begin{tabular}{lrrrrrrrrrrr}") == 2
    text = exported["qm9_results_valid-qm9.tex"]
    assert "measured: qm9, paper's scale." in text
    assert r"MDLM & $\mathbf{51.3} \pm 1.5$ & -- &" in text
    text = exported["zinc_results_valid-my_zinc.tex"]
    assert r"measured: my\_zinc, reduced scale." in text
    assert r"MDLM & $615.8 \pm 875.0$ & --" in text  # alone in its column: nothing is best


def test_latex_marks_no_pairing_time_as_best(exported):
    """The times stand beside numbers of valid molecules, of which the highest is the best."""
    lines = [line for line in exported["zinc250k_subset_validity.tex"].splitlines() if " & " in line]
    head, *times = [line.rpartition(" & ")[2] for line in lines]
    assert (head, times) == (r"pairing (min) \\", [rf"${text}$ \\" for text in (0, 0, 13, 6, 2.9, 1.5)])
    assert r"\mathbf{937.3}" in lines[1]  # of 64 steps, the most valid molecules


def test_csv_has_the_digits_of_the_page(exported):
    rows = list(csv.DictReader(io.StringIO(exported["qm9_results_valid.csv"])))
    assert len(rows) == 56
    [row] = [row for row in rows if (row["method"], row["nfe"]) == ("mdlm", "1")]
    columns = ("printed", "printed_std", "measured", "measured_std", "difference", "status", "experiment")
    assert [row[name] for name in columns] == ["51.4", "5.7", "51.3", "1.5", "-0.1", "agrees", "qm9"]
    [row] = [row for row in rows if (row["method"], row["nfe"]) == ("mdlm", "2")]
    assert (row["measured"], row["status"], row["reason"]) == ("", "not run", "")
    [row] = [row for row in rows if (row["method"], row["nfe"]) == ("random", "1")]
    assert (row["printed"], row["experiment"]) == ("47.1", "")


def test_page_csv_and_parquet_agree_to_the_last_digit(runs, exported, make_experiment, tmp_path):
    """Every number of the CSV files stands in the page's tables; the Parquet has the same rows."""
    found = make_sections(runs)
    tabulate(found).to_parquet(tmp_path / "values.parquet")
    table = pd.read_parquet(tmp_path / "values.parquet")
    texts = [exported[f"{each.table}.csv"] for each in found]
    kinds = table.dtypes.to_dict()
    frames = [pd.read_csv(io.StringIO(text), dtype=kinds) for text in texts]
    pd.testing.assert_frame_equal(table, pd.concat(frames, ignore_index=True), check_exact=True)
    assert len(table) == 1284

    rows = [row for text in texts for row in csv.DictReader(io.StringIO(text))]
    page = render(PaperPage({"qm9": make_experiment()}, {run.name: run for run in runs}))
    shown = {name: text_of(page, name) for name in TITLES}
    for row in rows:
        parts = {"printed": ["", "± "], "measured": ["", "± ", "", "of "]}
        for first, marks in parts.items():
            names = [first, f"{first}_std", "difference", "margin"][: len(marks)]
            words = [f"{mark}{row[name]}" for mark, name in zip(marks, names, strict=True) if row[name]]
            assert " ".join(words) in shown[row["table"]], row


def text_of(page: str, table: str) -> str:
    """The words of one table's part of the page, its numbers written as in the CSV."""
    part = page.partition(f'id="{table}"')[2].partition('<ul class="downloads"')[0]
    words = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", part)).split())
    return re.sub(r"(?<=\d),(?=\d{3})", "", words).replace("−", "-")


def test_latex_compiles(exported, compile_latex):
    tables = "\n".join(text for name, text in exported.items() if name.endswith(".tex"))
    compile_latex(tables)
