"""Token rows or pairs to a model."""

from pairflow.artifacts import Provenance, digest, read_table, token_array
from pairflow.config import TrainSettings, parse_method
from pairflow.errors import InputError
from pairflow.runtime import processes
from pairflow.runtime.resume import folder_of, remove, snapshots_of
from pairflow.steps.command import device, existing, micro_batch, out, quiet, resumable, step, threads


@step(TrainSettings)
@existing("--data", help="Token rows (mdlm, udlm) or pairs (random, pairflow), Parquet.")
@existing("--validation", help="Validation token rows, Parquet.")
@existing("--vocabulary", required=False, help="Vocabulary of molecules, JSON: put beside the model.")
@existing(
    "--smiles", required=False, help="Canonical SMILES of the data set, Parquet: hashed beside the model."
)
@out("--model", help="Weights, safetensors: raw and averaged.")
@out("--description", help="Description of the model, JSON.")
@out("--log", help="Training log, Parquet.")
@resumable
@micro_batch
@device
@threads
@quiet
def main(
    settings: TrainSettings,
    data,
    validation,
    vocabulary,
    smiles,
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
    """Train a base: mdlm and udlm draw noise afresh, random and pairflow keep one source per data point.

    A training that was stopped goes on where it was, to the same bits. With --vocabulary and --smiles the
    model's folder alone will do for `pairflow sample --count`. Several GPUs share each batch where torchrun
    starts it, as in `torchrun --nproc-per-node 2 -m -- pairflow.steps.train ...`.
    """
    import torch

    from pairflow import networks, rng
    from pairflow.flow.corruption import CORRUPTIONS
    from pairflow.runtime.device import choose
    from pairflow.training import carried, loop, objectives
    from pairflow.training.model_files import write_model

    provenance = Provenance()
    x0, x1, metadata = _read(settings.method, data)
    table, held_out = read_table(validation, "tokens")
    metadata.require_same_vocabulary(held_out.vocabulary, data, validation)
    metadata.require_same_data(held_out.data, data, validation)
    metadata.require_split("train", data)
    held_out.require_split("validation", validation)
    files = carried.of_data(vocabulary, smiles, data, metadata)
    where = choose(device, threads)
    provenance.device, provenance.devices = str(where), processes.world_size()
    torch.manual_seed(rng.stream_seed(settings.seed, "weights"))
    training, seed = settings.training, settings.seed
    provenance.samples = training.iterations * training.batch_size
    corruption = CORRUPTIONS[parse_method(settings.method).corruption](
        metadata.vocabulary_size, metadata.mask
    )
    prediction = corruption.losses[training.loss].learns
    network = networks.build(
        settings.network.model_dump(),
        length=metadata.length,
        vocabulary_size=corruption.symbols,
        shape=metadata.shape,
        mask=corruption.mask,
    ).to(where)
    facts = {
        **settings.model_dump(mode="json"),
        "length": metadata.length,
        "vocabulary_size": metadata.vocabulary_size,
        "vocabulary": metadata.vocabulary,
        "mask": metadata.mask,
        "shape": metadata.shape,
        "data": metadata.data,
        "prediction": prediction,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "inputs": {"data": digest(data), "validation": digest(validation)},
        **carried.described(files),
    }
    resume = resume or model.parent / f".{model.name}.resume"
    states = folder_of(resume, settings.method, {**facts, "device": where.type})
    held_out_rows = token_array(table["tokens"])
    trained = loop.optimise(
        network,
        objectives.FlowObjective(x1, x0, corruption, training.batch_size, training.loss, seed, where),
        training,
        seed=seed,
        validate=objectives.Validator(held_out_rows, corruption, prediction, metadata.padding, seed, where),
        snapshots=snapshots_of(states, save_every, provenance),
        micro_batch=micro_batch,
        progress=not quiet,
    )
    if processes.rank() == 0:
        write_model(model, description, log, trained, facts, files)
        provenance.write(model)
        remove(states)


def _read(method: str, path):
    """(x0 or None, x1, metadata) of the file that the method trains on."""
    coupling = parse_method(method).coupling
    if parse_method(method).parent:
        raise InputError(f"method '{method}': this step trains bases, `pairflow distill` the rest")
    if coupling is None:
        table, metadata = read_table(path, "tokens")
        return None, token_array(table["tokens"]), metadata
    table, metadata = read_table(path, "pairs")
    found = metadata.parameters["coupling"]
    if found != parse_method(coupling).base:
        raise InputError(f"{path}: pairs of the coupling {found}, but the method is {method}")
    return token_array(table["x0"]), token_array(table["x1"]), metadata


if __name__ == "__main__":
    main()
