"""An estimate in words: what the experiment has, the sums, a line per step, and what they rest on."""

from collections import Counter
from collections.abc import Callable, Sequence

from pairflow.config import FLOWS, Experiment
from pairflow.data.source import DatasetSize
from pairflow.estimate.costs import GUESS, busy_seconds
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
    todo, costs = set(forecast.todo), forecast.costs
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in forecast.table:
        groups.setdefault((job.rule, job.method or ""), []).append(job)
    lines = [_HEAD]
    for names, group in groups.items():
        left = [costs[job] for job in group if job in todo]
        ready = str(len(group) - len(left)) if len(left) < len(group) else ""
        if None in (cost.seconds for cost in left):
            continue
        spans = ("done", "", "")
        if left:
            seconds, memory, disk, *_ = zip(*left, strict=True)
            spans = _span(seconds, describe_duration), _span(memory, _gigabytes), _span(disk, _bytes)
        lines.append((*names, str(len(group)), ready, *spans))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    columns = [*zip("<<>>>>>", widths, strict=True)]
    rows = ("  ".join(f"{text:{a}{b}}" for text, (a, b) in zip(line, columns, strict=True)) for line in lines)
    unknown = Counter(job.rule for job in forecast.untimed)
    counts = ", ".join(f"{rule} ({count})" for rule, count in unknown.items())
    return "\n".join(["", *map(str.rstrip, rows), *([f"time unknown: {counts}"] if unknown else [])])


def sums(forecast: Forecast, printed: str) -> str:
    """CPU-hours, GPU-hours, wall time, memory and disk of the jobs to do.

    A sum with a part that nobody knows is unknown; one line names all of these. `printed` is the cost
    by the paper, if it has one.
    """
    todo, costs = forecast.todo, forecast.costs
    if not todo:
        return f"all {len(forecast.table)} jobs are done"
    untimed_on_gpu = {costs[job].gpu for job in forecast.untimed}
    cpu, gpu = (
        "unknown" if on_gpu in untimed_on_gpu else f"{seconds / 3600:,.2g}"
        for on_gpu, seconds in zip((False, True), busy_seconds(todo, costs), strict=True)
    )
    memory, disk = ([getattr(costs[job], name) for job in todo] for name in ("memory_mb", "disk"))
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
    if untimed := forecast.untimed:
        return f"unknown, because {len(untimed)} of these jobs have never been timed"
    gpu = " and a GPU" * (forecast.device == "cuda")
    return f"{describe_duration(forecast.wall_seconds)} on {_count(forecast.cores, 'core')}{gpu}"


def expect(name: str, forecast: Forecast, iterations: int, hours: float | None) -> str:
    """Sentences on the time that a new experiment takes on this machine, and how it was fitted to `hours`."""
    text = f"Time: {wall_time(forecast)}, give or take a factor of two."
    text += f" `pairflow estimate {name}` has the details."
    if hours is None:
        return text
    if forecast.wall_seconds <= 3600 * hours:
        return f"{text} Training is fitted to {hours:g} hours: {iterations:,} iterations."
    return f"{text} {hours:g} hours are too short: training has the fewest iterations, {iterations:,}."


def basis(forecast: Forecast) -> str:
    """What the numbers rest on and how far they may be off."""
    works, rates = forecast.works, forecast.rates
    origins = sorted({rates[work].origin for work in works if work in rates})
    lines = [
        f"\nbased on   {'; '.join(origins) or 'nothing that was measured'}",
        "           for short steps: their times on one machine (AMD EPYC, 2026-11-21)",
    ]
    if guessed := sorted({job.rule for job in forecast.todo if forecast.costs[job].guessed}):
        lines.append(f"           a guess, {GUESS[0]:g} s per job: {', '.join(guessed)}")
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
    numbers = sorted(value for value in values if value is not None)
    if len(numbers) < len(values):
        return "unknown"
    return " to ".join(dict.fromkeys(map(text, (numbers[0], numbers[-1]))))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number > 1)}"


def _gigabytes(mb: float) -> str:
    return f"{mb / 1024:.1f} GB"


def _bytes(size: float) -> str:
    return f"{size / 2**20:.1f} MB" if size < 2**30 else f"{size / 2**30:.1f} GB"
