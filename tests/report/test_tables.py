import numpy as np
import pandas as pd
import pytest

from pairflow.report import tables


def rows(values: dict[tuple[str, int], list[float]], metric: str = "valid", seed: int = 0) -> pd.DataFrame:
    found = [
        (method, nfe, trial, value)
        for (method, nfe), trials in values.items()
        for trial, value in enumerate(trials)
    ]
    frame = pd.DataFrame(found, columns=["method", "nfe", "trial", "value"])
    return frame.assign(metric=metric, seed=seed, evaluation="main", samples=1024)


def table(values: dict[tuple[str, int], list[float]], methods: list[str]) -> tables.Table:
    return tables.table(tables.summarise(rows(values)), "main", "valid", methods)


def test_mean_and_standard_deviation():
    result = table({("a", 1): [1.0, 2.0, 6.0], ("b", 1): [4.0, 4.0, 4.0]}, ["a", "b"])
    cell = result.rows["a"][0]
    assert (cell.mean, cell.count) == (3.0, 3)
    assert cell.std == pytest.approx(np.sqrt(7))
    assert (cell.text, cell.spread) == ("3.0", "± 2.6")
    assert result.rows["b"][0].spread == "± 0.0"


def test_rows_follow_the_methods_and_columns_the_steps():
    result = table(
        {("b", 32): [1.0], ("b", 4): [1.0], ("a", 4): [1.0], ("a", 32): [1.0]}, ["b", "a", "absent"]
    )
    assert list(result.rows) == ["b", "a"]
    assert result.columns == [4, 32]


def test_the_highest_mean_of_a_column_is_best():
    result = table({("a", 1): [3.0], ("b", 1): [2.0], ("a", 2): [1.0], ("b", 2): [2.0]}, ["a", "b"])
    assert [cell.best for cell in result.rows["a"]] == [True, False]
    assert [cell.best for cell in result.rows["b"]] == [False, True]


def test_means_that_print_alike_are_tied():
    result = table({("a", 1): [3.01], ("b", 1): [3.04], ("c", 1): [2.9]}, ["a", "b", "c"])
    assert [cells[0].best for cells in result.rows.values()] == [True, True, False]


def test_one_method_alone_is_not_the_best():
    assert not table({("a", 1): [3.0]}, ["a"]).rows["a"][0].best


def test_missing_cells_are_dashes_and_never_best():
    result = table({("a", 1): [3.0], ("a", 2): [5.0], ("b", 1): [2.0]}, ["a", "b"])
    missing = result.rows["b"][1]
    assert (missing.text, missing.spread, missing.best) == ("–", "", False)
    assert not result.rows["a"][1].best


def test_nan_does_not_count():
    result = table({("a", 1): [1.0, np.nan, 3.0], ("b", 1): [np.nan, np.nan, np.nan]}, ["a", "b"])
    assert (result.rows["a"][0].mean, result.rows["a"][0].count) == (2.0, 2)
    assert result.rows["b"][0].text == "–"
    assert result.count == 2


def test_a_single_trial_has_no_deviation():
    cell = table({("a", 1): [1234.5]}, ["a"]).rows["a"][0]
    assert (cell.text, cell.spread) == ("1,234.5", "")


def test_seeds_and_trials_are_pooled():
    both = pd.concat([rows({("a", 1): [1.0, 3.0]}), rows({("a", 1): [5.0, 7.0]}, seed=1)])
    summary = tables.summarise(both)
    assert summary[["mean", "count"]].values.tolist() == [[4.0, 4.0]]
    assert tables.scope(both, "main") == "1,024 samples × 2 trials × 2 seeds"


def test_no_rows_give_an_empty_table():
    result = table({("a", 1): [1.0]}, [])
    assert (result.rows, result.count) == ({}, 0)
