"""Suggests an experiment on a user's molecules: its rules and its scale."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rdkit import rdBase

from pairflow import published
from pairflow.config import check, parse_method, suggest
from pairflow.config.training import FREQUENCIES
from pairflow.data.draft import NO_START, Draft, DraftRequest, Entry, own_split, table_lines
from pairflow.data.source import DatasetSize
from pairflow.data.split import is_held_out, split_rows
from pairflow.data.tabular import columns, describe_sheet, is_table
from pairflow.errors import InputError
from pairflow.files import Json, opened, split_lines, suffix_of
from pairflow.kinds.molecules.data import library
from pairflow.kinds.molecules.data.data_sets import MoleculeFile
from pairflow.kinds.molecules.data.draft_condition import ask_for_classes, find_condition, suggest_columns
from pairflow.kinds.molecules.data.library import Row
from pairflow.kinds.molecules.data.prepare import SPECIALS
from pairflow.kinds.molecules.data.reading import canonicalise, read_molecule
from pairflow.kinds.molecules.data.representations import REPRESENTATIONS
from pairflow.kinds.molecules.data.survey import (
    SAMPLED_ROWS,
    TINY,
    Survey,
    are_molecules,
    draw_rows,
    find_column,
    find_foreign,
    find_smiles,
    list_counts,
)
from pairflow.kinds.molecules.settings import LONGEST, Molecules, NewLibrary, Notation, Standardisation
from pairflow.runtime.progress import bar
from pairflow.runtime.threads import available_cpus
from pairflow.training.model_files import read_description, read_symbols

MINIMUM = 100  # distinct molecules
_HEAD = 2**20  # bytes of a .txt file from which its kind is found
_EPOCHS = {"from scratch": 100, "fine-tuned": 40}  # of a training on groups, at most
_SURVEYED = 50_000  # rows that are looked at, because groups take RDKit 3 ms a molecule
FEW = 20_000  # molecules; with fewer, a training on drug-like ones starts from the model _START
_START = "zinc250k"  # in groups
_FEW_ATOMS = 15  # groups were measured on molecules of 23 atoms (ZINC-250k), SELFIES also on 7 and 9


def recognise(request: DraftRequest) -> str:
    """Return why the file `request.file` is taken for molecules, such as "by its suffix"; an empty text for
    other suffixes, a table without SMILES, and a .txt file of which few lines hold SMILES."""
    path, taken_as = request.file, request.taken_as
    reason = f"by --as {taken_as}" if taken_as else "by its suffix"
    if taken_as in ("molecules", "text", "rows"):
        return reason * (taken_as == "molecules")
    if taken_as or is_table(path):
        return reason * _has_molecules(path, request.settings)
    if (suffix := suffix_of(path)) != ".txt":
        return reason * library.is_known(path)
    if request.settings.rows or not path.is_file():
        return ""
    if library.is_table(path):
        return "because its header names a column of SMILES"
    with opened(path, suffix) as (content, _):
        head = content.read(_HEAD).decode("utf-8-sig", errors="replace")
    lines = islice((line for line in split_lines(head) if line.strip()), SAMPLED_ROWS)
    holds = are_molecules(line.split()[0] for line in lines) or library.holds_smiles(path)
    return "because most of its lines hold a molecule" if holds else ""


def _has_molecules(path: Path, settings: NewLibrary) -> bool:
    """Return whether a table has SMILES in `settings.column`, or else in any column. A table without the
    named column, or with molecules in another notation, counts as well: these faults are reported later."""
    column, heads = settings.column, [fields for _, fields in columns(path, SAMPLED_ROWS, settings.sheet)]
    if column:
        heads = [{column: fields[column]} for fields in heads if column in fields]
    foreign = not column and any(any(find_foreign(fields)) for fields in heads)
    return not heads or any(map(find_smiles, heads)) or foreign


class Start(NamedTuple):
    """A model to start training from: its name in the experiment, and what the new data must share with
    it: N (`length`), the network's settings, the notation, and the noise ("uniform" or by frequency). The
    vocabulary of the new data begins with the model's `symbols`."""

    name: str
    length: int
    network: Json
    representation: str
    symbols: tuple[str, ...]
    noise: str


def draft_molecules(request: DraftRequest, reason: str) -> Draft:
    """Read the file of molecules `request.file`, and suggest an experiment on it. `reason` is the result of
    `recognise`. Raises InputError if no experiment is possible."""
    settings, file = request.settings, request.file
    if settings.rows:
        raise InputError(f"{file}: molecules; --rows is for text")
    if request.taken_as == "table" and not library.is_table(file):
        raise InputError(f"{file}: a table of molecules needs a name that ends in .csv, or a column SMILES")
    start = read_start(request.parent, request.start) if request.parent else None
    if start:
        kind = start.representation
        if settings.representation not in (None, kind):
            raise InputError(
                f"--representation: {settings.representation}, but the model to start from has {kind}"
            )
        settings = settings.model_copy(update={"representation": kind})
    column, sheet, fields, title = _read_head(file, settings)
    title += f", {reason}"
    if request.source in Molecules.names:
        raise InputError(f"{file}: has the name of a data set of the workflow; rename the file")
    chosen_data = {"column": column, "sheet": sheet, **own_split(request)}
    data: Entry = {"source": request.source, **{key: value for key, value in chosen_data.items() if value}}
    if not settings.representation:
        sample = library.read_rows(file, column or "smiles", sheet=sheet)
        chosen = choose_representation(islice(sample, SAMPLED_ROWS), settings)
        settings = settings.model_copy(update={"representation": chosen})
    condition = None
    if settings.condition:
        condition = find_condition(settings.condition, fields, file, settings.replicates, sheet)
    source = MoleculeFile(file, settings.held_out and Path(settings.held_out), settings.split_column)
    every = source.rows(column or "smiles", not request.quiet, sheet)
    rules = check(Molecules, {**data, "length": LONGEST, **chosen_rules(settings)}, str(file))
    rows, total = draw_rows(every, _SURVEYED)
    surveyed = bar(rows, total=len(rows), desc="survey", unit="row", quiet=request.quiet)
    counts = Survey(surveyed, rules, library.unit_of(file), available_cpus(), total)
    advice, unused = [*_advice(counts, settings, fields)], None
    if not condition and not settings.held_out:  # which goes with no condition on a column
        repeated = library.repeated_names(file, sheet) if library.is_table(file) else ()
        single = {name: values for name, values in fields.items() if name not in repeated}
        advice += suggest_columns(single)
    if condition:
        condition = condition.fitted(counts)
        data["condition"] = condition.entry()
        advice += condition.describe(counts, request.unused)
        unused = condition.unused()
    make = partial(_draft, request, settings, counts, data, title)
    draft = make(start, advice=advice, unused=unused)
    if start or request.start == NO_START:
        return draft
    found, sentence = find_start(counts, settings, draft.size)
    if not found:
        return replace(draft, advice=(*advice, *sentence))
    return make(found, advice=(*advice, *sentence), unused=unused, scratch=draft)


def _read_head(file: Path, settings: NewLibrary) -> tuple[str | None, str | None, dict[str, list[str]], str]:
    """Return the name of the column with SMILES, its sheet, the first fields of each column by its name,
    and the format of the file in words. For an SDF file the first is the data item with names, or None.
    For a file that has no columns the name is None, and there are no fields."""
    title = library.format_of(file)
    title = "table" if title == "CSV" and suffix_of(file) != ".csv" else title
    if title == "SDF":
        title += ", the structures of its records"
        title += f", names in {settings.column!r}" * (settings.column not in (None, "smiles"))
        return settings.column, settings.sheet, library.data_items(file, SAMPLED_ROWS), title
    if not library.is_table(file):
        field = library.find_field(file)
        title += f", in field {field[1] + 1} of each line" if field and field != (None, 0) else ""
        return None, settings.sheet, {}, title
    column, sheet, fields, others = find_column(file, settings.column, settings.sheet)
    names = library.name_column(fields, column)
    title += f"{describe_sheet(file, sheet=sheet)}, column {column!r}"
    title += f" (--column chooses another: {', '.join(map(repr, others))})" * bool(others)
    return column, sheet, fields, title + f", names in {names!r}" * (names is not None)


def _draft(
    request: DraftRequest,
    settings: NewLibrary,
    counts: Survey,
    data: Entry,
    title: str,
    start: Start | None,
    **more: Any,
) -> Draft:
    """Suggest an experiment on the molecules that `counts` describes.

    Args:
        request: the file, and the choices of the user that hold for all kinds of data.
        settings: the choices of the user for molecules.
        data: the experiment's section `data` so far: the file, and how it is read.
        title: how the file was read, in words.
        start: the model to start training from, or None.
        more: further fields of the Draft.
    """
    device = request.device
    if start and start.network.get("width", suggest.WIDE) < suggest.WIDE:
        device = "cpu"  # small models are tuned on a GPU as on a CPU, where that was measured
    experiment, size, left_out = plan(counts, settings, data, device, start)

    def with_iterations(iterations: int) -> Entry:
        return experiment | _scale(settings, size, device, start, iterations)

    return Draft(
        experiment=experiment,
        size=size,
        content=f"{counts.of:,} rows, {len(counts.lengths):,} distinct molecules"
        + f" among {counts.total:,} of them, drawn at random" * (counts.total < counts.of)
        + ".",
        table=table_lines(
            f"{request.file} ({title})",
            list_counts(counts, experiment["data"], size, left_out, request.rejects),
        ),
        rejected=counts.rejects.rename(columns={"number": counts.unit}),
        hours=settings.hours or suggest.hours(experiment["network"], device),
        most=_most_iterations(experiment, size) if device == "cpu" else None,
        with_iterations=with_iterations,
        **more,
    )


def find_start(counts: Survey, settings: NewLibrary, size: DatasetSize) -> tuple[Start | None, list[str]]:
    """Return the model that comes with pairflow if the training should start from it, and a list with a
    sentence that says so: for few molecules, written in groups. If such molecules do not fit that model,
    return None and a list with the reason; for all other molecules, None and an empty list. `counts`
    describes the file, and `size` is of the experiment's data."""
    few = np.count_nonzero(counts.lengths <= size.length) / counts.share < FEW
    if settings.representation != "groups" or not few:
        return None, []
    start = read_start(published.locate(_START), _START)
    try:
        _fitting_length(counts, settings, start)
    except InputError as reason:
        return None, [f"The training starts from scratch, not from the model {_START}: {reason}."]
    return start, [
        f"With fewer than {FEW:,} molecules the training starts from the weights of {_START}, a model that "
        "comes with pairflow and has seen many more. To start from scratch: `--from none`."
    ]


def _most_iterations(experiment: Entry, size: DatasetSize) -> int | None:
    """Return the most iterations that are worth training on molecules in groups (docs/results.md,
    "Groups"); None for SMILES and SELFIES. `experiment` has its settings, and `size` is of its data."""
    if experiment["data"]["representation"] != "groups":
        return None
    epochs = _EPOCHS["fine-tuned" if "from" in experiment else "from scratch"]
    return epochs * size.rows // experiment["training"]["batch_size"]


def read_start(folder: Path, name: str) -> Start:
    """Read what new molecules must agree with to fine-tune the model in `folder` on them; `name` is what the
    experiment calls the model. Raises InputError unless it is an unconditional model of molecules without
    masks."""
    facts, vocabulary = read_description(folder / "model.json"), folder / "vocabulary.json"
    if not vocabulary.is_file():
        raise InputError(f"{vocabulary}: no such file; copy it from the folder of the model's data")
    symbols = read_symbols(vocabulary)
    kind = symbols.kind
    masked = parse_method(facts["method"]).corruption != "uniform"
    if kind not in REPRESENTATIONS or masked or facts.get("condition"):
        raise InputError(
            f"{folder}: expected an unconditional model of molecules without masks, found "
            f"{facts['method']} with symbols of {kind}"
        )
    noise = facts.get("noise") or "uniform"
    return Start(name, facts["length"], facts["network"], kind, symbols.tokens or (), noise)


def choose_representation(rows: Iterable[Row], settings: NewLibrary) -> Notation:
    """Choose the notation of molecules by `rows`, some rows of the file: SELFIES if half of the molecules
    or more have at most _FEW_ATOMS heavy atoms, if no row can be read, or if molecules may have several
    parts, which groups cannot write; otherwise groups."""
    sizes = []
    with rdBase.BlockLogs():
        for row in rows:
            with suppress(InputError):
                sizes.append(canonicalise(read_molecule(row), settings)[0].GetNumHeavyAtoms())
    small = not sizes or np.median(sizes) <= _FEW_ATOMS
    return "selfies" if small or settings.fragments == "keep" else "groups"


def chosen_rules(settings: NewLibrary) -> Entry:
    """Return the rules to standardise and split molecules, as keys of an experiment's section `data`."""
    split = () if settings.own_split else ("split", "validation_fraction")
    rules = settings.model_dump(include={*Standardisation.model_fields})
    keys = "representation", *rules, *split, "max_too_long_share"
    return {key: getattr(settings, key) for key in keys}


def plan(
    counts: Survey, settings: NewLibrary, data: Entry, device: str, start: Start | None = None
) -> tuple[Entry, DatasetSize, int]:
    """Choose the settings of an experiment on the molecules that `counts` describes. `settings` are the
    choices of the user, `data` is the section `data` so far, `device` is "cpu" or "gpu", and `start` is the
    model to start training from.

    Returns the experiment, the size of its data, and the number of molecules that are left out of training
    but count as known. Raises InputError if the molecules are too few or too long, or cannot be split.
    """
    length = _fitting_length(counts, settings, start)
    fitting = counts.lengths <= length
    seed = Molecules.model_fields["split_seed"].default
    groups = counts.groups[fitting] if settings.split == "scaffold" else None
    own = np.flatnonzero(fitting & counts.held_out).tolist() if settings.own_split else None
    split = split_rows(np.flatnonzero(fitting), settings.validation_fraction, seed, None, own, groups)
    sides = len(split), int((split == "train").sum()), int((split == "validation").sum())
    total, available, held_out = (round(number / counts.share) for number in sides)
    training_rows = suggest.training_rows(available, device)
    data = {
        **data,
        "length": length,
        "drop_duplicates": True,
        **chosen_rules(settings),
        **({"training_rows": training_rows} if training_rows else {}),
    }
    symbols = counts.vocabulary_size(length, start.symbols if start else SPECIALS)
    size = DatasetSize(training_rows or available, held_out, symbols, length)
    number = f"about {total:,}" if counts.total < counts.of else f"{total:,}"
    scale = _scale(settings, size, device, start)
    if "condition" in data:
        scale["evaluations"] |= ask_for_classes(data["condition"])
    experiment = {
        "description": f"{number} molecules of {Path(data['source']).name}, at a scale for this machine",
        "scale": "reduced",
        "seeds": [0],
        "data": data,
        **({"from": start.name} if start else {}),
        "chemistry": {"plausible": True},
        **scale,
    }
    return experiment, size, available - size.rows


def _fitting_length(counts: Survey, settings: NewLibrary, start: Start | None) -> int:
    """Return N, the tokens per row: that of the model `start`, or else one for the molecules of `counts`.
    Raises InputError if N is too large, if more molecules than allowed are too long for that model, or if
    fewer than MINIMUM fit."""
    length = start.length if start else counts.length(settings.max_too_long_share)
    total = int(np.count_nonzero(counts.lengths <= length))
    longer = 1 - total / len(counts.lengths)
    if start and longer > settings.max_too_long_share:
        raise InputError(
            f"{longer:.1%} of the molecules are longer than the {length} tokens of the model to start from; "
            "--max-too-long-share says how many may be left out"
        )
    if total < MINIMUM:
        raise InputError(
            f"{total} distinct molecules are too few to train on and to hold some out; expected at least "
            f"{MINIMUM}" + f". Rejected rows: {counts.say_rejected()}" * bool(len(counts.rejects))
        )
    if length > LONGEST:
        raise InputError(
            f"molecules of {length} tokens are too long; expected at most {LONGEST} (--max-too-long-share)"
        )
    return length


def _scale(
    settings: NewLibrary, size: DatasetSize, device: str, start: Start | None, iterations: int | None = None
) -> Entry:
    """Return the settings of network, training and evaluations for data of the size `size`, as keys of the
    experiment. `start` is the model to fine-tune, if there is one; `iterations` replaces the usual number.

    Groups are many, and most of them rare. With the NELBO a model makes too few rare ones, and a temperature
    below 1 makes them still rarer (docs/results.md, "Groups").
    """
    sizes, network = (size.length, size.vocabulary_size, size.rows), start.network if start else None
    compare, groups = settings.compare, settings.representation == "groups"
    if groups and device == "cpu":
        network = network or suggest.TRANSFORMER
    scale = suggest.experiment(*sizes, device, compare, iterations, network, fine_tuned=start is not None)
    if groups:
        scale["training"]["loss"] = "cross_entropy"
        scale["evaluations"]["main"].pop("temperature", None)
        # Better than a greedy tail at equal calls (docs/results.md, "Beside other generators").
        scale["evaluations"]["main"] |= {"sampler": "euler", "greedy_tail": False, "grammar": True}
    by_frequency = start.noise == FREQUENCIES if start else groups
    if by_frequency:  # docs/couplings.md, "Noise by frequency"
        scale["noise"] = FREQUENCIES
        if compare:  # DCD needs uniform noise
            del scale["distillation"]
            scale["methods"].remove("pairflow+dcd")
    return scale


def _advice(counts: Survey, settings: NewLibrary, fields: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a sentence for each option of `pairflow new` that suits the file but is not given. `counts`
    describes the molecules, and `fields` has the first fields of each column."""
    for name, labels in fields.items() if not settings.own_split else ():
        if all(is_held_out(label) is not None for label in labels):
            yield f"The column {name!r} holds a split. To keep it: --split-column {shlex.quote(name)}."
    charged = counts.features["with charges, except nitro groups"]
    if counts.ions and settings.charges == "keep":
        yield (
            f"Consider --charges neutralise: {charged:,} of the molecules have charges, {counts.ions:,} of "
            "them because a counter-ion was removed."
        )
    tiny = [*counts.features.values()][-1]
    if tiny and settings.min_heavy_atoms == 1:
        yield f"Consider --min-heavy-atoms {TINY}: {tiny:,} molecules are smaller, such as solvents and ions."
