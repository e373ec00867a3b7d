"""The report of one experiment: from metric rows to one self-contained HTML page."""

from pairflow.report.experiment.contents import Contents
from pairflow.report.experiment.page import draw, render

__all__ = ["Contents", "draw", "render"]
