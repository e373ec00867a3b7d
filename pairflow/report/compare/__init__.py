"""Finished experiments, or the methods of one, set against one another: a page and a table of numbers."""

from pairflow.report.compare.page import render
from pairflow.report.compare.runs import Run
from pairflow.report.compare.sections import Section, sections
from pairflow.report.compare.table import frame

__all__ = ["Run", "Section", "frame", "render", "sections"]
