import base64
import csv
import io
import re
import statistics
from html import unescape

import numpy as np
import pandas as pd
import pytest
from pages import METRICS, Document, trial_rows

from pairflow.artifacts import from_cell
from pairflow.report.downloads import Entry, Part, Sheet, latex_cell, latex_escape, latex_table
from pairflow.report.experiment.sheets import correlation_sheet, metric_sheet
from pairflow.report.grid import Grid

STEPS = [2**power for power in range(11)]
NAMES = [
    *("<script>alert(1)</script>", "a&b_c%d", "x|y", 'say "hi", twice', "two\nlines", "a" * 60),
    *("[x]", "*y*", r"back\slash$5#~^{}", "`code`", "=1+1", "~~z~~"),
]


@pytest.fixture
def sheet(make):
    """The sheet of all metrics among some rows, or of `valid` with these values."""

    def build(values: pd.DataFrame | dict[tuple[str, int], list[float]], **settings: str) -> Sheet:
        rows = trial_rows(values) if isinstance(values, dict) else values
        contents = make(settings={"methods": list(dict.fromkeys(rows.method)), **settings}, metrics=rows)
        shown = [
            Grid("main", metric, METRICS[metric], own, methods=contents.methods)
            for metric, own in rows.groupby("metric", sort=False)
        ]
        return metric_sheet(contents, shown, "1,024 samples × 3 trials × 1 seed", "Valid")

    return build


def texts(sheet: Sheet) -> tuple[str, ...]:
    """CSV, LaTeX."""
    return tuple(file.text for file in sheet.files)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_has_every_digit_of_the_metrics(sheet, tmp_path):
    random = np.random.default_rng(0)
    values = {(name, nfe): random.normal(300, 99, 7).tolist() for name in ("a", "b") for nfe in STEPS}
    thirds = {key: [value / 3 for value in trials] for key, trials in values.items()}
    rows = pd.concat([trial_rows(values), trial_rows(thirds, "novel")])
    rows.to_parquet(tmp_path / "metrics.parquet")
    stored = pd.read_parquet(tmp_path / "metrics.parquet")
    found = rows_of(texts(sheet(stored))[0])
    expected = stored.groupby(["metric", "method", "nfe"])["value"].agg(["mean", "std", "count"])
    assert len(found) == len(expected) == 2 * 2 * 11
    for row in found:
        key = (row["metric"], row["method"], int(row["nfe"]))
        assert [float(row[name]) for name in expected] == pytest.approx(expected.loc[key].tolist(), rel=1e-14)
        trials = values[key[1:]]
        scale = {"valid": 1, "novel": 3}[row["metric"]]
        assert float(row["std"]) * scale == pytest.approx(statistics.stdev(trials), rel=1e-12)
        assert float(row["mean"]) * scale == pytest.approx(statistics.fmean(trials), rel=1e-12)


def test_several_seeds_keep_their_deviations_apart(sheet):
    rows = trial_rows({("a", 1): [1.0, 3.0], ("b", 1): [5.0, 5.0]})
    rows = pd.concat([rows, rows[rows.method == "a"].assign(seed=1, value=rows.value + 10)])
    text, tex = texts(sheet(rows))
    row = rows_of(text)[0]
    assert [row[name] for name in ("mean", "count", "seeds")] == ["7.0", "4", "2"]
    assert float(row["std"]) == pytest.approx(50**0.5)
    assert float(row["trial_std"]) == pytest.approx(2**0.5)
    assert {r"a & $\mathbf{7.0} \pm 7.1$ \\", r"b & $5.0$ (1 of 2 seeds) \\"} <= {*tex.splitlines()}


def test_a_missing_value_is_empty_and_nan_does_not_count(sheet):
    of_a = {("a", 1): [1.0, np.nan, 4.0], ("a", 2): [np.nan] * 3}
    text, tex = texts(sheet(of_a | {("b", 1): [5.0] * 3, ("b", 2): [0.5]}))
    rows = {(row["method"], row["nfe"]): row for row in rows_of(text)}
    assert [rows["a", "1"][name] for name in ("mean", "std", "count")] == ["2.5", "2.1213203435596424", "2"]
    assert [rows["a", "2"][name] for name in ("mean", "std", "count")] == ["", "", "0"]
    assert [rows["b", "2"][name] for name in ("mean", "std", "count")] == ["0.5", "", "1"]
    lines = {r"a & $2.5 \pm 2.1$ (n = 2) & -- \\", r"b & $\mathbf{5.0} \pm 0.0$ & $0.5$ (n = 1) \\"}
    assert lines <= {*tex.splitlines()}  # too few of `a` for a test


@pytest.mark.parametrize(("scale", "said"), [("reduced", "reduced scale"), ("paper", "paper's scale")])
def test_a_file_says_where_its_numbers_are_from(sheet, scale, said):
    _, tex = texts(sheet({("a", 1): [3.0]}, scale=scale))
    caption = f"valid; measured: demo, evaluation main, {said}; 1,024 samples"
    assert f"{caption} $\\times$ 3 trials $\\times$ 1 seed." in tex


def test_names_come_back_from_csv_and_are_one_cell_of_latex(sheet):
    text, tex = texts(sheet({(name, 1): [float(i)] for i, name in enumerate(NAMES)}))
    assert [from_cell(row["method"]) for row in rows_of(text)] == NAMES
    assert [float(row["mean"]) for row in rows_of(text)] == [*range(len(NAMES))]
    rows = [line for line in tex.splitlines() if line.endswith(r"\\")]
    assert len(rows) == len(NAMES) + 1
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {1}
    assert not any(row.startswith(("[", "*")) for row in rows)


def test_image_tables_name_reference_extractor_and_real_images(image_page):
    found = downloads(image_page)
    rows = rows_of(found["demo-main-quality.csv"])
    columns = ["evaluation", "metric", "reference", "extractor", "method", "nfe"]
    assert list(rows[0]) == [*columns, "calls", "mean", "std", "count"]
    first = "main fd train classifier-1a2b3c4d udlm 1 2 84.0  1"
    assert list(rows[0].values()) == first.split(" ")
    [real] = [row for row in rows if row["method"] == "data" and row["metric"] == "fd"]
    assert [real[name] for name in ("nfe", "mean", "std", "count")] == ["", "4.8", "", "1"]
    assert r"real images & $4.8$ & $4.8$ & $4.8$ \\" in found["demo-main-quality.tex"]


def test_total_correlation_and_its_ceiling(make):
    contents = make()
    found = {"rows": {"udlm": (31.869, 0.0173)}, "ceiling": 32.472, "sources": 20_000}
    [text] = texts(correlation_sheet(contents, found))
    assert text == "method,total_correlation,total_correlation_se\nudlm,31.869,0.0173\ndata,32.472,\n"


def test_costs_are_there_in_exact_seconds(molecule_page):
    found = downloads(molecule_page)
    rows = rows_of(found["demo-training-cost.csv"])
    assert rows[0]["method"] == "udlm"
    assert (rows[0]["seconds"], rows[0]["samples_generated"], rows[0]["share"]) == ("48.0", "", "1.0")
    steps = {row["step"] for row in rows_of(found["demo-cost.csv"])}
    assert steps == {"preprocess", "pair", "train", "sample"}


def test_each_table_of_the_page_has_its_files(molecule_page):
    """Tables of costs and of the total correlation are only CSV."""
    tables = [tag for tag, _ in Document(molecule_page).tags].count("table")
    assert tables == 6
    assert molecule_page.count(">CSV</a>") == tables
    assert molecule_page.count(">CSV</a> · <a ") == tables - 3


def test_latex_compiles(sheet, molecule_page, image_page, compile_latex):
    sheets = [sheet({(name, nfe): [1234.5, 2.0] for name in NAMES for nfe in STEPS}).files[1].text]
    for each in (molecule_page, image_page):
        sheets += [text for name, text in downloads(each).items() if name.endswith(".tex")]
    compile_latex("".join(sheets))


def downloads(page: str) -> dict[str, str]:
    """Name -> text of the files that a page's links hold."""
    links = re.findall(r'<a download="([^"]*)" href="data:[^,"]*;charset=utf-8;base64,([^"]*)"', page)
    found = {name: base64.b64decode(unescape(data)).decode() for name, data in links}
    assert len(found) == len(links)
    return found


def test_text_comes_out_as_it_is():
    assert latex_escape("50 % & a_b #1 {x} × –") == r"50 \% \& a\_b \#1 \{x\} $\times$ --"
    assert latex_escape(r"\y ~ ^") == r"\textbackslash{}y \textasciitilde{} \textasciicircum{}"
    assert latex_cell(Entry("−1,234.5")) == "$-1{,}234.5$"
    assert latex_escape("<a|b>") == r"\textless{}a\textbar{}b\textgreater{}"
    assert latex_escape('2 ± 1 × "3"') == r"2 $\pm$ 1 $\times$ ''3''"
    assert latex_escape("one\ntwo\tthree") == "one two three"
    assert latex_escape("[x] *y") == "{[}x] {*}y"  # no argument of the line break before


def test_a_table_is_that_of_the_paper():
    lines = latex_table(Part("50 %", ["NFE", "1", "2"], [["a", Entry("1"), Entry("")]])).splitlines()
    assert lines == [
        *(r"\begin{table}", r"\centering", r"\caption{50 \%.}", r"\begin{tabular}{lrr}", r"\toprule"),
        *(r"NFE & 1 & 2 \\", r"\midrule", r"a & $1$ & -- \\", r"\bottomrule", r"\end{tabular}"),
        r"\end{table}",
    ]
