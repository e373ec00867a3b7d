"""What jobs on molecules take. The time of ChemNet is not known."""

from pairflow.data.costs import Cost, ShortJob
from pairflow.kinds.molecules.settings import Molecules, chemistry_settings


def molecule_costs(job: ShortJob, data: Molecules) -> dict[str, Cost]:
    """The costs by rule."""
    sizes = job.sizes
    rows, tokens = sizes.rows, sizes.total * sizes.length
    per_token = 1e-5 if data.representation == "selfies" else 1.8e-6
    seconds, memory = 1.0 + job.samples * (1.6e-4 + 1.5e-8 * rows), 450.0 + 3e-4 * rows
    unknown = chemistry_settings(job.experiment).fcd
    described = 2.0 + 3e-4 * (rows + min(rows, 20_000)) / job.threads
    return {
        "preprocess": Cost(
            1.0 + per_token * tokens, 200.0 + 1.4e-3 * sizes.total, sizes.total * (sizes.length / 4 + 12)
        ),
        "describe_molecules": Cost(described, 450.0, 60.0 * rows),
        "chemnet": Cost(None, None, 1e6),
        "evaluate": Cost(None, None, 3e4) if unknown else Cost(seconds, memory, 3e4),
    }
