"""The potentials of a file's rows, with a source for each row: searched, saved on the way, and written."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, digest, read_table, save_table, token_array, token_column
from pairflow.config import PotentialsSettings
from pairflow.errors import Interrupted
from pairflow.pairing.transport import Balance, Search, SemidiscreteCoupling, complete, start
from pairflow.runtime import signals
from pairflow.runtime.resume import RERUN, ResumeOptions, add_earlier_costs, remove_states
from pairflow.runtime.snapshots import Snapshots


def write_potentials(
    settings: PotentialsSettings,
    path: Path,
    out: Path,
    resume: ResumeOptions,
    provenance: Provenance,
    *,
    threads: int | None,
    progress: bool,
) -> Balance:
    """Search the potentials of the token rows in `path`, and write pairs with them to `out`.

    Where the rows have classes, each class is balanced on its own. Returns the mean balance of the classes.
    An interrupted search resumes, to the same bytes.
    """
    table, metadata = read_table(path, "tokens")
    tokens, size = token_array(table["tokens"]), metadata.dimensions[1]
    x0, potentials = np.empty_like(tokens), np.empty(len(tokens), np.int32)
    balances = []
    parameters = settings.model_dump(mode="json")
    metadata = replace(metadata, kind="pairs", parameters=parameters, inputs={"tokens": digest(path)})
    folder = resume.state_folder(out, settings.coupling, metadata.__dict__)
    add_earlier_costs(folder / "spent", provenance)
    for label, members in classes(table, metadata).items():
        search = start(
            tokens[members], vocabulary_size=size, tau=settings.tau, seed=settings.seed, threads=threads
        )
        snapshots = Snapshots(folder / f"class-{label}", resume.save_every)
        found = _search(search, snapshots, lambda: provenance.write(folder / "spent"), progress)
        x0[members], potentials[members] = found.sources(threads), found.potentials
        balances.append((len(members), found.balance))
    balance = _mean(balances)
    columns = {
        "x0": token_column(x0, size),
        "x1": token_column(tokens, size),
        "potential": pa.array(potentials),
    }
    written = replace(metadata, parameters={**parameters, **balance._asdict()})
    save_table(out, pa.table(columns), written, provenance)
    remove_states(folder)
    return balance


def classes(table: pa.Table, metadata: Metadata) -> dict[int | None, np.ndarray]:
    """The rows (M',) of each class of the data; all rows under None where there are no classes."""
    if metadata.condition is None:
        return {None: np.arange(len(table))}
    labels = table["label"].to_numpy()
    return {int(label): np.flatnonzero(labels == label) for label in np.unique(labels)}


def _search(
    search: Search, snapshots: Snapshots, note_costs: Callable[[], None], progress: bool
) -> SemidiscreteCoupling:
    """Complete a search, from its last saved state on; Interrupted on a signal of `signals.STOP`.

    `note_costs` is called before each save.
    """
    import torch

    if saved := snapshots.load():
        search.step, state = saved
        search.state = {name: value.numpy() for name, value in state.items()}

    def after_step() -> None:
        handled = received[:]
        del received[: len(handled)]
        if handled or snapshots.due:
            note_costs()
            snapshots.save(
                search.step, {name: torch.from_numpy(value) for name, value in search.state.items()}
            )
        if stop := max((number for number in handled if number in signals.STOP), default=0):
            raise Interrupted(f"stopped after {search.step} steps, {RERUN}", stop)

    with signals.collect() as received:
        return complete(search, progress=progress, after_step=after_step)


def _mean(balances: list[tuple[int, Any]]) -> Balance:
    """The mean of the balances, weighted by the rows of each."""
    rows = [count for count, _ in balances]
    return Balance(
        *(
            float(np.average(values, weights=rows))
            for values in zip(*(one for _, one in balances), strict=True)
        )
    )
