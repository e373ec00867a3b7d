"""Suggests the settings of an experiment on a user's rows, of a size that fits the machine."""

import math

from pairflow.files import Json

LONG = 40  # tokens of a row: for longer rows the network SMALL makes hardly any good samples
SMALL, BATCH = {"name": "mlp", "width": 384, "blocks": 2}, 256
TRANSFORMER = {"name": "transformer", "width": 128, "blocks": 4, "heads": 4, "dropout": 0.1}
# For SELFIES of drug-like molecules; the temperature of groups is 1 (docs/results.md).
TRANSFORMER_BATCH, TEMPERATURE = 16, 0.7
WIDE = 512  # a transformer of this width or more counts as large as the paper's
_PAPER = {"name": "transformer", "width": 768, "blocks": 12, "heads": 12, "dropout": 0.1}
_FINE_TUNING = 0.25  # of the learning rate
_HOURS = 0.5  # for an experiment on long rows, on a CPU
# Seconds of one core. The training on short rows gets _BUDGET. An iteration on 256 rows of N tokens and K
# symbols takes about _ITERATION + _LOGIT N K for SMALL, and _TOKEN per token for TRANSFORMER (AMD EPYC).
_BUDGET, _ITERATION, _LOGIT, _TOKEN = 90, 0.035, 1.6e-5, 9.1e-5
_ROWS = {"cpu": 100_000, "cuda": 250_000}  # for training: the cost of pairing grows with their square


def training_rows(available: int, device: str) -> int | None:
    """Return how many of the `available` rows to train on; None for all."""
    return _ROWS[device] if available > _ROWS[device] else None


def hours(network: Json, device: str) -> float | None:
    """Return the default hours of a training; None if the function `experiment` is to choose the
    iterations."""
    return _HOURS if device == "cpu" and network["name"] != SMALL["name"] else None


def experiment(
    length: int,
    vocabulary_size: int,
    rows: int,
    device: str,
    compare: bool,
    iterations: int | None = None,
    network: Json | None = None,
    fine_tuned: bool = False,
) -> Json:
    """Suggest network, pairing, training, methods and evaluations for `rows` training rows of `length`
    tokens, as a dict.

    The methods are udlm, pairflow and pairflow+dcd with `compare`, else only pairflow. `device` is "cpu" or
    "cuda". Without `iterations`, a CPU gets as many as fit into 90 seconds (300 to 2,000), and a GPU a
    quarter of the paper's. `network` replaces the suggested network. Models that are `fine_tuned` get a
    quarter of the learning rate.
    """
    network = network or (_PAPER if device == "cuda" else TRANSFORMER if length > LONG else SMALL)
    most = BATCH if device == "cuda" or network["name"] == SMALL["name"] else TRANSFORMER_BATCH
    batch_size = min(most, 1 << (rows.bit_length() - 1))
    if iterations is None:
        fitting = _BUDGET / iteration_seconds(length, vocabulary_size, network, batch_size)
        iterations = 50_000 if device == "cuda" else int(max(300, min(2000, round(fitting, -2))))
    make = _paper_like if device == "cuda" else _small if network["name"] == SMALL["name"] else _on_a_laptop
    experiment = make(network, length, iterations, batch_size)
    if fine_tuned:
        experiment["training"]["learning_rate"] *= _FINE_TUNING
    if not compare:
        del experiment["distillation"]
        experiment["methods"] = ["pairflow"]
    return experiment


def iteration_seconds(
    length: int, vocabulary_size: int, network: Json = SMALL, batch_size: int = BATCH
) -> float:
    """Return about how many seconds one core takes for a training iteration on `batch_size` rows of `length`
    tokens. The network SMALL is always timed with BATCH rows; any other network is taken for a
    transformer."""
    if network["name"] == SMALL["name"]:
        return _ITERATION + _LOGIT * length * vocabulary_size
    return _TOKEN * batch_size * length


def _small(network: Json, length: int, iterations: int, batch_size: int) -> Json:
    """Return settings for short rows on a CPU: as in `demo`, but DCD's noise as in `qm9_small`."""
    training = _optimisation(batch_size, iterations, 2.0e-3, 4.0e-5, ema_decay=0.99)
    dcd = _optimisation(batch_size, max(1, iterations // 5), 4.0e-4, 1.0e-5, ema_decay=0.99)
    dcd |= {"teacher_every": max(1, iterations // 25), "noise_max": 2.0}
    return _experiment(network, 20, training, dcd, [1, 2, 4, 8, 16], trials=5)


def _on_a_laptop(network: Json, length: int, iterations: int, batch_size: int) -> Json:
    """Return an experiment on a CPU with a network other than SMALL, as a dict. It has fewer than 1,024
    samples if drawing these would take longer than the training, but 512 or more (128 of rows over LONG)."""
    training = _optimisation(batch_size, iterations, 1.0e-3, 2.0e-5, ema_decay=0.99)
    dcd = _optimisation(batch_size, max(1, iterations // 5), 2.0e-4, 1.0e-5, ema_decay=0.99)
    dcd |= {"teacher_every": max(1, iterations // 25)}
    experiment = _experiment(network, 64, training, dcd, [1, 4, 8, 32], trials=2)
    quarter = 2 ** int(math.log2(max(1, iterations / 4)))  # drawing so many takes less time than the training
    samples = min(1024, max(128 if length > LONG else 512, quarter))
    experiment["evaluations"]["main"] |= {"samples": samples, "temperature": TEMPERATURE}
    return experiment


def _paper_like(network: Json, length: int, iterations: int, batch_size: int) -> Json:
    """Return an experiment for a GPU, as a dict: the paper's transformer with fewer iterations."""
    training = _optimisation(batch_size, iterations, 3.0e-4, 3.0e-6, ema_decay=0.9999)
    dcd = _optimisation(batch_size, max(1, iterations // 5), 6.0e-5, 1.0e-6, ema_decay=0.999)
    dcd |= {"teacher_every": max(1, iterations // 25), "start_from": "raw"}
    steps = 20 if length <= 32 else 64
    return _experiment(network, steps, training, dcd, [1, 2, 4, 8, 16, 32, 64], trials=10)


def _optimisation(batch_size, iterations, learning_rate, final_learning_rate, ema_decay):
    return {
        "batch_size": batch_size,
        "iterations": iterations,
        "learning_rate": learning_rate,
        "warmup_iterations": min(iterations - 1, max(1, iterations // 40)),
        "decay": "cosine",
        "final_learning_rate": final_learning_rate,
        "ema_decay": ema_decay,
        "validate_every": max(1, iterations // 4),
    }


def _experiment(network, steps, training, dcd, nfe, trials):
    return {
        "network": network,
        "pairing": {"steps": steps},
        "training": training,
        "distillation": {"dcd": dcd},
        "methods": ["udlm", "pairflow", "pairflow+dcd"],
        "evaluations": {"main": {"nfe": nfe, "samples": 1024, "trials": trials}},
    }
