"""Which sampler makes the best samples of a trained model for the same calls of its network.

    python benchmarks/samplers.py digits demo shakespeare qm9 --out benchmarks/records/samplers.json
    python benchmarks/samplers.py --speed zinc250k --out benchmarks/records/samplers.json
    python benchmarks/samplers.py --table --out benchmarks/records/samplers.json

It trains the models of a shipped experiment, on several seeds, in the folder it is called in, and samples
each by the package's two samplers, at some temperatures, with the settings of the workflow. It then tries
samplers that the package does not have, on the models of one method, and measures their samples by the same
steps. Where `diffusers` is installed, it also compares the ancestral update with that of `diffusers`.
`--speed` measures the seconds of one thread for samples of a model that comes with pairflow. A command that
was stopped can be given again: what is finished is not made again.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
import yaml
from click.testing import CliRunner
from couplings import EXPERIMENTS, Case, make
from pairing import commit, machine
from torch import Generator, Tensor

from pairflow import cli
from pairflow.artifacts import Provenance, save_table, token_column
from pairflow.config.file import read
from pairflow.flow.plan import SamplingPlan
from pairflow.flow.posterior import (
    ancestral_posterior,
    leave_one_out_to_posterior,
    posterior_to_leave_one_out,
)
from pairflow.flow.samplers import draw
from pairflow.plan.calls import call_of
from pairflow.plan.jobs import jobs
from pairflow.training.model import DiscreteModel, Model

SAMPLERS = ("ancestral", "euler")


class Data(NamedTuple):
    """A shipped experiment: the methods and temperatures to compare, the metrics to record, and the method on
    whose models other samplers are tried."""

    shipped: str
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    samples: int
    nfe: tuple[int, ...] = (1, 2, 4, 8, 32)
    temperatures: tuple[float, ...] = (1.0,)
    seeds: int = 3
    tried: str = ""


DATA = {
    "digits": Data("digits", ("udlm", "random", "pairflow"), ("fd", "nn_copies"), 1000, tried="pairflow"),
    "demo": Data("demo_full", ("udlm", "pairflow"), ("valid", "unique_strict", "internal_diversity"), 1024),
    "shakespeare": Data(
        "shakespeare",
        ("udlm", "pairflow"),
        ("judge_ppl", "entropy"),
        1024,
        nfe=(1, 2, 4, 8),
        temperatures=(0.8, 0.9, 1.0, 1.15),
        seeds=1,
    ),
    "qm9": Data(
        "qm9_small",
        ("pairflow", "pairflow+redi"),
        ("valid", "unique_strict", "novel_strict"),
        1024,
        seeds=1,
    ),
}
# Label -> settings of `Tried`.
TRIED: dict[str, dict[str, Any]] = {
    "ancestral": {},
    "Gibbs corrector, 5 % of positions at random": {"corrected": 0.05},
    "Gibbs corrector, 5 % of positions by margin": {"corrected": 0.05, "by_margin": True},
    "entropy bound 1, others drawn again": {"bound": 1.0},
    "half drawn again from the noise": {"renoised": 0.5},
    "temperature from 1.2 to 0.6": {"temperatures": (1.2, 0.6)},
    "Euler, most certain positions first": {"certain_first": True},
    "Euler": {"euler": True},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", help=", ".join(DATA))
    parser.add_argument("--out", type=Path, default=Path("samplers.json"))
    parser.add_argument("--speed", nargs="*", default=[], help="models that come with pairflow")
    parser.add_argument("--before", type=Path, help="a folder with an earlier pairflow, for --speed")
    parser.add_argument("--turns", type=int, default=3, help="of --speed")
    parser.add_argument("--table", action="store_true", help="only print the tables of the record")
    options = parser.parse_args()
    record = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in () if options.table else options.data:
        record[name] = run(name, DATA[name])
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if not options.table and (error := against_diffusers()) is not None:
        record["diffusers"] = error
    if options.speed:
        record["speed"] = {
            model: measure_speed(model, options.before, options.turns) for model in options.speed
        }
        print(json.dumps(record["speed"], indent=1))
    if not options.table:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for name in DATA:
        if name in record:
            print(table(name, record[name]["values"]), table(name, record[name]["tried"]), sep="\n\n")


def run(name: str, data: Data) -> dict[str, Any]:
    """Train, sample and measure, and return what the record keeps."""
    configured = read(Path("workflow_config.yaml")).experiments[data.shipped]
    shipped = configured.model_dump(mode="json", exclude_unset=True)
    evaluations = {
        f"{sampler}_{temperature:g}".replace(".", "_"): {
            "nfe": [*data.nfe],
            "samples": data.samples,
            "trials": 2,
            "sampler": sampler,
            "temperature": temperature,
        }
        for sampler, temperature in product(SAMPLERS, data.temperatures)
    }
    entry = {**shipped, "methods": [*data.methods], "seeds": [*range(data.seeds)], "evaluations": evaluations}
    key = f"samplers_{name}"
    EXPERIMENTS.mkdir(exist_ok=True)
    (EXPERIMENTS / f"{key}.yaml").write_text(yaml.safe_dump({"experiments": {key: entry}}))
    make(key, Case(data.shipped, {}, data.seeds, data.metrics, data.metrics[0], 0))
    metrics = pd.read_parquet(f"results/{key}/metrics.parquet")
    metrics = metrics.assign(label=metrics.method + ", " + metrics.evaluation.str.replace("_", " ", n=1))
    metrics["calls"] = metrics.nfe + 1  # the greedy tail
    tried = [try_sampler(key, data, label, nfe) for label in TRIED if data.tried for nfe in data.nfe[1:]]
    return {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "experiment": entry,
        "values": values(metrics[metrics.evaluation.isin(evaluations)], data.metrics),
        "tried": values(pd.concat(tried), data.metrics) if tried else {},
    }


def values(metrics: pd.DataFrame, names: tuple[str, ...]) -> dict[str, Any]:
    """Metric -> label -> calls -> the mean of each seed's trials; counts as shares of the samples."""
    by_metric: dict[str, Any] = {}
    for metric in names:
        rows = metrics[(metrics.metric == metric) & metrics.calls.notna()]
        if metric in ("fd", "nn_copies"):
            rows = rows[rows.reference == "train"]
        counts = metric in ("valid", "unique_strict", "novel_strict")
        rows = rows.assign(value=rows.value / rows.samples) if counts else rows
        name = rows.metric + (" (" + rows.extractor + ")").where(rows.extractor.notna(), "")
        means = rows.assign(name=name).groupby(["name", "label", "calls", "seed"], sort=False).value.mean()
        for (each, label, calls, seed), value in means.items():
            by_calls = by_metric.setdefault(each, {}).setdefault(label, {})
            by_calls.setdefault(str(int(calls)), {})[str(int(seed))] = round(float(value), 4)
    return by_metric


def try_sampler(key: str, data: Data, label: str, nfe: int) -> pd.DataFrame:
    """The metric rows of a sampler that the package does not have, for all seeds."""
    experiment, root, frames = read(Path("workflow_config.yaml")).experiments[key], Path("results") / key, []
    planned = [job for job in jobs(root, experiment) if job.rule == "evaluate"]
    for seed in range(data.seeds):
        end = f"seed{seed}/metrics/{data.tried}/ancestral_1/nfe{nfe}.parquet"
        job = next(job for job in planned if str(job.outputs["metrics"]).endswith(end))
        folder = root / "tried" / f"{label}-{seed}-{nfe}"
        metrics, samples = folder / "metrics.parquet", folder / "samples.parquet"
        if not metrics.exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_samples(root / f"seed{seed}/models/{data.tried}", seed, samples, data.samples, nfe, label)
            replaced = {str(job.inputs["samples"]): str(samples), str(job.outputs["metrics"]): str(metrics)}
            call = call_of(root, job, experiment.data.kind)
            words = [_replaced(word, replaced) for word in call.words(quiet=True)]
            done = CliRunner().invoke(cli.main, [*words, "--threads", "1"])
            if done.exit_code:
                raise SystemExit(f"{label}: {' '.join(words)}: {done.output[-2000:]}")
        frames.append(pd.read_parquet(metrics).assign(label=label, calls=nfe + 1, seed=seed))
    return pd.concat(frames)


def _replaced(word: str, replaced: dict[str, str]) -> str:
    for old, new in replaced.items():
        word = word.replace(old, new)
    return word


def write_samples(folder: Path, seed: int, path: Path, count: int, nfe: int, label: str) -> None:
    """Write two trials of samples as the step `sample` does."""
    model = Model.load(folder)
    assert isinstance(model, DiscreteModel)
    generator = torch.Generator().manual_seed(seed)
    sampler = Tried(model, generator, **TRIED[label])
    drawn = np.concatenate([sampler(count, nfe).numpy() for _ in range(2)])
    parameters = {"method": model.method, "seed": seed, "nfe": nfe, "samples": count, "trials": 2}
    columns = {
        "tokens": token_column(drawn, model.vocabulary_size),
        "trial": np.repeat(np.arange(2, dtype=np.int32), count),
        "sample": np.tile(np.arange(count, dtype=np.int32), 2),
    }
    save_table(path, pa.table(columns), model.metadata("samples", parameters), Provenance())


class Tried:
    """A sampler for uniform noise with a greedy tail: nfe + 1 calls in all. See TRIED for its variants.

    corrected: the share of positions that a Gibbs corrector draws again in every second call (arXiv
    2605.22765): from alpha loo(x) + (1 - alpha) / K, at random positions or at those with the least margin.
    bound: accept the positions of least entropy whose entropies, without the largest, add up to it, and draw
    the others from the noise (arXiv 2505.24857). renoised: the share of the ancestral transition that is
    replaced by new noise on a drawn x1 (arXiv 2602.21185). temperatures: of the first and the last step.
    """

    def __init__(
        self,
        model: DiscreteModel,
        generator: Generator,
        *,
        corrected: float = 0.0,
        by_margin: bool = False,
        bound: float | None = None,
        renoised: float = 0.0,
        temperatures: tuple[float, float] = (1.0, 1.0),
        certain_first: bool = False,
        euler: bool = False,
    ):
        self.model, self.generator, self.symbols = model, generator, model.vocabulary_size
        self.corrected, self.by_margin, self.bound, self.renoised = corrected, by_margin, bound, renoised
        self.temperatures, self.certain_first, self.euler = temperatures, certain_first, euler

    @torch.no_grad()
    def __call__(self, count: int, nfe: int) -> Tensor:
        x = self._noise((count, self.model.length))
        updates = -(-nfe // 2) if self.corrected else nfe
        plan = SamplingPlan(steps=updates, prediction=self.model.prediction)
        alphas = [plan.schedule.kappa(t) for t in plan.times]
        for step, (now, after) in enumerate(pairwise(alphas)):
            first, last = self.temperatures
            tau = first + (last - first) * step / max(1, updates - 1)
            x = self._update(x, now, after, tau, step == updates - 1)
            if self.corrected and step >= 2 * updates - nfe:
                x = self._correct(x, after)
        return self._log_p(x, alphas[-1], 1.0).argmax(-1)

    def _update(self, x: Tensor, now: float, after: float, tau: float, last: bool) -> Tensor:
        log_loo = self._leave_one_out(x, now, tau)
        posterior = leave_one_out_to_posterior(log_loo, x, now)
        if self.euler or self.certain_first:
            return self._move(x, posterior, (after - now) / (1 - now))
        if self.bound is not None:
            entropy, order = _entropy(posterior).sort(dim=-1)
            accepted = (entropy.cumsum(-1) - entropy <= self.bound) | last
            accepted = torch.zeros_like(accepted).scatter(-1, order, accepted)
            return torch.where(accepted, draw(posterior.exp(), self.generator), self._noise(x.shape))
        q = ancestral_posterior(log_loo.exp(), x, now, after)
        if self.renoised:
            again = after * posterior.exp() + (1 - after) / self.symbols
            q = (1 - self.renoised) * q + self.renoised * again
        return draw(q, self.generator)

    def _move(self, x: Tensor, posterior: Tensor, share: float) -> Tensor:
        """Draw a share of the positions from the posterior: each with this probability, or the certain."""
        if self.certain_first:
            moving = _entropy(posterior).argsort(-1).argsort(-1) < round(share * x.shape[1])
        else:
            moving = torch.rand(x.shape, generator=self.generator) < share
        return torch.where(moving, draw(posterior.exp(), self.generator), x)

    def _correct(self, x: Tensor, alpha: float) -> Tensor:
        conditional = alpha * self._leave_one_out(x, alpha, 1.0).exp() + (1 - alpha) / self.symbols
        score = torch.rand(x.shape, generator=self.generator, dtype=torch.float64)
        if self.by_margin:
            log_p = conditional.log()
            own = log_p.gather(-1, x[..., None])[..., 0]
            other = log_p.scatter(-1, x[..., None], -torch.inf).amax(-1)
            score = other - own - torch.log(-torch.log(score.clamp(1e-12, 1 - 1e-12)))
        count = max(1, round(self.corrected * x.shape[1]))
        chosen = torch.zeros_like(x, dtype=torch.bool).scatter(-1, score.topk(count, -1).indices, True)
        return torch.where(chosen, draw(conditional, self.generator), x)

    def _leave_one_out(self, x: Tensor, alpha: float, tau: float) -> Tensor:
        log_p = self._log_p(x, alpha, tau)
        return posterior_to_leave_one_out(log_p, x, alpha) if self.model.prediction == "posterior" else log_p

    def _log_p(self, x: Tensor, alpha: float, tau: float) -> Tensor:
        log_p = self.model.corruption.log_probabilities(self.model.network, x, torch.full((len(x),), alpha))
        return torch.log_softmax(log_p.double() / tau, dim=-1)

    def _noise(self, shape: tuple[int, ...]) -> Tensor:
        return torch.randint(self.symbols, shape, generator=self.generator)


def _entropy(log_p: Tensor) -> Tensor:
    return -(log_p.exp() * log_p.clamp(min=-700)).sum(-1)


TIMED = """
import resource, sys, time, torch
import pairflow
from pairflow.runtime import memory
torch.set_num_threads(1)
memory.keep_freed()  # as the commands do
model = pairflow.load(sys.argv[1], device="cpu")
model.sample(64, nfe=8, sampler=sys.argv[2])
started = time.process_time()
model.sample(1024, nfe=8, sampler=sys.argv[2])
print(time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def measure_speed(model: str, before: Path | None, turns: int) -> dict[str, Any]:
    """The CPU seconds of one thread for 1,024 samples at NFE 8 by each sampler, and the peak memory in MiB.

    The code in the folder `before`, if there is one, takes turns with this one; `ratio` is before / now.
    """
    measured: dict[str, dict[str, list[float]]] = {}
    trees = {"now": ".", **({"before": str(before)} if before else {})}
    for _, sampler, (label, tree) in product(range(turns), SAMPLERS, trees.items()):
        command = [sys.executable, "-P", "-c", TIMED, model, sampler]  # -P: not the working directory's code
        path = {**os.environ, "PYTHONPATH": str(Path(tree).resolve())}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=path)
        seconds, memory = map(float, done.stdout.split())
        entry = measured.setdefault(sampler, {})
        entry.setdefault(label, []).append(round(seconds, 2))
        entry.setdefault(f"{label}, MiB", []).append(memory)
    for entry in measured.values() if before else ():
        pairs = zip(entry["before"], entry["now"], strict=True)
        entry["ratio"] = [round(old / new, 3) for old, new in pairs]
    return {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "seconds": measured,
    }


def against_diffusers() -> dict[str, Any] | None:
    """The largest difference of the ancestral transitions here from DiscreteDDIMScheduler of `diffusers`,
    which draws x1 and then x_s from its posterior; None without that package."""
    try:
        import diffusers
    except ImportError:
        return None
    scheduler = diffusers.DiscreteDDIMScheduler(num_inference_steps=8)
    generator, symbols, largest = torch.Generator().manual_seed(0), 11, 0.0
    logits = torch.randn((64, 1, symbols), generator=generator) * 3
    x_t = torch.randint(symbols, (64, 1), generator=generator)
    for step in range(1, 8):
        now, after = step / 8, (step + 1) / 8
        mixed = torch.zeros((64, 1, symbols), dtype=torch.float64)
        probability = logits.double().softmax(-1)
        for symbol in range(symbols):
            routes = _routes(scheduler, logits, step, x_t, symbol)
            q = routes[..., 2:3].double().expand(-1, -1, symbols) / symbols
            q = q.scatter_add(-1, x_t[..., None], routes[..., 1:2].double())
            q[..., symbol] += routes[..., 0].double()
            mixed += probability[..., symbol : symbol + 1] * q
        loo = posterior_to_leave_one_out(logits.double().log_softmax(-1), x_t, now).exp()
        ours = ancestral_posterior(loo, x_t, now, min(after, 1 - 1e-12))
        largest = max(largest, float((ours - mixed).abs().max()))
    return {"version": diffusers.__version__, "largest_difference": largest}


def _routes(scheduler: Any, logits: Tensor, step: int, x_t: Tensor, symbol: int) -> Tensor:
    """The probabilities (B, 1, 3) with which the scheduler takes the drawn x1 = `symbol`, x_t, or noise."""
    seen: list[Tensor] = []
    multinomial: Callable[..., Tensor] = torch.multinomial

    def instead(probabilities: Tensor, **options: Any) -> Tensor:
        seen.append(probabilities)
        if len(seen) == 1:  # the drawn x1
            return torch.full((len(probabilities), 1), symbol)
        return multinomial(probabilities, **options)

    torch.multinomial = instead  # type: ignore[assignment]
    try:
        scheduler.step(logits, step, x_t, temperature=1.0)
    finally:
        torch.multinomial = multinomial  # type: ignore[assignment]
    return seen[1].view(*x_t.shape, 3)


def table(name: str, by_metric: dict[str, Any]) -> str:
    """Tables in Markdown, a metric each: mean ± deviation of the seeds by the calls of the network."""
    parts = []
    for metric, labels in by_metric.items():
        calls = sorted({int(each) for by_calls in labels.values() for each in by_calls})
        lines = [f"| {name}, {metric} | {' | '.join(f'{n} calls' for n in calls)} |"]
        lines.append("|---" * (len(calls) + 1) + "|")
        for label, by_calls in labels.items():
            cells = [_cell([*by_calls.get(str(n), {}).values()]) for n in calls]
            lines.append(f"| {label} | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _cell(numbers: list[float]) -> str:
    if not numbers:
        return ""
    mean = f"{np.mean(numbers):.4g}"
    return f"{mean} ± {np.std(numbers, ddof=1):.2g}" if len(numbers) > 1 else mean


if __name__ == "__main__":
    main()
