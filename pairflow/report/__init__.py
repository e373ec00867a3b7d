"""From metric rows to one self-contained HTML page."""

from pairflow.report.contents import Contents
from pairflow.report.page import draw, render

__all__ = ["Contents", "draw", "render"]
