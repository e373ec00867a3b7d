"""Why DCD with the paper's range of noise can make one-step sampling worse: where a distilled model fails.

One step calls the network twice: on uniform noise, where sigma = -log alpha is 6.9, and for the greedy tail,
where it is 0. DCD with the paper's range never shows a student more noise than alpha = 0.31 (K = 40), which
is sigma = 1.17. So each student is sampled in several ways: as it is, with its parent's network in place of
one of the two calls, and told another sigma than the schedule's in one of them.

Bases are trained once and kept in the output folder with the students, whose results are lines of
results.jsonl; what is there is not done again. One thread.

    python -m pairflow.steps.preprocess molecules --source qm9 --length 32 --training-rows 20000 ...
    python benchmarks/dcd_range.py --data DATA --out FOLDER --seed 0 BASE [STUDENT ...]
"""

import argparse
import copy
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from pairflow import networks, rng
from pairflow.artifacts import read_table, token_array
from pairflow.config import Dcd, Training
from pairflow.flow.corruption import Uniform
from pairflow.flow.plan import SamplingPlan
from pairflow.flow.schedule import DIFFUSION
from pairflow.kinds.molecules.data.prepare import Vocabulary
from pairflow.kinds.molecules.measures.counts import count
from pairflow.networks.layers import TimeEmbedding
from pairflow.training import dcd
from pairflow.training.loop import optimise
from pairflow.training.objectives import FlowObjective, Validator
from pairflow.training.state import moving_average

CPU = torch.device("cpu")
BATCH = 256
DECAY = 0.998  # of the bases' average: after 800 iterations an inherited one still has 20 % of its base
SAMPLES = {1: 8192, 2: 4096, 4: 4096}
MLP = {"name": "mlp", "width": 256, "blocks": 2, "time_width": 128, "dropout": 0.0}
TRANSFORMER = {"name": "transformer", "width": 64, "blocks": 3, "heads": 4, "time_width": 64, "dropout": 0.0}

BASES = {  # network and iterations
    "mlp": (MLP, 4000),
    "mlp-short": (MLP, 2000),
    "mlp-timeless": (MLP, 4000),  # is told sigma = 0 at all times
    "mlp-smooth": (MLP, 4000),  # is told slow sinusoids of sigma, those of the authors' release
    "transformer": (TRANSFORMER, 1500),
}
STUDENTS: dict[str, dict] = {  # changes to the settings of DCD; `times` multiplies its iterations
    "paper": {},
    "paper-inherit": {"start_from": "raw", "ema": "inherit"},
    "paper-slow": {"learning_rate": 1e-4},
    "paper-long": {"times": 4},
    "wide": {"noise_max": 2.0},
    "widest": {"noise_max": 5.0},
}


class Timeless(nn.Module):
    """A network that is always told sigma = 0."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, x_t: Tensor, sigma: Tensor) -> Tensor:
        return self.network(x_t, torch.zeros_like(sigma))


class Data:
    """Token rows, their vocabulary and the corruption process."""

    def __init__(self, folder: Path):
        table, metadata = read_table(folder / "train.parquet", "tokens")
        held_out, _ = read_table(folder / "validation.parquet", "tokens")
        self.x1, self.validation = token_array(table["tokens"]), token_array(held_out["tokens"])
        self.length, self.symbols = metadata.dimensions
        self.padding, self.tokens = metadata.padding, metadata.vocabulary
        self.words = Vocabulary.load(folder / "vocabulary.json")
        self.corruption = Uniform(self.symbols)
        self.transformation = dcd.transformation(self.symbols)

    def validator(self, seed: int) -> Validator:
        rows = self.validation[:2048]
        return Validator(rows, self.corruption, "leave_one_out", self.padding, seed, CPU)


def build(base: str, data: Data, seed: int) -> nn.Module:
    torch.manual_seed(rng.stream_seed(seed, "weights"))
    network = networks.build(BASES[base][0], length=data.length, vocabulary_size=data.symbols)
    if base == "mlp-smooth":
        frequencies = (10_000.0 ** (-np.arange(128) / 128)).astype(np.float32)
        network.time = TimeEmbedding(MLP["time_width"], frequencies=frequencies)
    return Timeless(network) if base == "mlp-timeless" else network


def train_base(base: str, data: Data, seed: int) -> tuple[nn.Module, nn.Module, dict]:
    """The raw network, its moving average, and what the training took."""
    iterations = BASES[base][1]
    settings = Training(
        batch_size=BATCH, iterations=iterations, learning_rate=2e-3, warmup_iterations=iterations // 40,
        decay="cosine", final_learning_rate=4e-5, ema_decay=DECAY, validate_every=iterations,
    )  # fmt: skip
    objective = FlowObjective(data.x1, None, data.corruption, BATCH, "nelbo", seed, CPU)
    return run(build(base, data, seed), objective, settings, data, seed)


def distil(
    student: str, raw: nn.Module, ema: nn.Module, data: Data, seed: int, base_iterations: int
) -> tuple[nn.Module, nn.Module, dict]:
    """As `train_base`, in the paper's proportions: a fifth of the iterations, five teachers."""
    changes = dict(STUDENTS[student])
    iterations = base_iterations // 5 * changes.pop("times", 1)
    given = {
        "batch_size": BATCH, "iterations": iterations, "teacher_every": iterations // 5,
        "learning_rate": 4e-4, "warmup_iterations": iterations // 10, "decay": "cosine",
        "final_learning_rate": 1e-5, "ema_decay": 0.99, "validate_every": iterations,
    }  # fmt: skip
    settings = Dcd(**given | changes)
    average = moving_average(ema, DECAY, updates=base_iterations) if settings.ema == "inherit" else None
    objective = dcd.Consistency(settings, data.x1, data.corruption, data.transformation, seed, CPU)
    start = copy.deepcopy(raw if settings.start_from == "raw" else ema)
    trained = run(start, objective, settings, data, seed, average)
    end = float(-np.log(data.transformation(settings.noise_max)))
    trained[-1].update(settings=settings.model_dump(), range_end_sigma=end)
    return trained


def run(network, objective, settings, data, seed, average=None):
    started = time.process_time()
    trained = optimise(
        network,
        objective,
        settings,
        seed=seed,
        average=average,
        validate=data.validator(seed),
        progress=False,
    )
    facts = {"cpu_seconds": round(time.process_time() - started, 1)}
    nll = float(trained.log["validation_nll"].iloc[-1])
    facts |= {"validation_nll": round(nll, 4), "iterations": settings.iterations}
    return trained.network, trained.ema, facts


def told(first: nn.Module, tail: nn.Module, *, most: float = math.inf, least: float = 0.0):
    """A network that is `first` at every step, told sigma = `most` at most, and `tail` in the greedy tail,
    told `least` at least."""

    def network(x_t: Tensor, sigma: Tensor) -> Tensor:
        in_tail = float(sigma[0]) < 1e-3
        return tail(x_t, sigma.clamp(min=least)) if in_tail else first(x_t, sigma.clamp(max=most))

    return network


@torch.no_grad()
def sample(network, data: Data, seed: int, nfe: int) -> dict:
    """Counts of valid molecules and of different ones among them, per 1,024 samples."""
    generator = torch.Generator().manual_seed(rng.stream_seed(seed, "dcd_range", nfe))
    total = SAMPLES[nfe]
    valid, strings = 0, []
    for _ in range(total // 1024):
        x0 = data.corruption.source((1024, data.length), generator)
        plan = SamplingPlan(steps=nfe, prediction="leave_one_out")
        rows = data.corruption.sample(network, x0, plan, generator)
        strings.append([data.words.decode(row) for row in rows.numpy()])
        valid += count(strings[-1], frozenset())["valid"]
    different = [count(texts, frozenset())["unique_strict"] for texts in strings]
    return {"valid": round(valid * 1024 / total, 1), "unique": round(float(np.mean(different)), 1)}


@torch.no_grad()
def first_call(network, parent, data: Data) -> dict:
    """What the network says of uniform noise, in nats per token: its entropy, how much of it depends on the
    noise (mutual information), and its divergence from what its parent says."""
    generator = torch.Generator().manual_seed(0)
    x0 = data.corruption.source((2048, data.length), generator)
    alpha = torch.full((len(x0),), DIFFUSION.kappa(0.0))
    log_p, log_q = (data.corruption.denoiser(read)(x0, alpha).double() for read in (network, parent))
    mean = log_p.exp().mean(0)  # (N, K)
    entropy = -(log_p.exp() * log_p).sum(-1).mean()
    return {
        "entropy": round(float(entropy), 4),
        "information": round(float(-torch.xlogy(mean, mean).sum(-1).mean() - entropy), 4),
        "kl_from_parent": round(float((log_p.exp() * (log_p - log_q)).sum(-1).mean()), 4),
    }


def evaluate(network, parent, data: Data, seed: int, end: float) -> dict:
    """Samples of one model in the ways that the head of this file names; `end`: sigma at the range's end."""
    network, parent = network.eval(), parent.eval()
    found = {f"nfe{nfe}": sample(told(network, network), data, seed, nfe) for nfe in SAMPLES}
    ways = {
        "first call told end": told(network, network, most=end),
        "tail told 0.3": told(network, network, least=0.3),
        "tail told 1.17": told(network, network, least=1.1712),
        "first call told end, tail told 1.17": told(network, network, most=end, least=1.1712),
    }
    if network is not parent:
        ways |= {
            "first call by parent": told(parent, network),
            "tail by parent": told(network, parent),
            "first call by parent, tail told 1.17": told(parent, network, least=1.1712),
        }
    found |= {f"nfe1, {name}": sample(way, data, seed, 1) for name, way in ways.items()}
    return found | {"first call": first_call(network, parent, data)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("base", choices=BASES)
    parser.add_argument("students", nargs="*")
    given = parser.parse_args()
    torch.set_num_threads(1)
    data, seed = Data(given.data), given.seed
    given.out.mkdir(exist_ok=True, parents=True)
    results = given.out / "results.jsonl"
    done = (
        {line["name"] for line in map(json.loads, results.read_text().splitlines())}
        if results.exists()
        else set()
    )
    end = float(-np.log(data.transformation(-1.0)))

    def record(name, facts, found):
        line = {"name": name, "base": given.base, "seed": seed, "data": data.tokens, **facts, "found": found}
        with results.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(name, facts, json.dumps(found, indent=1), flush=True)

    name = f"{given.base}-seed{seed}"
    path = given.out / f"{name}.pt"
    if not path.exists():
        raw, ema, facts = train_base(given.base, data, seed)
        torch.save({"raw": raw.state_dict(), "ema": ema.state_dict(), "facts": facts}, path)
    saved = torch.load(path)
    raw, ema = build(given.base, data, seed), build(given.base, data, seed)
    raw.load_state_dict(saved["raw"])
    ema.load_state_dict(saved["ema"])
    if name not in done:
        record(name, saved["facts"], evaluate(ema, ema, data, seed, end))
    for student in given.students:
        if f"{name}+{student}" in done:
            continue
        path = given.out / f"{name}+{student}.pt"
        if not path.exists():
            _, distilled, facts = distil(student, raw, ema, data, seed, BASES[given.base][1])
            torch.save({"ema": distilled.state_dict(), "facts": facts}, path)
        saved, distilled = torch.load(path), build(given.base, data, seed)
        distilled.load_state_dict(saved["ema"])
        facts = saved["facts"]
        record(f"{name}+{student}", facts, evaluate(distilled, ema, data, seed, facts["range_end_sigma"]))


if __name__ == "__main__":
    main()
