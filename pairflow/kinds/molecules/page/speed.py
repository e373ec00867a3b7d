"""What a second of sampling gives."""

from dataclasses import dataclass

import pandas as pd

from pairflow.kinds.molecules.metrics import METRICS
from pairflow.kinds.molecules.page.charts import trade
from pairflow.report.contents import Contents
from pairflow.report.costs import RUN, sampling_times
from pairflow.report.drawing import Picture
from pairflow.report.grid import Grid

YIELDS = {  # counts of molecules -> the same per second
    "valid": "valid_per_second",
    "unique_strict": "unique_per_second",
    "novel_strict": "novel_per_second",
}


@dataclass(frozen=True)
class Speed:
    """Valid molecules against time: a chart, the tables of molecules per second, and the devices."""

    picture: Picture
    tables: list[Grid]
    devices: str


def sampling_yields(metrics: pd.DataFrame, timings: pd.DataFrame) -> pd.DataFrame:
    """Rows evaluation, method, nfe, seed, metric, value: molecules per second, for the metrics of `YIELDS`.

    Unique and novel ones are counted within each trial, by canonical SMILES, and added up over the trials.
    """
    counts = metrics[metrics.metric.isin(YIELDS)].groupby([*RUN, "metric"])["value"].sum().reset_index()
    both = counts.merge(sampling_times(timings), on=RUN)
    return both[RUN].assign(metric=both.metric.map(YIELDS), value=both.value / both.seconds)


def measure_speed(
    contents: Contents, evaluation: str, rows: pd.DataFrame, prefix: str, complete: bool
) -> Speed | None:
    """Molecules per second of the step `sample`, and its wall time per trial."""
    yields = sampling_yields(rows, contents.timings)
    if yields.empty:
        return None
    shown = [name for name in YIELDS.values() if name in set(yields.metric)]
    if complete:  # a novel molecule breaks the rules of the data, and is no yield
        shown = [name for name in shown if name != "novel_per_second"]
    seeds = yields.dropna(subset="value").seed.nunique()
    made = [
        contents.add_calls(
            Grid(evaluation, name, METRICS[name], yields[yields.metric == name], all_seeds=seeds)
        )
        for name in shown
    ]
    keys = ["method", "nfe", "seed"]
    valid = rows[rows.metric == "valid"].groupby(keys)["value"].agg(["mean", "count"]).reset_index()
    times = sampling_times(contents.timings)
    times = times[times.evaluation == evaluation]
    both = valid.merge(times, on=keys)
    per_trial = both.assign(valid=both["mean"], seconds=both.seconds / both["count"])
    means = per_trial.groupby(["method", "nfe"])[["seconds", "valid"]].mean().reset_index()
    count = contents.experiment.count_calls
    means["calls"] = [count(row.method, int(row.nfe), evaluation) for row in means.itertuples()]
    lines = {method: means[means.method == method] for method in made[0].rows}
    return Speed(
        trade(lines, int(rows.samples.max()), evaluation, f"{prefix}-trade"),
        made,
        " and ".join(sorted(both.device.dropna().unique())) or "unknown device",
    )
