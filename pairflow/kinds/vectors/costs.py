"""What jobs on vectors take."""

from pairflow.data.costs import Cost, ShortJob


def vector_costs(job: ShortJob) -> dict[str, Cost]:
    """The costs by rule."""
    sizes = job.sizes
    numbers, compared = sizes.total * sizes.length, sizes.rows * sizes.length
    seconds, memory = 1.5 + job.samples * (1e-5 + 1e-9 * compared), 250.0 + 2e-5 * compared
    return {
        "preprocess": Cost(1.0 + 1e-7 * numbers, 200.0 + 3e-5 * numbers, sizes.total * sizes.row_bytes),
        "evaluate": Cost(seconds, memory, 3e4),
        "floor": Cost(seconds, memory, 1e6),
    }
