"""Writes numbers, lists and labels in the same way on all pages and in all tables."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from pairflow.config import BASES, DISTILLATIONS, FLOWS, Experiment

if TYPE_CHECKING:
    from markupsafe import Markup

OURS, BASELINE = "pairflow", "udlm"  # the method that the pages are about, and its baseline
REFERENCES = {"train": "training", "test": "test"}  # `reference` of metric rows -> the data, in words


def baselines(experiment: Experiment) -> tuple[str, ...]:
    """Return the baselines with which pages compare the methods of an experiment."""
    return FLOWS[experiment.flow].baselines


def format_number(value: float, digits: int, sign: str = "") -> str:
    """Write a number with commas and a true minus sign; NaN is a dash. `sign` is as in Python's format."""
    return "–" if np.isnan(value) else f"{value:{sign},.{digits}f}".replace("-", "−")


def format_duration(seconds: float) -> str:
    """Write seconds in readable units: `0.8 s`, `45 s`, `3 min 20 s`, `2 h 05 min`; NaN is a dash."""
    if np.isnan(seconds):
        return "–"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"


def format_moment(text: str) -> str:
    """Write a time in ISO 8601 as `2026-01-02, 10:11 UTC`."""
    return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d, %H:%M UTC")


def format_percent(share: float) -> str:
    """Write a share as `2.67 %`, or from 10 % on as `26.7 %`; NaN is a dash."""
    return "–" if np.isnan(share) else f"{100 * share:,.{1 if share >= 0.1 else 2}f} %"


def format_count(value: float) -> str:
    """Write a rounded number with commas; NaN is a dash."""
    return format_number(value, 0)


def format_p_value(p: float) -> str:
    """Write a p value as `p = 0.012`, or as `p < 0.001` if it is smaller."""
    return "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"


def pluralise(count: int, word: str) -> str:
    """Write a number and its noun: `1 seed`, `1,024 seeds`."""
    return f"{count:,} {word}{'s' * (count != 1)}"


def list_counts(counts: Iterable[int]) -> str:
    """Write the distinct counts: `1,000 or 5,000`."""
    return " or ".join(f"{value:,}" for value in sorted({*counts}))


def count_samples(counts: Iterable[int]) -> str:
    """Write the distinct counts of samples: `1,024 samples`, `1,000 or 5,000 samples`."""
    return f"{list_counts(counts)} samples"


def join_words(parts: Sequence[object]) -> str:
    """Write a list as `a, b and c`."""
    *first, last = map(str, parts)
    return f"{', '.join(first)} and {last}" if first else last


def join_steps(numbers: Sequence[int], unit: str = "sampling step") -> str:
    """Write `1 sampling step`, `2 and 4 sampling steps`, or the same with another unit."""
    return f"{join_words(numbers)} {unit}{'s' * ([*numbers] != [1])}"


def shorten(name: str, most: int) -> str:
    """Shorten a name to at most `most` characters."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def name_distillation(method: str) -> str:
    """Return the label of a method's last distillation, such as `DCD`, or else its name; empty for a base."""
    last = method.rpartition("+")[2] if "+" in method else ""
    return getattr(DISTILLATIONS.get(last), "label", "") or last


def make_breakable(method: str) -> "Markup":
    """Return a method's name with places where a narrow table may break it: before its distillations."""
    from markupsafe import Markup  # which `pairflow --help` does without

    return Markup("<wbr>+").join(method.split("+"))


def is_paired(method: str) -> bool:
    """Return whether a method learns from sources paired with data, by its base or by a teacher."""
    base, *rounds = method.split("+")
    known = BASES.get(base.partition("-")[0])
    return (known is not None and not known.independent) or any(
        name in DISTILLATIONS and DISTILLATIONS[name].on_pairs for name in rounds
    )


def name_file(text: str) -> str:
    """Turn text into a part of a file's name: lower case, with hyphens."""
    return re.sub(r"[^a-z0-9+_]+", "-", text.lower()).strip("-")
