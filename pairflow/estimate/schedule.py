"""When all jobs are done: handed out as Snakemake does, the most important one that fits first."""

import heapq
from collections.abc import Callable, Sequence

from pairflow.estimate.costs import Cost
from pairflow.plan.jobs import Job


def wall_seconds(todo: Sequence[Job], cost: Callable[[Job], Cost], cores: int, gpus: int) -> float:
    """Seconds until the last of the jobs ends; each waits for those of them that make its inputs.

    Jobs of which nobody knows the time take none: look for them first.
    """
    makers = {path: job for job in todo for path in job.outputs}
    waits = {job: {makers[path] for path in job.inputs if path in makers} for job in todo}
    follow: dict[Job, list[Job]] = {job: [] for job in todo}
    for job, before in waits.items():
        for each in before:
            follow[each].append(job)
    order = {job: (-job.priority, number) for number, job in enumerate(todo)}
    ready = sorted((job for job in todo if not waits[job]), key=order.__getitem__)
    running: list[tuple[float, int, Job]] = []
    now, free_cores, free_gpus = 0.0, cores, gpus
    while ready or running:
        started = []
        for job in ready:
            needs = cost(job)
            if needs.threads <= free_cores and needs.gpu <= free_gpus:
                free_cores -= needs.threads
                free_gpus -= needs.gpu
                heapq.heappush(running, (now + (needs.seconds or 0.0), order[job][1], job))
                started.append(job)
        ready = [job for job in ready if job not in started]
        now, _, ended = heapq.heappop(running)
        free_cores += cost(ended).threads
        free_gpus += cost(ended).gpu
        for job in follow[ended]:
            waits[job].discard(ended)
            if not waits[job]:
                ready.append(job)
        ready.sort(key=order.__getitem__)
    return now
