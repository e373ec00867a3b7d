"""What a coupling gives after so many epochs, on so many rows.

    python benchmarks/epochs.py results/qm9_small --method udlm pairflow --rows 5000 20000 --seed 0 1 2 \
        --iterations 10000 --keep 625 1250 2500 5000 10000 --constant --out qm9.jsonl
    python benchmarks/epochs.py results/digits --method udlm pairflow --seed 0 1 2 --out digits.jsonl

`results/<experiment>` needs the experiment's data, and an experiment on images also its `reference` files;
network and training are as in its configuration, but for the options. Every combination
of method, rows and seed is one training, and one line of the output. Combinations that the output already has
are skipped, so a stopped command can be given again.

Measured after each number of iterations in `--keep`, on the moving average of the weights:

- of molecules `valid` per trial, and `unique` and `novel` (strict, novel against the training rows taken);
- of images the Fréchet distance `fd` per trial, and `copies`, the share that are training images;
- `loss_own` and `loss_new`: the loss, near t = 0, of up to 4,096 training rows on the pairs that the model
  trained on, and on pairs of another seed. A model that has memorised its pairs has a lower loss on its own.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import torch
from pairing import commit, machine

from pairflow import pair, rng
from pairflow.artifacts import Metadata, read_table, token_array
from pairflow.config import SampleSettings, Training, TrainSettings
from pairflow.config.file import read
from pairflow.kinds.images.settings import ExtractorSettings
from pairflow.training.loop import optimise
from pairflow.training.model import Model
from pairflow.training.objectives import FlowObjective, Validator

CPU = torch.device("cpu")
NEAR_NOISE = 1e-3  # alpha at which the loss on pairs is measured: the first sampling step's
OTHER_SEED = 10**6  # added to a seed for pairs that no training has seen
PROBED = 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path, help="results/<experiment>")
    parser.add_argument("--method", nargs="+", default=["udlm", "pairflow"])
    parser.add_argument("--rows", nargs="+", type=int, default=[0], help="training rows, 0 for all")
    parser.add_argument("--seed", nargs="+", type=int, default=[0])
    parser.add_argument("--width", type=int, help="width of an mlp, channels of a U-Net")
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--keep", nargs="+", type=int, help="iterations to measure at; default: the last")
    parser.add_argument("--constant", action="store_true", help="no decay of the learning rate")
    parser.add_argument("--nfe", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    name = options.root.name
    experiment = (
        read(Path("workflow_config.yaml")).experiments[name].model_dump(mode="json", exclude_unset=True)
    )
    training = {**experiment["training"]}
    if options.iterations:
        training["iterations"] = options.iterations
    if options.constant:
        training["decay"] = "constant"
    network = {**experiment["network"]}
    if options.width:
        network["width" if "width" in network else "channels"] = options.width
    for rows in options.rows:
        for seed in options.seed:
            for method in options.method:
                what = {"experiment": name, "method": method, "rows": rows, "seed": seed}
                what |= {"network": network, "training": training}
                if what in finished(options.out):
                    continue
                line = {**what, **run(options, what), "commit": commit(), "machine": machine()}
                with options.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")


def finished(out: Path) -> list[dict]:
    """What the lines of the output are of."""
    lines = map(json.loads, out.read_text().splitlines()) if out.exists() else []
    names = ("experiment", "method", "rows", "seed", "network", "training")
    return [{name: line[name] for name in names} for line in lines]


def run(options: argparse.Namespace, what: dict) -> dict:
    """One training and its measurements."""
    started = time.process_time()
    name, seed, training = what["method"], what["seed"], Training(**what["training"])
    table, metadata = read_table(options.root / "data/train.parquet", "tokens")
    tokens = token_array(table["tokens"])
    size = metadata.dimensions[1]
    order = rng.random_order(0, len(tokens))  # the rows of fewer are among those of more
    x1 = tokens[np.sort(order[: what["rows"]])] if what["rows"] else tokens
    sources = partial(draw_sources, name, x1, size, experiment_steps(options.root.name), seed)
    settings = TrainSettings(method=name, seed=seed, network=what["network"], training=training)
    model = Model.create(settings, metadata, CPU)
    arguments = (model.corruption, training.batch_size, training.loss, seed, CPU)
    own, new = sources(0), sources(OTHER_SEED)
    objective = FlowObjective(x1, own, *arguments)
    held = token_array(read_table(options.root / "data/validation.parquet", "tokens")[0]["tokens"])[:1000]
    bound = Validator(held, model.corruption, model.prediction, metadata.padding, seed, CPU)
    keep = sorted(options.keep or [training.iterations])
    validate_every = int(np.gcd.reduce(keep))
    measure = measure_of(options.root, x1, metadata)
    kept: list[dict] = []
    passed = iter(range(validate_every, training.iterations + 1, validate_every))

    def validate(network: torch.nn.Module) -> float:
        iteration = next(passed)
        if iteration not in keep:
            return 0.0
        averaged = replace(model, network=network.eval())
        latest = getattr(objective, "x0", None)
        row = {"iteration": iteration, "epochs": iteration * training.batch_size / len(x1)}
        row |= {"nelbo": bound(network), "seconds": time.process_time() - started}
        if own is not None:
            row["loss_own"] = pair_loss(averaged, x1, latest.numpy())
            row["loss_new"] = pair_loss(averaged, x1, new)
        row |= {f"nfe{nfe}": measure(draw(averaged, options, seed, nfe)) for nfe in options.nfe}
        kept.append(row)
        print(json.dumps({**{key: what[key] for key in ("method", "rows", "seed")}, **row}), flush=True)
        return row["nelbo"]

    how = training.model_copy(update={"validate_every": validate_every})
    optimise(model.network, objective, how, seed=seed, validate=validate, progress=False)
    return {
        "training_rows": len(x1),
        "samples": options.samples,
        "trials": options.trials,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu_seconds": time.process_time() - started,
        "kept": kept,
    }


def experiment_steps(name: str) -> int:
    """T of the experiment."""
    return read(Path("workflow_config.yaml")).experiments[name].pairing.steps


def draw_sources(
    method: str, x1: np.ndarray, size: int, steps: int, seed: int, draw: int
) -> np.ndarray | None:
    """The sources of a coupling; those of draw 0 are the workflow's. None for noise that is always new."""
    if method == "udlm":
        return None
    chosen = rng.stream_seed(seed, "redraw", draw) if draw else seed
    if method == "random":
        return rng.uniform_tokens(chosen, np.arange(len(x1)), x1.shape[1], size)
    return pair(x1, vocabulary_size=size, steps=steps, seed=chosen, threads=1, progress=False)


@torch.no_grad()
def pair_loss(model: Model, x1: np.ndarray, x0: np.ndarray) -> float:
    """The cross-entropy of x1 given x0 near t = 0, in nats per token: what the model knows of pairs."""
    rows = rng.random_order(1, len(x1))[:PROBED]
    total, corruption = 0.0, model.corruption
    for part in np.array_split(rows, max(1, len(rows) * x1.shape[1] // 2**16)):
        states = torch.tensor(x0[part]).long()
        data = torch.tensor(x1[part]).long()
        log_p = corruption.log_probabilities(model.network, states, torch.full((len(part),), NEAR_NOISE))
        total -= float(log_p.gather(-1, data[..., None]).double().sum())
    return total / (len(rows) * x1.shape[1])


def draw(model: Model, options: argparse.Namespace, seed: int, nfe: int) -> list[np.ndarray]:
    """The samples of each trial."""
    settings = SampleSettings(samples=options.samples, trials=options.trials, nfe=nfe, seed=seed)
    plan = model.plan(settings, nfe, options.samples)
    return [
        model.draw(plan, options.samples, seed, "sample", trial, 0)[1].numpy()
        for trial in range(options.trials)
    ]


def measure_of(root: Path, x1: np.ndarray, metadata: Metadata) -> Callable[[list[np.ndarray]], dict]:
    """What to measure on trials of samples: counts of molecules, or distances of images."""
    return images(root) if metadata.shape else molecules(root, x1)


def molecules(root: Path, x1: np.ndarray) -> Callable[[list[np.ndarray]], dict]:
    from pairflow.kinds.molecules.data.prepare import Vocabulary
    from pairflow.kinds.molecules.measures.counts import count

    words = Vocabulary.load(root / "data/vocabulary.json")
    known = {words.decode(row) for row in x1}

    def measure(trials: list[np.ndarray]) -> dict:
        counts = [count([words.decode(row) for row in rows], known) for rows in trials]
        names = {"valid": "valid", "unique": "unique_strict", "novel": "novel_strict"}
        return {name: [trial[key] for trial in counts] for name, key in names.items()}

    return measure


def images(root: Path) -> Callable[[list[np.ndarray]], dict]:
    from pairflow.kinds.images import rows as image_rows
    from pairflow.kinds.images.measure import ImageComparison
    from pairflow.kinds.images.measures import nearest
    from pairflow.kinds.images.settings import RealImages
    from pairflow.metrics.frechet import Moments, frechet_distance

    reference = root / "reference"
    files = [root / "data/train.parquet", root / "data/validation.parquet"]
    files += [reference / "train.parquet", reference / "test.parquet"]
    compared = ImageComparison.read(RealImages(*files), ExtractorSettings(weights="digits"), CPU)
    train = compared.train

    def measure(trials: list[np.ndarray]) -> dict:
        values: dict[str, list[float]] = {"fd": [], "fd_test": [], "copies": []}
        for rows in trials:
            drawn = image_rows.ImageRows(train.path, rows.astype(train.tokens.dtype), train.metadata)
            everyone = np.arange(len(rows))
            features, _ = compared.describe(drawn, everyone, progress=False)
            moments = Moments.from_features(features)
            values["fd"].append(float(frechet_distance(moments, compared.references["train"].whole)))
            values["fd_test"].append(float(frechet_distance(moments, compared.references["test"].whole)))
            values["copies"].append(float((nearest(drawn.values, train.values, device=CPU)[0] == 0).mean()))
        return values

    return measure


if __name__ == "__main__":
    main()
