"""What the models of an experiment cost by the paper's own table of cost, where it has the data."""

from collections.abc import Sequence

from pairflow.config import Experiment, parse_method

MINUTES: dict[str, dict[str, float]] = {  # data set -> work -> minutes on one RTX A6000
    "qm9": {"base": 450, "dcd": 115, "redi": 100, "pairflow": 0.8},
    "zinc250k": {"base": 1110, "dcd": 211, "redi": 194, "pairflow": 13},
    "mnist_binary": {"base": 80, "dcd": 40, "redi": 49, "pairflow": 1.4},
    "cifar10": {"base": 6720, "dcd": 360, "redi": 468, "pairflow": 20},
}
ORIGIN = (
    "on one RTX A6000 by the paper’s own table of cost, for pairing, training and distillation, without "
    "sampling, evaluation and total correlation"
)
UNTIMED = "The paper does not print how long it takes."


def describe_cost(experiment: Experiment) -> str:
    """Time of the training by the paper's own table of cost, or that it does not tell."""
    hours = describe_hours(experiment)
    return f"{hours} {ORIGIN}." if hours else UNTIMED


def describe_hours(experiment: Experiment, methods: Sequence[str] = ()) -> str:
    """Hours of all its models for one seed, or of those that further `methods` need beside them."""
    models, total = len(experiment.trained()), seed_minutes(experiment)
    what = f"all its {models} models"
    if methods:
        extended = experiment.model_copy(update={"methods": (*experiment.methods, *methods)})
        total = seed_minutes(extended) - total
        further = len(extended.trained()) - models
        what = f"{further} further model{'s' * (further != 1)}"
    if total <= 0:
        return ""
    seeds, hours = len(experiment.seeds), total / 60
    every = f", {seeds} seeds about {seeds * hours:,.0f} h" if seeds > 1 else ""
    return f"One seed of {what} takes about {hours:,.0f} h{every}"


def seed_minutes(experiment: Experiment) -> float:
    """Minutes on an RTX A6000, as printed, for pairing and training every model of an experiment once.

    0 where the paper does not tell: on other data, or with a distillation that it does not have.
    """
    printed = MINUTES.get(experiment.data.source, {})
    work = [("base", *parse_method(name).distillations)[-1] for name in experiment.trained()]
    if not set(work) <= set(printed):
        return 0.0
    total = float(sum(printed[name] for name in work))
    for name in experiment.couplings():
        method = parse_method(name)
        total += printed["pairflow"] / method.subsets if method.base == "pairflow" else 0.0
    return total
