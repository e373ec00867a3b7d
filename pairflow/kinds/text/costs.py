"""What jobs on text take. The time of GPT-2 is not known."""

from pairflow.config import Experiment
from pairflow.data.costs import Cost, ShortJob, token_costs
from pairflow.data.source import DatasetSize
from pairflow.kinds.text.settings import judge_settings


def text_costs(job: ShortJob) -> dict[str, Cost]:
    """The costs by rule."""
    costs = token_costs(job)
    if judge_settings(job.experiment).gen_ppl:
        costs |= {rule: Cost(None, None, costs[rule].disk) for rule in ("evaluate", "floor")}
    return costs | {"train_judge": Cost(3.0 + _judge_seconds(job.experiment, job.sizes), 950.0, 1e6)}


def _judge_seconds(experiment: Experiment, sizes: DatasetSize) -> float:
    """The training of the second judge, measured on the same machine on 2026-11-23."""
    judge = judge_settings(experiment).transformer
    if judge is None:
        return 0.0
    tokens = judge.iterations * judge.batch_size * sizes.length
    in_blocks = judge.blocks * (2e-7 + 1.5e-9 * judge.width)
    return tokens * judge.width * (in_blocks + 2e-10 * sizes.vocabulary_size)
