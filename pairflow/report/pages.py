"""The page of each kind of data: the plain one, unless the kind's folder has its own."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pairflow.config import Experiment

if TYPE_CHECKING:
    from pairflow.report.kind_page import KindPage


def page_of(experiment: Experiment) -> "KindPage":
    """What pages ask about an experiment's kind of data."""
    return load_page(experiment.data.kind)


@cache
def load_page(kind: str) -> "KindPage":
    """The `PAGE` of the module `page` in the kind's folder `page`, or else of `report.kind_page`."""
    has_own = find_spec(f"pairflow.kinds.{kind}.page")
    module = f"pairflow.kinds.{kind}.page.page" if has_own else "pairflow.report.kind_page"
    return import_module(module).PAGE
