"""Suggests an experiment on a library of molecules, at a scale that fits the machine."""

from typing import Any

# Seconds of one core that a training on a CPU may take. An iteration of 256 rows of the network SMALL takes
# about _ITERATION + _LOGIT * N * K of them (AMD EPYC, torch 2.15).
_BUDGET, _ITERATION, _LOGIT = 90, 0.035, 1.6e-5
SMALL, BATCH = {"name": "mlp", "width": 384, "blocks": 2}, 256
_ROWS = {"cpu": 100_000, "cuda": 250_000}  # for training: the cost of pairing grows with their square


def training_rows(available: int, device: str) -> int | None:
    """The number of rows to train on; None for all."""
    return _ROWS[device] if available > _ROWS[device] else None


def scale(length: int, vocabulary_size: int, rows: int, device: str, compare: bool) -> dict[str, Any]:
    """Network, pairing, training, methods and evaluations for `rows` training rows.

    With `compare`, the methods that the experiment `demo` compares and their distillation.
    """
    batch_size = min(BATCH, 1 << (rows.bit_length() - 1))
    if device == "cuda":
        experiment = _paper_like(length, batch_size)
    else:
        iterations = max(300, min(2000, round(_BUDGET / iteration_seconds(length, vocabulary_size), -2)))
        experiment = _small(int(iterations), batch_size)
    if not compare:
        del experiment["distillation"]
        experiment["methods"] = ["pairflow"]
    return experiment


def iteration_seconds(length: int, vocabulary_size: int) -> float:
    """Seconds of one core for an iteration of BATCH rows of the network SMALL."""
    return _ITERATION + _LOGIT * length * vocabulary_size


def _small(iterations: int, batch_size: int) -> dict[str, Any]:
    """Like `demo`, with the noise of DCD as in `qm9_small`."""
    training = _optimisation(batch_size, iterations, 2.0e-3, 4.0e-5, ema_decay=0.99)
    dcd = _optimisation(batch_size, iterations // 5, 4.0e-4, 1.0e-5, ema_decay=0.99)
    dcd |= {"teacher_every": iterations // 25, "noise_max": 2.0}
    return _experiment(SMALL, 20, training, dcd, [1, 2, 4, 8, 16], trials=5)


def _paper_like(length: int, batch_size: int) -> dict[str, Any]:
    """The paper's transformer with fewer iterations."""
    network = {"name": "transformer", "width": 768, "blocks": 12, "heads": 12, "dropout": 0.1}
    training = _optimisation(batch_size, 50_000, 3.0e-4, 3.0e-6, ema_decay=0.9999)
    dcd = _optimisation(batch_size, 10_000, 6.0e-5, 1.0e-6, ema_decay=0.999)
    dcd |= {"teacher_every": 2000, "start_from": "raw"}
    steps = 20 if length <= 32 else 64
    return _experiment(network, steps, training, dcd, [1, 2, 4, 8, 16, 32, 64], trials=10)


def _optimisation(batch_size, iterations, learning_rate, final_learning_rate, ema_decay):
    return {
        "batch_size": batch_size,
        "iterations": iterations,
        "learning_rate": learning_rate,
        "warmup_iterations": max(1, iterations // 40),
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
