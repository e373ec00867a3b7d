"""The chart that only pages on text have: perplexity against entropy."""

from collections.abc import Mapping

from pairflow.report.charts import Axis, Chart, PlotLine
from pairflow.report.colours import Style, contrast
from pairflow.report.drawing import Picture, draw
from pairflow.report.figures import describe

MARKS = {
    "held-out text": Style("ink", "*", ":"),
    "shuffled": Style("muted", "P", ":"),
    "chain": Style("muted", "p", ":"),
    "snippet": Style("muted", "h", ":"),
}


def plane(
    lines: Mapping[str, Mapping[str, Mapping[str, float]]],
    points: Mapping[str, Mapping[str, float]],
    title: str,
    name: str,
) -> Picture:
    """The judge's perplexity against the entropy: a line per method through its settings, and single points.

    `lines` are method -> setting -> metric -> mean; `points`, named in `MARKS`, are real text and controls.
    """
    look, drawn, said = contrast(lines), [], {}
    for method, settings in lines.items():
        drawn.append(_plane_line(method, look(method), settings))
        said[method] = "; ".join(f"{_place(values)} at {setting}" for setting, values in settings.items())
    for point, values in points.items():
        drawn.append(_plane_line(point, MARKS[point], {"": values}))
        said[point] = _place(values)
    chart = Chart(
        title,
        Axis("entropy of a sample (nats)"),
        Axis("judge perplexity", log=True),
        drawn,
        describe(f"{title}; perplexity at entropy", said),
        tall=True,
    )
    return draw(chart, name)


def _plane_line(name: str, look: Style, settings: Mapping[str, Mapping[str, float]]) -> PlotLine:
    texts = [
        [setting or name, f"perplexity {values['judge_ppl']:,.4g}", f"entropy {values['entropy']:.3f}"]
        for setting, values in settings.items()
    ]
    entropy, perplexity = ([values[key] for values in settings.values()] for key in ("entropy", "judge_ppl"))
    return PlotLine(name, look, entropy, perplexity, texts)


def _place(values: Mapping[str, float]) -> str:
    return f"{values['judge_ppl']:,.4g} at {values['entropy']:.2f}"
