"""The head of the page: how good the methods are against real data, and what makes them unusable."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from pages import Document, metric_rows

from pairflow.metrics.metric import Metric
from pairflow.report.experiment.page import render
from pairflow.report.experiment.summary import write_summary
from pairflow.report.findings import Headline, MethodLine, measure_grid
from pairflow.report.grid import Grid
from pairflow.report.headline import find_cautions, make_headline

pytestmark = pytest.mark.usefixtures("empty_charts")
OTHER = {"data": {"source": "my_library.smi", "length": 16}}  # data that are not complete


def counted(rows: pd.DataFrame, **factors: float) -> pd.DataFrame:
    """Metric rows with some metrics scaled, in whole molecules that vary over the trials."""
    value = rows.value * rows.metric.map(factors).fillna(1.0)
    return rows.assign(value=value.round())


def cautions(contents) -> dict[str, tuple[str, bool]]:
    found = find_cautions(make_headline(contents), contents)
    return {caution.title: (caution.text, caution.severe) for caution in found}


def test_every_method_stands_at_its_best_steps_beside_real_data(make):
    rows = metric_rows({"udlm": (100, 512, 300), "pairflow": (600, 700, 768)})
    contents = make(metrics=counted(rows, unique_strict=0.5, novel_strict=0.125))
    headline = make_headline(contents)
    found = [(line.method, line.nfe, line.calls) for line in headline.lines]
    assert found == [("udlm", 4, 5), ("pairflow", 32, 33)]
    # The pairing takes 12 s, each training 48 s.
    assert [line.seconds for line in headline.lines] == [48.0, 60.0]
    measures = headline.measures
    shares = {key: [measures[key].text(line) for line in headline.lines] for key in measures}
    assert shares["valid"] == ["50.0 %", "75.0 %"]
    assert shares["unique"] == ["50.0 %", "50.0 %"]
    assert shares["few"] == ["9.77 %", "58.6 %"]  # 100 and 600 of 1,024
    headings = ["valid", "unique", "off the rules", "valid at 1 step"]
    assert [measure.heading for measure in headline.measures.values()] == headings
    assert [measure.real for measure in headline.measures.values()] == ["100.0 %", "–", "0.00 %", "100.0 %"]
    assert headline.sentence.startswith("75.0 % of the samples of the best method, pairflow at 32 sampling")
    for said in ("25.0 % break the rules", "the best method and udlm at 4 sampling steps was not tested"):
        assert said in headline.sentence


def test_a_page_of_one_method_has_no_contest(make):
    for names in (["udlm"], ["udlm", "pairflow"]):
        contents = make(settings={"methods": names}, metrics=metric_rows(dict.fromkeys(names, (1, 2, 3))))
        words = Document(render(contents)).words()
        for said in ("the best method", "Comparison of methods", "Each method at"):
            assert (said in words) == (len(names) == 2)


@pytest.mark.parametrize(("most", "hopeless"), [(600, False), (31, True)])
def test_plausible_molecules_come_first_where_they_were_measured(make, most, hopeless):
    """Valid molecules that are hardly ever plausible are no usable model."""
    rows = metric_rows({"udlm": (100, 512, 300), "pairflow": (600, 700, 768)})
    plausible = rows[rows.metric == "valid"].assign(metric="plausible", value=lambda own: most - own.nfe)
    contents = make(metrics=pd.concat([rows, plausible], ignore_index=True))
    headline = make_headline(contents)
    assert next(iter(headline.measures)) == "plausible"
    assert ([line.nfe for line in headline.lines], headline.hopeless) == ([1, 1], hopeless)
    share = headline.measures["plausible"].text(headline.best)
    assert share == ("2.93 %" if hopeless else "58.5 %")  # 30 or 599 of 1,024
    assert f" {share} are plausible: " in headline.sentence


def test_without_a_greedy_tail_a_step_is_a_call_and_unknown_times_stay_unknown(make):
    main = {"main": {"nfe": (1, 4, 32), "trials": 3, "greedy_tail": False}}
    contents = make(settings={"evaluations": main}, timings=make().timings.iloc[:0])
    lines = make_headline(contents).lines
    assert [line.calls for line in lines] == [32, 32, 32]
    assert np.isnan([line.seconds for line in lines]).all()


def test_the_time_of_a_distilled_method_is_that_of_its_whole_lineage(many):
    seconds = {line.method: line.seconds for line in make_headline(many).lines}
    # 60 s for each training, for drawing each teacher's pairs, and for each distillation.
    known = {"udlm": 60, "udlm+dcd": 120, "udlm+redi": 180, "udlm+redi+redi": 300}
    assert seconds.items() >= known.items()


def test_the_headline_of_a_hopeless_model_says_so(make):
    """1 % of the samples of the best method are valid, ten times as many as of the other."""
    rows = metric_rows({"udlm": (1, 1, 1), "pairflow": (5, 8, 10)})
    contents = make(settings=OTHER, metrics=rows, sample_command="pairflow sample")
    text, severe = cautions(contents)["Not usable yet."]
    assert "are valid molecules: udlm (0.10 %) and pairflow (0.98 %). Train longer" in text
    assert severe
    words = Document(render(contents)).words()
    assert "pairflow sample" not in words
    assert words.index("0.98 %") < words.index("Not usable yet.") < words.index("Comparison of methods")
    assert " times" not in write_summary(contents)[0]


@pytest.mark.parametrize("leads_as", ["the number of rows on the circle", ""])
@pytest.mark.parametrize(("count", "hopeless"), [(40, True), (400, False)])
def test_a_number_that_leads_makes_any_kind_hopeless(leads_as, count, hopeless):
    """No name is known: under 5 % of 1,024 samples count by a metric by which models are chosen."""
    frame = metric_rows({"udlm": (count, count, count)}).assign(metric="on_circle")
    about = Metric("on the circle", "highest", leads_as, counted=True)
    measures = {"on_circle": measure_grid(Grid("main", "on_circle", about, frame))}
    line = MethodLine("udlm", 1, 1, 0.0)
    headline = Headline("main", [line], line, measures, 1024, "")
    assert headline.hopeless is (hopeless and bool(leads_as))
    assert measures["on_circle"].text(line) == (f"{count / 10.24:.3g} %" if leads_as else f"{count:.1f}")


@pytest.mark.parametrize(("gap", "equal"), [(0.5, True), (40.0, False)])
def test_a_lead_that_no_test_shows_is_said_to_be_none(make, gap, equal):
    """Differences of the trials deviate by 1.7; of `random` there is a single trial."""
    rows = metric_rows({"udlm": (100, 200, 800 - gap), "pairflow": (100, 200, 800), "random": (1, 2, 3)})
    noise = rows.trial.map({0: 1.0, 1: -2.0, 2: 1.0}).where(rows.method == "udlm", 0.0)
    rows = rows.assign(value=rows.value + noise)
    sentence = make_headline(make(metrics=rows[(rows.method != "random") | (rows.trial == 0)])).sentence
    assert (
        "The tests find no difference between the best method and udlm at 32 sampling steps." in sentence
    ) is equal
    assert " and random at 32 sampling steps was not tested" in sentence


def test_a_network_that_has_memorised_its_data_is_not_to_be_trained_longer(make):
    rows = metric_rows({"udlm": (1, 1, 1), "pairflow": (5, 8, 10)})
    logs = {"pairflow": log(0.19, [2.1, 2.06, 2.3, 2.55])}
    text, severe = cautions(make(settings=OTHER, metrics=rows, logs=logs))["Not usable yet."]
    assert severe
    assert "pairflow has memorised its training data (training loss 0.19, validation loss 2.55)" in text
    distilled = metric_rows({"udlm": (1, 1, 1), "udlm+dcd": (5, 8, 10)})
    logs = {"udlm": log(0.8, [1.0, 0.9, 0.9, 0.9]), "udlm+dcd": log(0.01, [1.0, 0.9, 0.9, 0.9])}
    methods = {**OTHER, "methods": ["udlm", "udlm+dcd"]}
    text, _ = cautions(make(settings=methods, metrics=distilled, logs=logs))["Not usable yet."]
    assert "memorised" not in text  # the loss of DCD is not the NELBO


def test_of_images_the_distance_stands_beside_that_of_real_images(make_images):
    headline = make_headline(make_images())
    best = "pairflow at 32 sampling steps, FD to the training images is 13.5; for real images it is 4.8."
    assert best in headline.sentence
    metrics = make_images().metrics
    bare = make_headline(make_images(metrics=metrics[metrics.method != "data"]))
    assert bare.measures["fd"].real == "–"


@pytest.mark.parametrize("complete", [True, False])
def test_what_is_not_in_a_complete_data_set_is_off_its_rules(make, complete):
    contents = make(settings={} if complete else OTHER)
    about = contents.experiment.data.list_metrics()["novel_strict"]
    assert (about.label, about.best) == (("off the rules", "lowest") if complete else ("novel", "highest"))


GOOD = {"udlm": (600, 700, 800), "pairflow": (700, 800, 900)}


@pytest.mark.parametrize(("unpaired", "warned"), [(513.0, True), (512.0, False)])
def test_own_pairs_without_a_tenth_of_the_training_rows(make, unpaired, warned):
    couplings = dict(make().couplings)
    couplings["pairs-mine"] = couplings["random"] | {"unpaired_rows": unpaired, "held_out_pairs": 20.0}
    rows = metric_rows(GOOD | {"pairs-mine": (600, 700, 800)})
    settings = {"methods": ["udlm", "pairflow", "pairs-mine"], "pairs": {"mine": "mine.parquet"}}
    contents = make(settings=settings, metrics=rows, couplings=couplings)
    assert ("Trained on other data." in cautions(contents)) == warned
    words = Document(render(contents)).words()
    assert f"Your own pairs, pairs-mine: {unpaired:.0f} of the 5,123 training rows have no pair" in words


def log(loss: float, validation: list[float]) -> pd.DataFrame:
    """A log with the validation loss at each quarter of the training."""
    iteration = np.arange(0, 1001, 10)
    at_quarter = dict(zip((250, 500, 750, 1000), validation, strict=True))
    measured = [at_quarter.get(i, np.nan) for i in iteration]
    return pd.DataFrame({"iteration": iteration, "loss": loss, "validation_nll": measured})


FALLING, RISING = [2.0, 1.5, 1.2, 1.1], [1.0, 0.9, 0.9, 1.0]


@pytest.mark.parametrize(
    ("method", "trained", "loss", "title", "text"),
    [
        ("udlm", log(1.0, FALLING), "nelbo", "Not trained to the end.", "udlm (8.33 %)"),
        ("pairflow", log(0.3, FALLING), "nelbo", "Not trained to the end.", "pairflow (8.33 %)"),
        ("udlm", log(0.3, RISING), "nelbo", "Over-fitted.", "udlm (30.0 %) of the validation loss"),
        ("udlm", log(0.3, RISING), "cross_entropy", None, ""),  # this loss is no bound
        ("pairflow", log(0.3, RISING), "nelbo", None, ""),  # two losses of different noise
        ("udlm", log(0.8, [1.0, 0.9, 0.9, 0.9]), "nelbo", None, ""),
        ("udlm", log(0.8, [np.nan] * 4), "nelbo", None, ""),
    ],
)
def test_trainings_that_end_too_early_or_too_late(make, method, trained, loss, title, text):
    training = {"batch_size": 256, "iterations": 1000, "learning_rate": 1e-3, "loss": loss}
    found = cautions(make(settings={"training": training}, metrics=metric_rows(GOOD), logs={method: trained}))
    assert [*found] == ([title] if title else [])
    assert text in "".join(words for words, _ in found.values())


def test_few_valid_molecules_and_many_copies(make):
    rows = metric_rows({"udlm": (60, 70, 80), "pairflow": (700, 800, 900)})
    contents = make(settings=OTHER, metrics=counted(rows, novel_strict=0.25), logs={})
    named = {
        "Not every method is usable.": "udlm (7.81 %)",
        "Mostly copies.": "udlm (75.0 %) and pairflow (75.0 %)",
        "Too few to judge.": "udlm (80)",
    }
    found = cautions(contents)
    assert [*found] == [*named]
    for (text, severe), part in zip(found.values(), named.values(), strict=True):
        assert part in text
        assert not severe


def test_images_that_are_copies(make_images):
    metrics = make_images().metrics
    copies = (metrics.metric == "nn_copies") & (metrics.method == "pairflow")
    contents = make_images(metrics=metrics.assign(value=metrics.value.mask(copies, 0.75)), logs={})
    [(title, (text, severe))] = cautions(contents).items()
    assert (title, "pairflow (75.0 %)" in text, severe) == ("Mostly copies.", True, True)


def test_without_metrics_there_is_no_headline(make):
    assert make_headline(dataclasses.replace(make(), metrics=make().metrics.iloc[:0])) is None
