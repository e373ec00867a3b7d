"""The chart that only pages on text have: perplexity against entropy."""

from collections.abc import Mapping

from pairflow.report import drawing
from pairflow.report.colours import Style, contrast
from pairflow.report.drawing import Line, Picture

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
    look = contrast(lines)
    drawn = [_line(method, look(method), settings) for method, settings in lines.items()]
    drawn += [_line(point, MARKS[point], {point: values}) for point, values in points.items()]
    x, y = "entropy of a sample (nats)", "judge perplexity"
    with drawing.line_chart(drawn, x, y, tall=True) as (figure, axes):
        drawing.make_log(axes, drawn)
        alt = drawing.describe_lines(f"{title}; perplexity at entropy", drawn)
        return drawing.finish(figure, name, alt, drawn)


def _line(name: str, look: Style, settings: Mapping[str, Mapping[str, float]]) -> Line:
    texts = [
        [setting, f"perplexity {values['judge_ppl']:,.4g}", f"entropy {values['entropy']:.3f}"]
        for setting, values in settings.items()
    ]
    entropy, perplexity = ([values[key] for values in settings.values()] for key in ("entropy", "judge_ppl"))
    return Line(name, look, entropy, perplexity, texts)
