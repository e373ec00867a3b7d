"""The chart that only pages on text have: perplexity against entropy."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pairflow.report.colours import Style, contrast
from pairflow.report.drawing import Picture, describe_lines, finish, line_chart, make_lines, make_log

MARKS = {
    "held-out text": Style("ink", "*", ":"),
    "shuffled": Style("muted", "P", ":"),
    "chain": Style("muted", "p", ":"),
    "snippet": Style("muted", "h", ":"),
}


def plane(
    rows: Sequence[tuple[str, str, Mapping[str, float]]],
    points: Mapping[str, Mapping[str, float]],
    title: str,
    name: str,
) -> Picture:
    """The judge's perplexity against the entropy: a line per method through its settings, and single points.

    `rows` are method, setting and values; `points`, named in `MARKS`, are real text and controls.
    """
    look = contrast(method for method, *_ in rows)
    all_rows = [*rows, *((point, point, values) for point, values in points.items())]
    frame = pd.DataFrame([{"method": own, "setting": setting, **values} for own, setting, values in all_rows])
    lines = make_lines(frame, "entropy", "judge_ppl", _say, lambda name: MARKS.get(name) or look(name))
    x, y = "entropy of a sample (nats)", "judge perplexity"
    with line_chart(lines, x, y) as (figure, axes):
        make_log(axes, lines)
        return finish(figure, name, describe_lines(f"{title}; perplexity at entropy", lines), lines)


def _say(row: Any) -> list[str]:
    return [row.setting, f"perplexity {row.judge_ppl:,.4g}", f"entropy {row.entropy:.3f}"]
