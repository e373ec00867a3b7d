"""What pages say of each metric is in its `Metric`, and in docs/metrics.md."""

import re

import pytest
from pages import METRICS

from pairflow.metrics.metric import Metric, list_entries
from pairflow.metrics.shared import SHARED
from pairflow.report.templates import make_environment

BETTER = {"highest": "higher", "lowest": "lower"}


def test_every_metric_has_a_description_and_facts_that_agree_on_what_is_better():
    for name, metric in {**SHARED, **METRICS}.items():
        assert metric.description, name
        assert metric.facts["Better"].startswith(BETTER.get(metric.best, ("neither", "lower"))), name


def test_metrics_with_the_same_description_have_one_entry_and_one_without_has_none():
    pairs = Metric("a", description="Both."), Metric("b", "lowest", description="Both.")
    entries = list_entries({"first": pairs[0], "bare": Metric("c"), "second": pairs[1]})
    assert entries == [(["first", "second"], pairs[0])]
    assert [pair.facts for pair in pairs] == [{"Better": "neither"}, {"Better": "lower"}]


def test_a_metric_of_your_own_is_explained_on_the_page_by_its_texts_as_html():
    own = Metric("own", "highest", description="*Mine*, a < b.", formula="`x` of [noise](method.md#noise)")
    environment = make_environment(metrics={"own": own, "bare": Metric("bare")})
    macros = environment.get_template("macros.html").module
    page = f"{macros.about('own')}{macros.about('bare')}{macros.glossary()}"
    assert re.findall(r'popovertarget="about-(\w+)"', page) == ["own"]
    assert "<p><em>Mine</em>, a &lt; b.</p>" in page
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))
    assert facts == {"Formula": "<code>x</code> of noise", "Better": "higher"}


@pytest.mark.parametrize("page", ["molecule_page", "image_page"])
def test_every_question_mark_has_one_entry_on_the_page(page, request):
    html = request.getfixturevalue(page)
    asked = set(re.findall(r'popovertarget="(about-\w+)"', html))
    assert len(asked) > 6
    assert sorted(re.findall(r'id="(about-\w+)"', html)) == sorted(asked)
