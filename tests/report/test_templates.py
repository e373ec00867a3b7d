"""What pages say of each metric is its entry in docs/metrics.md."""

import re

import pytest

from pairflow.kinds import KINDS, load_kind
from pairflow.report.templates import FACTS, read_entries

BETTER = {"highest": "higher", "lowest": "lower"}


def test_every_metric_has_an_entry_that_agrees_with_its_tables_on_what_is_better():
    entries = read_entries()
    metrics = {name: metric for kind in KINDS for name, metric in load_kind(kind).settings.metrics.items()}
    assert [name for name in metrics if name not in entries] == []
    for name, metric in metrics.items():
        assert entries[name].facts["Better"].startswith(BETTER.get(metric.best, ("neither", "lower"))), name


def test_an_entry_is_its_words_as_html():
    entry = read_entries()["novel"]
    assert read_entries()["unique"] is entry
    assert entry.names == ("unique", "novel")
    assert list(entry.facts) == [*FACTS]
    assert entry.facts["Source"].endswith("(<code>pairflow/kinds/molecules/measures/counts.py</code>)")


@pytest.mark.parametrize("page", ["molecule_page", "image_page"])
def test_every_question_mark_has_one_entry_on_the_page(page, request):
    html = request.getfixturevalue(page)
    asked = set(re.findall(r'popovertarget="(about-\w+)"', html))
    assert len(asked) > 6
    assert sorted(re.findall(r'id="(about-\w+)"', html)) == sorted(asked)
