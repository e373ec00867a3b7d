"""Tables from metric rows: means, deviations, what is marked, and the metric that leads."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pages import METRICS, trial_rows

from pairflow.report.grid import Cell, Grid, describe_scope


def table_of(frame: pd.DataFrame, methods: list[str], metric: str = "valid") -> Grid:
    """The table of one metric; the seeds are those of all rows."""
    seeds = frame.dropna(subset="value").seed.nunique()
    own = frame[frame.metric == metric]
    return Grid("main", metric, METRICS[metric], own, methods=methods, all_seeds=seeds)


def table(values: dict[tuple[str, int], list[float]], methods: list[str]) -> Grid:
    return table_of(trial_rows(values), methods)


def test_mean_and_standard_deviation():
    result = table({("a", 1): [1.0, 2.0, 6.0], ("b", 1): [4.0, 4.0, 4.0]}, ["a", "b"])
    [cell] = result.rows["a"]
    assert (cell.mean, cell.std, cell.count) == (3.0, pytest.approx(np.sqrt(7)), 3)
    assert (cell.text, cell.spread, result.rows["b"][0].spread) == ("3.0", "± 2.6", "± 0.0")


def test_rows_follow_the_methods_and_columns_the_steps():
    cells = [("b", 32), ("b", 4), ("a", 4), ("a", 32)]
    result = table({cell: [1.0] for cell in cells}, ["b", "a", "absent"])
    assert (list(result.rows), result.columns) == (["b", "a"], [4, 32])
    nothing = table({("a", 1): [1.0]}, [])
    assert (nothing.rows, nothing.count) == ({}, 0)


def test_the_highest_mean_of_a_column_is_best_unless_it_is_the_only_one():
    values = {("a", 1): [3.0], ("b", 1): [2.0], ("a", 2): [1.0], ("b", 2): [2.0], ("a", 4): [3.0]}
    values |= {("a", 8): [3.01], ("b", 8): [3.04]}  # these print alike: a tie
    best = {method: [cell.best for cell in row] for method, row in table(values, ["a", "b"]).rows.items()}
    assert best == {"a": [True, False, False, True], "b": [False, True, False, True]}


def marked(*columns: tuple[list[float], ...]) -> list[str]:
    """The marked methods of a table with one column: the values of `a`, `b`, `c` for each seed."""
    by_seed = zip(*columns, strict=True)
    frame = seeds(*({(name, 1): [value] for name, value in zip("abc", own, strict=True)} for own in by_seed))
    return [method for method, [cell] in table_of(frame, ["a", "b", "c"]).rows.items() if cell.best]


BEST = [50.0, 50.0, 50.0]
CLOSE, WIDE = [49.0, 48.9, 49.1], [49.5, 41.0, 48.0]  # less by 1.0, t = 17; by 3.8, t = 1.5


def test_nothing_is_marked_below_a_value_that_is_worse_by_test():
    assert marked(BEST, WIDE, [40.0, 40.0, 40.1]) == ["a", "b"]
    assert marked(BEST, CLOSE, [40.0, 40.0, 40.1]) == ["a"]
    assert marked(BEST, CLOSE, WIDE) == ["a"]  # the test of `c` by itself would leave it open
    assert marked(BEST, WIDE, WIDE[::-1]) == ["a", "b", "c"]


def test_of_two_seeds_only_the_best_is_marked_and_what_prints_alike():
    assert marked([50.0, 50.0], [49.5, 41.0], [40.0, 40.1]) == ["a"]
    assert marked([50.0, 50.0], [50.01, 50.01], [40.0, 40.1]) == ["a", "b"]


def test_missing_cells_are_dashes_nan_does_not_count_and_a_single_trial_has_no_deviation():
    result = table({("a", 1): [3.0], ("a", 2): [5.0], ("b", 1): [2.0]}, ["a", "b"])
    missing = result.rows["b"][1]
    assert (missing.text, missing.spread, missing.best) == ("–", "", False)
    assert not result.rows["a"][1].best
    result = table({("a", 1): [1.0, np.nan, 3.0], ("b", 1): [np.nan, np.nan, np.nan]}, ["a", "b"])
    assert (result.rows["a"][0].mean, result.rows["a"][0].count) == (2.0, 2)
    assert result.rows["b"][0].text == "–"
    assert result.count == 2
    cell = table({("a", 1): [1234.5]}, ["a"]).rows["a"][0]
    assert (cell.text, cell.spread) == ("1,234.5", "")


def seeds(*values: dict[tuple[str, int], list[float]]) -> pd.DataFrame:
    """Rows of seed 0, 1, ..."""
    return pd.concat([trial_rows(each, seed=seed) for seed, each in enumerate(values)])


def cells(frame: pd.DataFrame, metric: str = "valid") -> dict[str, list[Cell]]:
    return table_of(frame, ["a", "b"], metric).rows


def test_deviations_between_seeds_and_between_trials_are_told_apart():
    """Means 2, 6, 10 of the seeds deviate by 4; trials of each seed by 1, 2, 3: the root of 14/3 pooled."""
    frame = seeds({("a", 1): [1, 2, 3]}, {("a", 1): [4, 6, 8]}, {("a", 1): [7, 10, 13]})
    [cell] = cells(frame)["a"]
    assert (cell.mean, cell.std, cell.count, cell.seeds) == (6.0, 4.0, 9, 3)
    assert cell.trials == pytest.approx(np.sqrt(14 / 3))
    assert (cell.text, cell.spread, cell.trial_spread) == ("6.0", "± 4.0", "± 2.2")
    assert describe_scope(frame) == "1,024 samples × 3 trials × 3 seeds"


def test_a_seed_that_misses_or_is_nan_is_named_and_gives_no_deviation_between_seeds():
    frame = seeds({("a", 1): [1, 3], ("a", 2): [4, 6]}, {("a", 1): [5, 7]})
    found = table_of(frame, ["a"])
    both, one = found.rows["a"]
    assert (both.spread, found.missing(both)) == ("± 2.8", "")
    assert (one.mean, one.spread, one.trial_spread, found.missing(one)) == (5.0, "", "± 1.4", "1 of 2 seeds")
    frame = seeds({("a", 1): [1, 3], ("b", 1): [1, 1]}, {("a", 1): [np.nan, np.nan], ("b", 1): [2, 2]})
    found = table_of(frame, ["a", "b"])
    [cell] = found.rows["a"]
    assert (cell.mean, cell.spread, cell.count, found.missing(cell)) == (2.0, "", 2, "1 of 2 seeds")


def test_seeds_are_those_of_the_evaluation_whatever_the_metric():
    """Of `novel` seed 1 has nothing: its deviation between trials does not stand for one between seeds."""
    novel = trial_rows({("a", 1): [1, 3]}, metric="novel")
    frame = pd.concat([seeds({("a", 1): [1, 3]}, {("a", 1): [5, 7]}), novel])
    assert [cells(frame, metric)["a"][0].spread for metric in ("valid", "novel")] == ["± 2.8", ""]


def test_of_molecules_the_valid_ones_of_the_evaluation_main_lead(make):
    contents = make()
    metrics = contents.metrics
    other = metrics.assign(evaluation="check", value=2 * metrics.value)
    leading = replace(contents, metrics=pd.concat([other, metrics])).leading
    assert (leading.evaluation, leading.metric, leading.reference) == ("main", "valid", "")
    assert leading.means["pairflow", 32] == pytest.approx(662)
    assert replace(contents, metrics=metrics[metrics.metric == "novel"]).leading is None
