"""Writes an estimate: the experiment, the sums, a line per step, and where the numbers come from."""

from collections import Counter
from collections.abc import Callable, Sequence

from pairflow.config import FLOWS, Experiment
from pairflow.data.source import DatasetSize
from pairflow.estimate.costs import GUESS, busy_seconds
from pairflow.estimate.forecast import Forecast
from pairflow.estimate.rates import GPU
from pairflow.plan.job import Job
from pairflow.report.words import pluralise

_NAMED = 3  # most methods that a line names
_HEAD = ("step", "method", "jobs", "done", "time per job", "memory", "disk")


def head(name: str, experiment: Experiment, sizes: DatasetSize) -> str:
    methods = f"{pluralise(len(experiment.methods), 'method')}, {pluralise(len(experiment.seeds), 'seed')}"
    row = f"N = {sizes.length:,} tokens, K = {sizes.vocabulary_size}"
    if not FLOWS[experiment.flow].tokens:
        row = f"d = {sizes.length:,} numbers"
    return f"{name}: {sizes.rows:,} rows of {row}; {experiment.network.name}, {methods}\n"


def step_lines(forecast: Forecast) -> str:
    """Write a line per rule, in the order of the jobs, and a last one for unknown times.

    Methods whose jobs take equally long share a line.
    """
    todo, costs = set(forecast.todo), forecast.costs
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in forecast.table:
        groups.setdefault((job.rule, job.method or ""), []).append(job)
    methods: dict[tuple[str, ...], list[str]] = {}
    for (rule, method), group in groups.items():
        left = [costs[job] for job in group if job in todo]
        ready = str(len(group) - len(left)) if len(left) < len(group) else ""
        if None in (cost.seconds for cost in left):
            continue
        spans = ("done", "", "")
        if left:
            seconds, memory, disk, *_ = zip(*left, strict=True)
            spans = _span(seconds, describe_duration), _span(memory, _gigabytes), _span(disk, _bytes)
        methods.setdefault((rule, str(len(group)), ready, *spans), []).append(method)
    lines: list[tuple[str, ...]] = [_HEAD]
    for (rule, jobs, ready, *rest), names in methods.items():
        shown = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} methods"
        numbers = (str(len(names) * int(number)) if number else "" for number in (jobs, ready))
        lines.append((rule, shown, *numbers, *rest))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    columns = [*zip("<<>>>>>", widths, strict=True)]
    rows = ("  ".join(f"{text:{a}{b}}" for text, (a, b) in zip(line, columns, strict=True)) for line in lines)
    unknown = Counter(job.rule for job in forecast.untimed)
    counts = ", ".join(f"{rule} ({count})" for rule, count in unknown.items())
    return "\n".join(["", *map(str.rstrip, rows), *([f"time unknown: {counts}"] if unknown else [])])


def sums(forecast: Forecast) -> str:
    """Write CPU-hours, GPU-hours, wall time, memory and disk of the jobs to do.

    If a part of a sum is unknown, the sum of the others is given as "at least".
    """
    todo, costs = forecast.todo, forecast.costs
    if not todo:
        return f"all {len(forecast.table)} jobs are done"
    untimed_on_gpu = {costs[job].gpu for job in forecast.untimed}
    cpu, gpu = map(_hours, busy_seconds(todo, costs))
    _, memory, disk, *_ = zip(*(costs[job] for job in todo), strict=True)
    gpu = _at_least(gpu, True in untimed_on_gpu)
    if forecast.device != "cuda":
        there = _at_least(_hours(forecast.gpu_seconds), bool(untimed_on_gpu))
        gpu = f"none here; {there} on {GPU}, by arithmetic"
    lines = {
        "to do": f"{len(todo)} of {len(forecast.table)} jobs",
        "wall time": wall_time(forecast),
        "CPU-hours": _at_least(cpu, False in untimed_on_gpu),
        "GPU-hours": gpu,
        "memory": f"{_at_least(_largest(forecast), None in memory)} for the largest job",
        "disk": _at_least(_bytes(sum(size or 0.0 for size in disk)), None in disk),
    }
    return "\n".join(f"{name:<10} {text}" for name, text in lines.items())


def outset(forecast: Forecast, usable_mb: float) -> list[str]:
    """Write a line on what the jobs to do will take; empty if all jobs are done.

    A second line warns if a job on the CPU needs more than `usable_mb`, the machine's memory in MiB.
    """
    if not forecast.todo:
        return []
    gpu = " and a GPU" * (forecast.device == "cuda")
    time = _at_least(describe_duration(forecast.wall_seconds), bool(forecast.untimed))
    work, cores = pluralise(len(forecast.todo), "job"), pluralise(forecast.cores, "core")
    lines = [
        f"{work} to do: about {time} on {cores}{gpu}, by recorded times; "
        f"the largest takes {_largest(forecast)} of memory"
    ]
    costs = {job: forecast.costs[job] for job in forecast.todo if not forecast.costs[job].gpu}
    largest = max(costs, key=lambda job: costs[job].memory_mb or 0.0, default=None)
    if largest and (needed := costs[largest].memory_mb or 0.0) > usable_mb:
        lines.append(
            f"warning: {largest.rule} needs about {_gigabytes(needed)} of memory, and this machine has "
            f"{_gigabytes(usable_mb)}: the job may be killed"
        )
    return lines


def wall_time(forecast: Forecast) -> str:
    """Write the time until all jobs are done, or why it is unknown."""
    if untimed := forecast.untimed:
        return f"unknown, because {len(untimed)} of these jobs have never been timed"
    gpu = " and a GPU" * (forecast.device == "cuda")
    return f"{describe_duration(forecast.wall_seconds)} on {pluralise(forecast.cores, 'core')}{gpu}"


def expect(
    name: str | None, forecast: Forecast, iterations: int, hours: float | None, most: int | None = None
) -> str:
    """Write how long a new experiment takes on this machine, and how its number of iterations was chosen.

    If `hours` is given, `iterations` was chosen to fit into this time, but not above `most`: in tests, more
    iterations made samples worse. `name` is None for an experiment that is not written to a file.
    """
    text = f"Time: {wall_time(forecast)}; it may take half or twice as long."
    if name:
        text += f" `pairflow estimate {name}` has the details."
    if hours is None:
        return text
    if most and iterations > 0.9 * most:
        return f"{text} Training has {iterations:,} iterations; in tests, far more made samples worse."
    if forecast.wall_seconds <= 3600 * hours:
        return f"{text} Training fits into {hours:g} hours with {iterations:,} iterations."
    return f"{text} {hours:g} hours are too short: training gets the minimum of {iterations:,} iterations."


def basis(forecast: Forecast) -> str:
    """Write where the numbers come from, and how far they may be off."""
    origins = sorted({rate.origin for work, rate in forecast.rates.items() if work in forecast.works})
    absent = {work.kind: work.device for work in forecast.works if work not in forecast.rates}
    guessed = sorted({job.rule for job in forecast.todo if forecast.costs[job].guessed})
    lines = [
        "; ".join(origins) or "no measurement of long work",
        "for short steps: their times on one machine (AMD EPYC, 2026-11-21)",
    ]
    if guessed:
        lines.append(f"a guess, {GUESS[0]:g} s per job: {', '.join(guessed)}")
    if absent:
        lines.append(f"unknown work: {', '.join(sorted(absent))} (to measure it, leave out --recorded)")
    accuracy = "within a factor of two on an idle machine (four for arithmetic, and pairing many rows)"
    return "\nbased on   " + "\n           ".join(lines) + f"\naccuracy   {accuracy}"


def describe_duration(seconds: float) -> str:
    """Write seconds in s, min, h or days, with about two digits."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}" if seconds < 10 * size else f"{seconds / size:,.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s"


def _largest(forecast: Forecast) -> str:
    """Return the memory of the largest of the jobs that run on a CPU, such as `3.1 GB`. If jobs run on a GPU,
    the text begins with the GPU's memory for the largest of them: `9.0 GB of the GPU and 3.1 GB`. Jobs of
    unknown memory do not count."""
    most = {False: 0.0, True: 0.0}  # whether a job uses the GPU -> MiB
    for job in forecast.todo:
        cost = forecast.costs[job]
        most[cost.gpu] = max(most[cost.gpu], cost.memory_mb or 0.0)
    return f"{_gigabytes(most[True])} of the GPU and " * (most[True] > 0) + _gigabytes(most[False])


def _at_least(text: str, partly_unknown: bool) -> str:
    return f"at least {text}" if partly_unknown else text


def _hours(seconds: float) -> str:
    """Write seconds as hours, with two digits that are not zero."""
    return f"{float(f'{seconds / 3600:.2g}'):,.10g}"


def _span(values: Sequence[float | None], text: Callable[[float], str]) -> str:
    """Write the smallest and the largest of the values, or `unknown` if any value is unknown."""
    numbers = sorted(value for value in values if value is not None)
    if len(numbers) < len(values):
        return "unknown"
    return " to ".join(dict.fromkeys(map(text, (numbers[0], numbers[-1]))))


def _gigabytes(mb: float) -> str:
    return f"{mb / 1024:.1f} GB"


def _bytes(size: float) -> str:
    return f"{size / 2**20:.1f} MB" if size < 2**30 else f"{size / 2**30:.1f} GB"
