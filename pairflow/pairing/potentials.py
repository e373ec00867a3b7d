"""The step `potentials`: search the potentials of a file's rows, with saved states, and write pairs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pairflow.artifacts import (
    Metadata,
    Provenance,
    digest,
    label_array,
    read_table,
    row_column,
    save_table,
    token_array,
    token_column,
)
from pairflow.artifacts.tables import points_of
from pairflow.config import FLOWS, PotentialsSettings
from pairflow.config.training import FREQUENCIES
from pairflow.errors import InputError, Interrupted
from pairflow.pairing.prior import frequencies
from pairflow.pairing.spaces import space_of
from pairflow.pairing.transport import (
    Balance,
    Search,
    SemidiscreteCoupling,
    complete,
    require_different_rows,
)
from pairflow.runtime import signals
from pairflow.runtime.resume import RERUN, ResumeOptions, add_earlier_costs, remove_states
from pairflow.runtime.snapshots import Snapshots
from pairflow.settings.conditions import ONE_PROPERTY

if TYPE_CHECKING:
    import torch


def write_potentials(
    settings: PotentialsSettings,
    path: Path,
    out: Path,
    resume: ResumeOptions,
    provenance: Provenance,
    *,
    device: "torch.device",
    threads: int | None,
    progress: bool,
) -> Balance:
    """Search the potentials of the rows in `path`, and write them to `out` with a source for each row.

    If token rows have classes, each class is balanced separately. Returns the mean balance of the classes.
    `device` is the torch device that assigns sources. An interrupted search resumes, with the same result.
    """
    data, metadata, labels = _read_data(settings, path)
    require_different_rows(str(path), data)
    x0, potentials = np.empty_like(data), np.empty(len(data), np.int32)
    balances = []
    parameters = settings.model_dump(mode="json")
    kind, inputs = FLOWS[settings.flow].pairs, {"tokens": digest(path)}
    metadata = replace(metadata, kind=kind, parameters=parameters, inputs=inputs)
    folder = resume.state_folder(out, settings.coupling, metadata.__dict__)
    add_earlier_costs(folder / "spent", provenance)
    pi = frequencies(data, metadata.dimensions[1]) if settings.noise == FREQUENCIES else None
    for label, members in classes(labels, len(data)).items():
        space = space_of(data[members], metadata.vocabulary_size, device, pi)
        search = Search(space, settings.tau, settings.seed, threads)
        snapshots = Snapshots(folder / f"class-{label}", resume.save_every)
        coupling = _search(search, snapshots, lambda: provenance.write(folder / "spent"), progress)
        x0[members], potentials[members] = coupling.sources(threads), coupling.potentials
        balances.append((len(members), coupling.balance))
    balance = _mean(balances)
    columns = {name: _column(rows, metadata) for name, rows in (("x0", x0), ("x1", data))}
    columns["potential"] = pa.array(potentials)
    written = replace(metadata, parameters={**parameters, **balance._asdict()})
    save_table(out, pa.table(columns), written, provenance)
    remove_states(folder)
    return balance


def _read_data(settings: PotentialsSettings, path: Path) -> tuple[np.ndarray, Metadata, np.ndarray | None]:
    """Read the rows in `path`: token rows (M, N), or points (M, ...) of a continuous flow.

    Returns the rows, their metadata, and the classes (M,) of token rows, or None. Raises InputError if rows
    have several properties.
    """
    flow = FLOWS[settings.flow]
    table, metadata = read_table(path, *flow.rows)
    if not flow.tokens:
        return points_of(table, metadata), metadata, None
    labels = None if metadata.condition is None else label_array(table)
    if labels is not None and labels.ndim > 1:
        raise InputError(f"{path}: expected {ONE_PROPERTY}")
    return token_array(table["tokens"]), metadata, labels


def _column(rows: np.ndarray, metadata: Metadata) -> pa.Array:
    if metadata.kind == "pairs":
        return token_column(rows, metadata.dimensions[1])
    return row_column(rows.reshape(len(rows), -1))


def classes(labels: np.ndarray | None, rows: int) -> dict[int | None, np.ndarray]:
    """Return a dict from each class to its row numbers; without `labels`, from None to all row numbers."""
    if labels is None:
        return {None: np.arange(rows)}
    return {int(label): np.flatnonzero(labels == label) for label in np.unique(labels)}


def _search(
    search: Search, snapshots: Snapshots, note_costs: Callable[[], None], progress: bool
) -> SemidiscreteCoupling:
    """Complete a search, from its last saved state if there is one, and return the coupling.

    `note_costs`, which saves the costs so far, is called before each save. Raises Interrupted on a signal of
    `signals.STOP`, after a save.
    """
    import torch

    if saved := snapshots.load():
        search.step, state = saved
        search.state = {name: value.numpy() for name, value in state.items()}

    def save_if_wanted(wanted: bool = False) -> None:
        # A signal may arrive between these two lines, and `clear` would lose it.
        handled = received[:]
        del received[: len(handled)]
        if handled or wanted or snapshots.due:
            # Costs come first: if the process is killed in between, no saved step lacks its costs.
            note_costs()
            state = {name: torch.from_numpy(value) for name, value in search.state.items()}
            snapshots.save(search.step, state)
        if stop := max((number for number in handled if number in signals.STOP), default=0):
            raise Interrupted(f"stopped after {search.step} steps, {RERUN}", stop)

    with signals.collect() as received:
        coupling = complete(search, progress=progress, after_step=save_if_wanted)
        save_if_wanted(True)  # so that a signal during the next phase, the draw of sources, loses no step
        return coupling


def _mean(balances: list[tuple[int, Any]]) -> Balance:
    """Return the mean of `balances`, pairs (number of rows, balance), weighted by the numbers of rows."""
    rows, each = zip(*balances, strict=True)
    return Balance(*(float(np.average(values, weights=rows)) for values in zip(*each, strict=True)))
