"""The metric that an experiment is judged by first, on its page and in the last line of `pairflow run`."""

import pandas as pd
import pytest

from pairflow.report.panels import leading_panel


def test_the_training_images_come_first_and_the_floor_beside_them(make_images):
    leading = leading_panel(make_images().metrics, make_images().experiment)
    assert (leading.metric, leading.reference, leading.floor.mean) == ("fd", "train", 4.8)
    assert leading.best() == ("pairflow", 32)
    assert leading.best("udlm") == ("udlm", 32)


def test_of_molecules_the_valid_ones_of_the_evaluation_main_lead(make):
    metrics = make().metrics
    other = metrics.assign(evaluation="check", value=2 * metrics.value)
    leading = leading_panel(pd.concat([other, metrics]), make().experiment)
    assert (leading.evaluation, leading.metric, leading.reference) == ("main", "valid", "")
    assert leading.means["pairflow", 32] == pytest.approx(662)
    assert leading_panel(metrics[metrics.metric == "novel"], make().experiment) is None
