"""The paper's tables: printed values beside what finished experiments have of them, on one page."""

from pairflow.report.paper.measured import Run
from pairflow.report.paper.page import Page, render

__all__ = ["Page", "Run", "render"]
