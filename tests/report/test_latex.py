import pytest

from pairflow.report.latex import escape, table, value


def test_text_comes_out_as_it_is():
    assert escape(r"50 % & a_b #1 {x} \y ~ ^ × –") == (
        r"50 \% \& a\_b \#1 \{x\} \textbackslash{}y \textasciitilde{} \textasciicircum{} $\times$ --"
    )
    assert escape("<a|b>") == r"\textless{}a\textbar{}b\textgreater{}"
    assert escape('2 ± 1 × "3"') == r"2 $\pm$ 1 $\times$ ''3''"
    assert escape("one\ntwo\tthree") == "one two three"
    assert escape("[x] *y") == "{[}x] {*}y"  # no argument of the line break before


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (("",), "--"),
        (("−1,234.5",), "$-1{,}234.5$"),
        (("352.0", "1.0"), r"$352.0 \pm 1.0$"),
        (("352.0", "1.0", True), r"$\mathbf{352.0} \pm 1.0$"),
    ],
)
def test_numbers(given, text):
    assert value(*given) == text


def test_a_table_is_that_of_the_paper():
    lines = table("50 %", ["NFE", "1", "2"], [["a", "$1$", "--"]]).splitlines()
    assert lines == [
        *(r"\begin{table}", r"\centering", r"\caption{50 \%.}", r"\begin{tabular}{lrr}", r"\toprule"),
        *(r"NFE & 1 & 2 \\", r"\midrule", r"a & $1$ & -- \\", r"\bottomrule", r"\end{tabular}"),
        r"\end{table}",
    ]
    assert r"\begin{tabular}{llr}" in table("", ["a", "b", "c"], [], "llr")
