"""What an experiment will take, before it is run."""

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from tqdm import tqdm

from pairflow.artifacts import machine
from pairflow.config import Experiment
from pairflow.config.file import experiment as named
from pairflow.config.file import read
from pairflow.errors import InputError
from pairflow.estimate import rates
from pairflow.estimate.costs import Cost, Costs
from pairflow.estimate.rates import Rate, Work
from pairflow.estimate.schedule import wall_seconds
from pairflow.estimate.sizes import Sizes, sizes
from pairflow.plan.jobs import Job, done, jobs
from pairflow.report.results import read_finished
from pairflow.steps.command import configuration, device, quiet, step

NO_GPU = "unknown: no GPU here, and no record of one"


@step()
@click.argument("experiment")
@configuration("Where the experiment is described; results/ is beside it.")
@click.option("--cores", type=click.IntRange(1), help="As for Snakemake.  [default: all]")
@click.option("--recorded", is_flag=True, help="Measure nothing: go by records alone.")
@device
@quiet
def main(experiment: str, configuration: Path, cores: int | None, recorded: bool, device: str, quiet: bool):
    """Say what EXPERIMENT will take on this machine: time, memory, disk, and GPU-hours; run nothing of it.

    An iteration of each kind of training, a step of sampling and a few rows of the pairing are measured here,
    a few seconds each, on made-up rows of the experiment's sizes. What this machine has timed in results/
    is not measured again, and what is done is not counted. With --device cuda the steps run on the GPU, one
    at a time, as `snakemake --resources gpu=1` has it.
    """
    from pairflow.runtime.threads import available_cpus

    described = read(configuration)
    plan = named(described, experiment, configuration)
    folder = configuration.parent
    root = folder / "results" / experiment
    size = sizes(root, plan, folder, not quiet)
    where = _device(device)
    every = jobs(root, plan, described.pair_shards)
    finished = done(every)
    todo = [job for job in every if job not in finished]
    found = _rates(root, plan, size, where, recorded, todo, quiet)
    cores = cores or available_cpus()
    costs = Costs(plan, size, found, cores, where == "cuda")
    cost = {job: costs.of(job) for job in every}
    click.echo(_head(experiment, plan, size))
    click.echo(_table(every, finished, cost))
    click.echo(_totals(todo, cost, cores, where, every))
    click.echo(_basis(plan, size, found, where, todo))


def _device(name: str) -> str:
    """`cpu` or `cuda`; torch is imported only where a driver says that there may be a GPU."""
    if name == "auto":
        if shutil.which("nvidia-smi") is None:
            return "cpu"
        from pairflow.runtime.device import choose

        return choose(name, None).type
    return name


def _rates(
    root: Path, plan: Experiment, size: Sizes, where: str, recorded: bool, todo: Sequence[Job], quiet: bool
) -> dict[Work, Rate]:
    """What results/ was timed at, else measured, else recorded elsewhere."""
    found = {**rates.packaged(), **_own(root, plan, size)} if recorded else _own(root, plan, size)
    kinds = {"train", "distill", "teach", "sample", "correlate", "pair", "pair_shard", "cover"}
    wanted = rates.needed(plan, size, where) if any(job.rule in kinds for job in todo) else []
    for work in wanted:
        if recorded and work not in found and (rate := _suggested(work, plan)):
            found[work] = rate
    absent = rates.unknown(wanted, found)
    if recorded or (where == "cuda" and not _cuda()):
        return {**rates.packaged(), **found}
    from pairflow.estimate.measure import measured

    origin = f"measured here on {datetime.now(UTC):%Y-%m-%d}"
    for work in tqdm(absent, desc="measure", unit="rate", disable=quiet or not absent):
        rate = measured(work, plan.training.loss, size.shape, size.tokens, origin)
        rate = rate or rates.packaged().get(work)
        if rate is not None:
            found[work] = rate
    return found


def _own(root: Path, plan: Experiment, size: Sizes) -> dict[Work, Rate]:
    """The rates of this experiment's own results, if this machine made them."""
    try:
        results = read_finished(root)
    except InputError:
        return {}
    same = ("data", "network", "training", "distillation", "pairing", "evaluations")
    if any(getattr(results.experiment, key) != getattr(plan, key) for key in same):
        return {}
    here = results.timings[results.timings["machine"] == machine()]
    origin = f"results/{root.name}/timings.parquet, of this machine"
    return rates.of_timings(here, plan, size, origin)


def _suggested(work: Work, plan: Experiment) -> Rate | None:
    """What `pairflow new` goes by, if this is a training of the network that it suggests for a CPU."""
    from pairflow.config import suggest

    network = type(plan.network)(**suggest.SMALL) if plan.network.name == "mlp" else None
    if (work.kind, work.device, work.batch) != ("train", "cpu", suggest.BATCH) or plan.network != network:
        return None
    seconds = suggest.iteration_seconds(work.length, work.vocabulary_size)
    return Rate(seconds, 900.0, "what `pairflow new` goes by (AMD EPYC, 2026-11-21)")


def _cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def _head(name: str, plan: Experiment, size: Sizes) -> str:
    count = len(plan.seeds)
    methods = f"{len(plan.methods)} methods, {count} seed{'s' * (count > 1)}"
    facts = f"{size.rows:,} rows of N = {size.length:,} tokens, K = {size.vocabulary_size}"
    return f"{name}: {facts}; {plan.network.name}, {methods}\n"


def _table(every: Sequence[Job], finished: set[Job], cost: Mapping[Job, Cost]) -> str:
    """A line per rule and method, in the order in which they come up."""
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in every:
        groups.setdefault((job.rule, job.method or ""), []).append(job)
    lines = [("step", "method", "jobs", "done", "time per job", "memory", "disk")]
    for (rule, method), group in groups.items():
        todo = [job for job in group if job not in finished]
        lines.append(
            (
                rule,
                method,
                str(len(group)),
                str(len(group) - len(todo)) if len(todo) < len(group) else "",
                _span([cost[job].seconds for job in todo], duration) if todo else "done",
                _span([cost[job].memory_mb for job in todo], _memory) if todo else "",
                _span([cost[job].disk for job in todo], _disk) if todo else "",
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    ranged = ("<", "<", ">", ">", ">", ">", ">")
    return "\n".join(
        "  ".join(
            f"{text:{side}{width}}" for text, side, width in zip(line, ranged, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def _span(values: Sequence[float | None], text) -> str:
    """The values from least to greatest, `unknown` where one is not known."""
    if None in values:
        return "unknown"
    first, last = text(min(values)), text(max(values))
    return first if first == last else f"{first} to {last}"


def duration(seconds: float) -> str:
    """Seconds as s, min, h or days, two digits."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}" if seconds < 10 * size else f"{seconds / size:,.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s"


def _memory(mb: float) -> str:
    return f"{mb / 1024:.1f} GB"


def _disk(size: float) -> str:
    return f"{size / 2**20:.1f} MB" if size < 2**30 else f"{size / 2**30:.1f} GB"


def _totals(
    todo: Sequence[Job], cost: Mapping[Job, Cost], cores: int, where: str, every: Sequence[Job]
) -> str:
    """CPU-hours, GPU-hours, wall time, memory and disk of what is not done."""
    if not todo:
        return f"\nall {len(every)} jobs are done"
    blind = [job for job in todo if cost[job].seconds is None]
    known = [job for job in todo if cost[job].seconds is not None]
    cpu = sum(cost[job].seconds * cost[job].threads for job in known if not cost[job].gpu)
    gpu = sum(cost[job].seconds for job in known if cost[job].gpu)
    wall = wall_seconds(todo, cost.__getitem__, cores, gpus=1)
    without = f", without {len(blind)} job{'s' * (len(blind) > 1)} of unknown time" if blind else ""
    least = "at least " if blind else ""
    memory = [cost[job].memory_mb for job in todo if cost[job].memory_mb is not None]
    disk = sum(cost[job].disk or 0.0 for job in todo)
    hours = "none"
    if where == "cuda":
        on_gpu_blind = any(cost[job].gpu for job in blind)
        hours = "unknown" if on_gpu_blind else f"{gpu / 3600:,.2g}"
    most = f"{_memory(max(memory))} for the largest job" if memory else "unknown"
    return "\n".join(
        [
            "",
            f"to do      {len(todo)} of {len(every)} jobs",
            f"wall time  {least}{duration(wall)} on {cores} core{'s' * (cores > 1)}{without}",
            f"CPU-hours  {least}{cpu / 3600:,.2g}{without}",
            f"GPU-hours  {hours}",
            f"memory     {most}",
            f"disk       {'at least ' * any(cost[job].disk is None for job in todo)}{_disk(disk)}",
        ]
    )


def _basis(plan: Experiment, size: Sizes, found: Mapping[Work, Rate], where: str, todo: Sequence[Job]) -> str:
    """What the figures rest on, and how far they may be off."""
    if not todo:
        return ""
    wanted = rates.needed(plan, size, where)
    origins = sorted({found[work].origin for work in wanted if work in found})
    lines = ["", f"based on   {'; '.join(origins) or 'nothing that was measured'}"]
    lines.append("           short steps by what they took on one machine (AMD EPYC, 2026-11-21)")
    absent = rates.unknown(wanted, found)
    if absent and where == "cuda":
        lines.append(f"           GPU: {NO_GPU}")
    elif absent:
        kinds = sorted({work.kind for work in absent})
        lines.append(
            f"           unknown: no record of this work ({', '.join(kinds)}); go without --recorded"
        )
    lines.append(
        "good to    a factor of two on a machine that does nothing else; a pairing on made-up rows, of four"
    )
    if plan.scale == "paper":
        from pairflow.report.paper.advice import cost

        if text := cost(plan):
            lines.append(f"printed    {text}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
