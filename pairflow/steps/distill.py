"""A model, and data or its own pairs, to a distilled model."""

import importlib
from pathlib import Path

import click

from pairflow.artifacts import Provenance, digest, read_table, token_array
from pairflow.config import DistillSettings, parse_method
from pairflow.errors import InputError
from pairflow.runtime import processes
from pairflow.runtime.resume import folder_of, remove, snapshots_of
from pairflow.steps.command import device, existing, micro_batch, out, quiet, resumable, step, threads


@step(DistillSettings)
@existing("--parent", help="Folder of the model to start from.")
@existing("--data", help="Token rows (dcd) or the parent's pairs (redi), Parquet.")
@existing("--validation", help="Validation token rows, Parquet.")
@click.option("--cache", type=click.Path(path_type=Path, file_okay=False), help="Folder for tables to reuse.")
@out("--model", help="Weights, safetensors: raw and averaged.")
@out("--description", help="Description of the model, JSON.")
@out("--log", help="Training log, Parquet.")
@resumable
@micro_batch
@device
@threads
@quiet
def main(
    settings: DistillSettings,
    parent,
    data,
    validation,
    cache,
    model,
    description,
    log,
    resume,
    save_every,
    micro_batch,
    device,
    threads,
    quiet,
):
    """Distil a model into one that needs fewer steps, by the last part of the method's name.

    A distillation that was stopped goes on where it was, to the same bits. What the parent's folder carries
    for `pairflow sample --count` is carried on. torchrun starts it on several GPUs, as `pairflow train`.
    """
    from pairflow.runtime.device import choose
    from pairflow.training import carried, loop, objectives
    from pairflow.training import model as checkpoint
    from pairflow.training.model_files import write_model

    provenance = Provenance()
    facts = _parent(settings, parent)
    files = carried.of_parent(parent, facts)
    how, seed = settings.distillation, settings.seed
    x0, x1, metadata = _read(settings, facts, parent, data)
    table, held_out = read_table(validation, "tokens")
    metadata.require_same_vocabulary(facts["vocabulary"], data, parent)
    metadata.require_same_vocabulary(held_out.vocabulary, data, validation)
    for other, path in ((facts.get("data"), parent), (held_out.data, validation)):
        metadata.require_same_data(other, data, path)
    metadata.require_split("train", data)
    held_out.require_split("validation", validation)
    where = choose(device, threads)
    provenance.device, provenance.devices = str(where), processes.world_size()
    provenance.samples = how.iterations * how.batch_size
    network, _ = checkpoint.load(parent, which=how.start_from, device=where)
    corruption, loss = checkpoint.corruption_of(facts), facts["training"]["loss"]
    made = {
        **facts,
        **settings.model_dump(mode="json"),
        "inputs": {"parent": facts["weights"], "data": digest(data), "validation": digest(validation)},
    }
    resume = resume or model.parent / f".{model.name}.resume"
    states = folder_of(resume, settings.method, {**made, "device": where.type})
    rows = token_array(table["tokens"])
    objective = importlib.import_module(f"pairflow.training.{how.name}").objective(
        how, x0=x0, x1=x1, corruption=corruption, loss=loss, seed=seed, device=where, cache=cache
    )
    trained = loop.optimise(
        network,
        objective,
        how,
        seed=seed,
        average=_average(how, facts, parent, where),
        validate=objectives.Validator(rows, corruption, facts["prediction"], held_out.padding, seed, where),
        snapshots=snapshots_of(states, save_every, provenance),
        micro_batch=micro_batch,
        progress=not quiet,
    )
    if processes.rank() == 0:
        write_model(model, description, log, trained, made, files)
        provenance.write(model)
        remove(states)


def _parent(settings: DistillSettings, parent: Path) -> dict:
    """The parent's description; InputError unless it and the settings are what the method's name says."""
    from pairflow.training.model import read_description

    method = parse_method(settings.method)
    if method.parent is None:
        raise InputError(f"method '{settings.method}': names no distillation, as in '{settings.method}+dcd'")
    if method.distillations[-1] != settings.distillation.name:
        raise InputError(
            f"method '{settings.method}': its last distillation is {method.distillations[-1]}, "
            f"but the settings are for {settings.distillation.name}"
        )
    facts = read_description(parent / "model.json")
    if facts["method"] != method.parent:
        raise InputError(
            f"{parent}: a model of {facts['method']}, but {settings.method} needs {method.parent}"
        )
    return facts


def _read(settings: DistillSettings, facts: dict, parent: Path, path: Path):
    """(x0 or None, x1, metadata) of the data, or of the pairs that this very parent made."""
    if not settings.distillation.on_pairs:
        table, metadata = read_table(path, "tokens")
        return None, token_array(table["tokens"]), metadata
    table, metadata = read_table(path, "pairs")
    if metadata.inputs.get("model") != facts["weights"]:
        raise InputError(f"{path}: not pairs that the model in {parent} made")
    return token_array(table["x0"]), token_array(table["x1"]), metadata


def _average(how, facts: dict, parent: Path, device):
    """The parent's moving average, with its decay and its age, if it is to be inherited."""
    from pairflow.training import loop
    from pairflow.training import model as checkpoint

    if how.ema == "fresh":
        return None
    averaged, _ = checkpoint.load(parent, which="ema", device=device)
    base = facts["training"]
    return loop.moving_average(averaged, base["ema_decay"], updates=base["iterations"])


if __name__ == "__main__":
    main()
