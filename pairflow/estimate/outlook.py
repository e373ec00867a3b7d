"""An estimate in words: what the experiment has, a line per step, the sums, and what they rest on."""

from collections import Counter
from collections.abc import Callable, Sequence

from pairflow.config import FLOWS, Experiment
from pairflow.data.source import DatasetSize
from pairflow.estimate.costs import busy_seconds
from pairflow.estimate.forecast import Forecast
from pairflow.plan.job import Job

_HEAD = ("step", "method", "jobs", "done", "time per job", "memory", "disk")


def head(name: str, experiment: Experiment, sizes: DatasetSize) -> str:
    methods = f"{_count(len(experiment.methods), 'method')}, {_count(len(experiment.seeds), 'seed')}"
    facts = f"{sizes.rows:,} rows of N = {sizes.length:,} tokens, K = {sizes.vocabulary_size}"
    if not FLOWS[experiment.flow].tokens:
        facts = f"{sizes.rows:,} rows of d = {sizes.length:,} numbers"
    return f"{name}: {facts}; {experiment.network.name}, {methods}\n"


def step_lines(forecast: Forecast) -> str:
    """A line per rule and method, in the order of the jobs, and one for all whose time is unknown."""
    finished, costs = forecast.finished, forecast.costs
    unknown = Counter(job.rule for job in _untimed(forecast))
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in forecast.table:
        groups.setdefault((job.rule, job.method or ""), []).append(job)
    lines = [_HEAD]
    for names, group in groups.items():
        todo = [costs[job] for job in group if job not in finished]
        ready = str(len(group) - len(todo)) if len(todo) < len(group) else ""
        spans = ("done", "", "")
        if todo:
            seconds, memory, disk, _, _ = zip(*todo, strict=True)
            if None in seconds:
                continue
            spans = _span(seconds, describe_duration), _span(memory, _gigabytes), _span(disk, _bytes)
        lines.append((*names, str(len(group)), ready, *spans))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = "<<>>>>>"
    rows = (
        [f"{text:{side}{width}}" for text, side, width in zip(line, sides, widths, strict=True)]
        for line in lines
    )
    counts = ", ".join(f"{rule} ({count})" for rule, count in unknown.items())
    untimed = [f"time unknown: {counts}"] if unknown else []
    return "\n".join(["", *("  ".join(row).rstrip() for row in rows), *untimed])


def sums(forecast: Forecast, printed: str) -> str:
    """CPU-hours, GPU-hours, wall time, memory and disk of the jobs to do.

    A sum with a part that nobody knows is unknown; one line names all of these. `printed` is the cost
    by the paper, if it has one.
    """
    todo, costs = forecast.todo, forecast.costs
    if not todo:
        return f"all {len(forecast.table)} jobs are done"
    untimed = _untimed(forecast)
    untimed_on_gpu = {costs[job].gpu for job in untimed}
    cpu, gpu = (
        "unknown" if on_gpu in untimed_on_gpu else f"{seconds / 3600:,.2g}"
        for on_gpu, seconds in zip((False, True), busy_seconds(todo, costs), strict=True)
    )
    _, memory, disk, _, _ = zip(*(costs[job] for job in todo), strict=True)
    sums = {
        "CPU-hours": cpu,
        "GPU-hours": gpu if forecast.device == "cuda" else "none, for this is the estimate without a GPU",
        "memory": "unknown" if None in memory else f"{_gigabytes(max(memory))} for the largest job",
        "disk": "unknown" if None in disk else _bytes(sum(disk)),
    }
    unknown = ", ".join(name for name, text in sums.items() if text == "unknown")
    lines = [
        f"to do      {len(todo)} of {len(forecast.table)} jobs",
        f"wall time  {wall_time(forecast)}",
        *([f"           {printed}"] if printed else []),
        *(f"{name:<10} {text}" for name, text in sums.items() if text != "unknown"),
        *([f"unknown    {unknown}"] if unknown else []),
    ]
    return "\n".join(lines)


def wall_time(forecast: Forecast) -> str:
    """The time until all jobs are done, or why it is unknown."""
    if untimed := _untimed(forecast):
        return f"unknown, because {len(untimed)} of these jobs have never been timed"
    seconds = forecast.wall_seconds
    gpu = " and a GPU" * (forecast.device == "cuda")
    return f"{describe_duration(seconds)} on {_count(forecast.cores, 'core')}{gpu}"


def expect(name: str, forecast: Forecast) -> str:
    """Sentences on the time that a new experiment takes on this machine."""
    return (
        f"Time: {wall_time(forecast)}, give or take a factor of two. "
        f"`pairflow estimate {name}` has the details."
    )


def describe_fit(forecast: Forecast, iterations: int, hours: float) -> str:
    """A sentence on how the number of iterations was fitted to a time."""
    if forecast.wall_seconds <= 3600 * hours:
        return f"Training is fitted to {hours:g} hours: {iterations:,} iterations."
    return f"{hours:g} hours are too short: training has the fewest iterations, {iterations:,}."


def _untimed(forecast: Forecast) -> list[Job]:
    return [job for job in forecast.todo if forecast.costs[job].seconds is None]


def basis(forecast: Forecast) -> str:
    """What the numbers rest on and how far they may be off."""
    works, rates = forecast.works, forecast.rates
    origins = sorted({rates[work].origin for work in works if work in rates})
    lines = [
        f"\nbased on   {'; '.join(origins) or 'nothing that was measured'}",
        "           for short steps: their times on one machine (AMD EPYC, 2026-11-21)",
    ]
    absent = [work for work in works if work not in rates]
    if any(work.device == "cuda" for work in absent):
        lines.append("           GPU: unknown: no GPU here, and no record of one")
    elif absent:
        kinds = ", ".join(sorted({work.kind for work in absent}))
        lines.append(f"           unknown: no record of this work ({kinds}); measure it without --recorded")
    lines.append(
        "good to    a factor of two on a machine that does nothing else; a pairing on made-up rows, of four"
    )
    return "\n".join(lines)


def describe_duration(seconds: float) -> str:
    """Seconds as s, min, h or days, two digits."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}" if seconds < 10 * size else f"{seconds / size:,.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s"


def _span(values: Sequence[float | None], text: Callable[[float], str]) -> str:
    """The smallest and the largest of the values, or `unknown` if one of them is."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return "unknown"
    first, last = text(min(numbers)), text(max(numbers))
    return first if first == last else f"{first} to {last}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number > 1)}"


def _gigabytes(mb: float) -> str:
    return f"{mb / 1024:.1f} GB"


def _bytes(size: float) -> str:
    return f"{size / 2**20:.1f} MB" if size < 2**30 else f"{size / 2**30:.1f} GB"
