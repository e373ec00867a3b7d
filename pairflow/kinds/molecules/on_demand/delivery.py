"""Delivers molecules for `sample --count`, filtered and described, and reads molecules for `score`.

With SELFIES a prefix is a whole molecule, and the rest of the sample is bonded to its last atom. There are no
templates for SELFIES, because a gap in a SMILES string is not a gap in its SELFIES. For groups there are
neither prefixes nor templates, because a group that grows becomes another token.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from rdkit import Chem, rdBase
from torch import Tensor

from pairflow import published, rng
from pairflow.artifacts import Metadata, read_metadata
from pairflow.config import check
from pairflow.data.delivery import Candidate, Delivery, Rows, Scored
from pairflow.errors import InputError
from pairflow.flow.given import OPEN, count_given, given_row, given_start
from pairflow.flow.samplers import FREE
from pairflow.kinds.molecules.data.groups import join_groups, tokenize_groups
from pairflow.kinds.molecules.data.known import KnownMolecules
from pairflow.kinds.molecules.data.library import unit_of
from pairflow.kinds.molecules.data.prepare import BOS, EOS, PAD, UnknownToken, Vocabulary
from pairflow.kinds.molecules.data.reading import canonicalise, read_molecule
from pairflow.kinds.molecules.data.survey import read_found
from pairflow.kinds.molecules.measures.plausible import Norms, describe_oddities
from pairflow.kinds.molecules.measures.training_molecules import TrainingNeighbours
from pairflow.kinds.molecules.on_demand import files
from pairflow.kinds.molecules.on_demand.scaffolds import Growth, given_tokens, read_scaffolds
from pairflow.kinds.molecules.on_demand.selection import KnownByRules, Selection, embed, filters_from
from pairflow.kinds.molecules.on_demand.unknown_groups import KnownGroups
from pairflow.kinds.molecules.settings import Standardisation
from pairflow.kinds.molecules.settings.demand import MoleculeDemand, parse_noises
from pairflow.kinds.molecules.structures.descriptors import describe, tabulate
from pairflow.kinds.molecules.structures.similarity import Neighbours
from pairflow.kinds.molecules.structures.standardise import say_rules
from pairflow.limits import USABLE
from pairflow.plan import paths
from pairflow.runtime.threads import available_cpus
from pairflow.training.model import FIRST_ROWS, DiscreteModel, Model

_NAMED = 3  # most molecules that a note names
SMILES, NORMS = "smiles.parquet", "norms.parquet"
_ADVICE = {
    "invalid": "try a larger --nfe or a model trained longer",
    "known": "the model makes few molecules that it was not trained on; leave out --novel",
    "repeated": "the model makes few others with these settings; ask for fewer, or leave out --unique",
}


class MoleculeDelivery(Delivery):
    """Delivers the molecules of a model.

    `selection` decides which samples are delivered, and counts its decisions. `growth` lets samples grow from
    scaffolds; it is None without scaffolds. `origins` are the molecules to vary, if there are any.
    """

    noun = "molecules"

    def __init__(self, model: DiscreteModel, settings: MoleculeDemand):
        self.model = model
        self._read(settings)
        self.filters = filters_from(settings, self.norms)
        self.vocabulary = Vocabulary.load(model.vocabulary_file())
        self.given = given_molecule(settings, self.vocabulary, model.length)
        self.growth: Growth | None = None
        if settings.scaffold:
            self._grow(settings.scaffold)
        self.origins: list[Candidate] = []
        if settings.like:
            path = Path(settings.like)
            self.origins, self.note = read_seeds(path, model)
            self.inputs = (path,)
            self.noises = parse_noises(settings.noise)
            self.seeds = torch.tensor(np.array([origin.tokens for origin in self.origins], np.int64))
        self.known: Any = self._read_known() if settings.novel else None
        self.begin()

    def _read_known(self) -> KnownByRules:
        """Read the hashes of the molecules of the model's data set, and the data set's rules."""
        return KnownByRules(KnownMolecules.load(self.model.known_file()), rules_of(self.model))

    def _grow(self, source: str) -> None:
        """Let samples grow from the scaffolds in `source`: one scaffold as SMILES, or the path of a file.
        Unless samples are delivered raw, those that do not keep their scaffold are refused."""
        scaffolds, files = read_scaffolds(source)
        generator = np.random.default_rng(rng.stream_seed(self.settings.seed, "gaps"))
        self.growth = Growth(scaffolds, self.vocabulary, self.model.length, self._lengths, generator)
        self.given, self.inputs = self.growth.given, self.inputs + files
        if not self.settings.raw:
            self.filters = {"--scaffold": self.growth.is_kept, **self.filters}

    def _lengths(self) -> list[int]:
        """Draw some samples of the model, and return their numbers of tokens, without `<bos>` and `<eos>`."""
        plan = self.model.plan(self.settings, self.settings.nfe or 1, FIRST_ROWS)
        _, rows = self.model.draw(plan, FIRST_ROWS, self.settings.seed, "lengths")
        return [len(self.vocabulary.symbols(row)) for row in rows.tolist()]

    def _read(self, settings: MoleculeDemand) -> None:
        """Keep the settings of samples. Read the norms (what is usual in training molecules) if these
        settings need them, and find the file of training molecules for the setting `nearest`."""
        self.settings = settings
        self.norms = self._read_norms() if settings.plausible or settings.properties else None
        if settings.nearest:
            self.trained = training_smiles(self.model.folder)
            self._require_own(self.trained)
            self.inputs += (self.trained,)

    def _require_own(self, path: Path) -> None:
        """Raise InputError unless the file `path` describes the molecules that the model was trained on."""
        metadata = read_metadata(path)
        metadata.require_same_vocabulary(self.model.vocabulary, path, self.model.folder)
        metadata.require_same_data(self.model.data, path, self.model.folder)

    def prepare(self, out: Path) -> str:
        """Let a page (an `out` that ends in .html) show properties and, if their file is found, the
        nearest training molecules. Returns a sentence for the user if that file is missing, else an empty
        text. If `out` is no page, or samples are raw, nothing changes."""
        if out.suffix.lower() != files.PAGE or self.settings.raw:
            return ""
        known = find_file(self.model.folder, SMILES, paths.data) is not None
        self._read(self.settings.model_copy(update={"properties": True, "nearest": known}))
        if known:
            return ""
        return f"The page shows no nearest training molecules: the model comes without them ({SMILES})"

    def _read_norms(self) -> Norms | None:
        """Read the norms (what is usual in the model's training molecules); None if their file is missing.
        Raises InputError if it is missing and --plausible needs it."""
        path = find_file(self.model.folder, NORMS, paths.reference)
        if path:
            self._require_own(path)
            return Norms.read(path)
        if self.settings.plausible:
            raise InputError(
                f"{self.model.folder / NORMS}: no such file; --plausible needs the norms of the training "
                "molecules: `pairflow norms` makes them"
            )
        return None

    def begin(self) -> None:
        settings, self.drawn = self.settings, 0
        seeds = {origin.text for origin in self.origins}
        identity = rules_of(self.model).identity if settings.unique or seeds else "smiles"
        self.selection = Selection(
            settings.raw, settings.unique, self.known, self.filters, seeds, identity, settings.neutral
        )
        self._early = 0  # samples that end within the template
        if self.growth:
            self.growth.begin()

    def note_origin(self, tokens: list[int], seed: int, noise: float) -> list[int]:
        origin = self.origins[seed]
        self._origin = origin, noise, int(np.count_nonzero(origin.tokens != tokens))
        return tokens

    def decode(self, tokens: list[int]) -> str:
        if self.growth:
            return self.growth.assemble(tokens)
        self._early += EOS in tokens[: count_given(self.given)]
        return self.vocabulary.decode(tokens)

    def keep(self, text: str) -> str | None:
        self.drawn += 1
        return self.selection.keep(text)

    def explain(self) -> str:
        since = self.selection.since
        shares = ", ".join(f"{count / since.total():.0%} {verdict}" for verdict, count in since.most_common())
        [(most, _)] = since.most_common(1)
        advice = _ADVICE.get(most, f"widen or leave out {most.removeprefix('refused by ')}")
        return f"accepted ({shares}): {advice}"

    def writer(self, out: Path) -> Callable[[Path, Rows], None]:
        settings, model = self.settings, self.model
        columns = settings.properties or settings.nearest
        write = files.writer(out, not settings.raw, columns, settings.three_d, settings.count)
        name = published.name_of(model.folder) or str(model.folder)
        metadata = Metadata(
            kind="molecules",
            vocabulary=model.vocabulary,
            parameters={"model": name, "method": model.method, **settings.model_dump(mode="json")},
            inputs={"model": str(model.weights)},
        )
        return lambda path, rows: write(path, pd.DataFrame(rows), metadata)

    def describer(self, quiet: bool, threads: int | None) -> Callable[[str], Mapping[str, object]]:
        settings = self.settings
        parts: list[Callable[[str], Mapping[str, object]]] = [lambda smiles: {"smiles": smiles}]
        if settings.properties:
            parts.append(lambda smiles: describe(Chem.MolFromSmiles(smiles)))
            if norms := self.norms:
                parts.append(lambda smiles: describe_oddities(Chem.MolFromSmiles(smiles), norms))
        if self.origins:
            parts.append(self._describe_origin)
        if growth := self.growth:
            parts.append(lambda smiles: {"core": growth.scaffold.text, "core_name": growth.scaffold.name})
        if settings.nearest:
            neighbours = TrainingNeighbours.read(self.trained, threads or available_cpus(), not quiet)
            parts.append(neighbours.describe)
        if settings.three_d:
            parts.append(lambda smiles: {"conformer": embed(smiles, settings.seed)})
        return lambda smiles: {name: value for part in parts for name, value in part(smiles).items()}

    def _describe_origin(self, smiles: str) -> dict[str, object]:
        """Describe how the last sample, with the canonical SMILES `smiles`, differs from the molecule that it
        varies, its seed: the SMILES and name of the seed, the share of noise, the similarity, and the number
        of positions at which the tokens differ (`seed_edit`)."""
        seed, noise, changed = self._origin
        one, other = tabulate(["fingerprint"], [seed.text, smiles])["fingerprint"]
        [similarity] = Neighbours([one]).similarity([other])
        origin = {"seed": seed.text, "seed_name": seed.name, "noise": round(noise, 4)}
        return origin | {"seed_similarity": float(similarity), "seed_edit": changed}

    def summarise(self, rows: Rows, seconds: float) -> str:
        settings, smiles, counts = self.settings, [row["smiles"] for row in rows], self.selection.counts
        text = "strings" if settings.raw else self.noun
        if not (settings.raw or settings.novel or settings.neutral or self.model.known is None):
            known = self._read_known()
            text += f" ({sum(molecule in known for molecule in smiles):,} of them in the data set)"
        if settings.prefix is not None and not settings.raw and smiles:
            with rdBase.BlockLogs():
                start = Chem.MolFromSmiles(settings.prefix)
            if start is None:
                text += " (the prefix is no molecule by itself, so that no substructure is looked for)"
            else:
                share = sum(
                    Chem.MolFromSmiles(molecule).HasSubstructMatch(start) for molecule in smiles
                ) / len(smiles)
                text += f" ({share:.1%} of them with the substructure {settings.prefix})"
        (_, valid), *filters = self.selection.shares().items()
        kept = "".join(f"; of these {name} kept {share:.1%}" for name, share in filters)
        text += f" from {counts.total():,} samples ({valid:.1%} valid{kept})"
        if settings.template is not None:
            text += f", {self._early / counts.total():.1%} of them end within the template"
        if settings.novel or settings.like:
            text += say_standardised(rules_of(self.model))
        elif settings.unique and (identity := self.selection.identity) != "smiles":
            text += f", unique by identity {identity}"
        return f"{text}, {seconds:,.1f} s"

    def warn(self) -> str:
        valid = self.selection.shares()["valid"]
        if valid >= USABLE or self.settings.raw:
            return ""
        unusable = "The model rarely writes a molecule"
        culprit = unusable if self.given is None else "The model rarely completes this start"
        return (
            f"{culprit}: only {valid:.1%} of its samples are valid. Valid means that RDKit can read them, "
            "not that they are stable: look at the structures before you use them."
        )


def read_seeds(path: Path, model: Model) -> tuple[list[Candidate], str]:
    """Read the molecules in the file `path` that the model can write. A molecule that a model of groups can
    only write with other charges gets these charges.

    Returns the molecules, and a note that names those that are left out or have other charges; the note is
    empty if there are none. Raises InputError if the model can write no molecule of the file.
    """
    scored = ScoredMolecules(model)
    read = [*scored.read(path)]
    changed = {row.number: other for row in read if row.tokens is None and (other := scored.recharge(row))}
    rows = [changed.get(row.number, row) for row in read]
    seeds, others = ([row for row in rows if (row.tokens is None) is lost] for lost in (False, True))
    if not seeds:
        why = f": {read[0].reason}" if read else ""
        raise InputError(f"{path}: no molecule that the model can vary{why}")
    unit = unit_of(str(path))
    parts = {
        "cannot be varied": [f"{_where(unit, row)}: {row.reason}" for row in others],
        "are varied with other charges": [f"{_where(unit, row)}: {row.text}" for row in changed.values()],
    }
    lines = [
        f"{path}: {len(named):,} of {len(read):,} molecules {what} ({'; '.join(named[:_NAMED])}"
        f"{'; ...' * (len(named) > _NAMED)})"
        for what, named in parts.items()
        if named
    ]
    return seeds, "\n".join(lines)


def _where(unit: str, row: Candidate) -> str:
    """Return where a row is, for messages, such as `line 4 (aspirin)`. `unit` is what row numbers count."""
    return f"{unit} {row.number}{f' ({row.name})' * bool(row.name)}"


def given_molecule(settings: MoleculeDemand, vocabulary: Vocabulary, length: int) -> Tensor | None:
    """Return a row of tokens (N,), N = `length`, that has the prefix or template of the settings, and FREE
    (-1) at open positions; None without a prefix or template.

    `*` in a template is an open position, even if the vocabulary has the dummy atom `*`. Raises InputError
    for tokens outside the vocabulary, if the row is too short, and for a representation that takes no prefix
    or template.
    """
    start, option = given_start(settings)
    if start is None:
        return None
    if vocabulary.kind == "groups":
        raise InputError(f"{option}: a model of groups takes none; use scaffold")
    selfies = vocabulary.kind == "selfies"
    if settings.template and selfies:
        raise InputError("template: a model of SELFIES cannot fill gaps; use prefix")
    where = option + ": a model of SELFIES needs a whole molecule" * selfies
    tokens = given_tokens(where, start, vocabulary, {OPEN: FREE} if settings.template else {})
    return given_row(option, [BOS], tokens, length, room=length - 2)


class ScoredMolecules(Scored):
    """Reads the molecules in a file that a model is to score."""

    noun, column, padding = "molecule", "smiles", PAD

    def __init__(self, model: Model):
        self.vocabulary, self.length = Vocabulary.load(model.vocabulary_file()), model.length
        self.notation, self.rules = self.vocabulary.kind, rules_of(model)
        self.remark = say_standardised(self.rules)
        self._groups = KnownGroups(self.vocabulary.tokens) if self.notation == "groups" else None

    def read(self, path: Path, column: str | None = None) -> Iterator[Candidate]:
        with rdBase.BlockLogs():
            for row in read_found(path, column):
                text, tokens, reason = row.text, None, ""
                try:
                    _, text = canonicalise(read_molecule(row), self.rules)
                    tokens = np.array(self.vocabulary.encode(text, self.length))
                except UnknownToken as error:
                    advice = self._groups.explain(tokenize_groups(text)) if self._groups else ""
                    reason = f"{error}; {advice}" if advice else str(error)
                except InputError as error:
                    reason = str(error)
                yield Candidate(row.number, row.name, text, tokens, reason)

    def recharge(self, row: Candidate) -> Candidate | None:
        """Return the molecule of `row` with other charges, so that a model of groups can write it. Returns
        None if there are no such charges, or if the model's tokens are not groups."""
        with suppress(InputError):
            if self._groups and (groups := self._groups.recharge(tokenize_groups(row.text))):
                text = join_groups(groups)
                tokens = np.array(self.vocabulary.encode(text, self.length))
                return row._replace(text=text, tokens=tokens, reason="")
        return None


def rules_of(model: Model) -> Standardisation:
    """Return the rules that standardised the model's data set; the defaults, which change nothing, if the
    model has no file of known molecules."""
    if model.known is None:
        return Standardisation()
    values = read_metadata(path := model.known_file()).parameters
    return check(
        Standardisation, {name: values[name] for name in Standardisation.model_fields if name in values}, path
    )


def say_standardised(rules: Standardisation) -> str:
    """Return the end of a summary: by which rules molecules were standardised; empty if no rule changes
    any."""
    applied = say_rules(rules)
    return f", standardised as the model's data ({applied})" if applied else ""


def training_smiles(folder: Path) -> Path:
    """Return the path of the training molecules (SMILES) of the model in `folder`: there, or in the data of
    its experiment. Raises InputError if the file is in neither place."""
    path = find_file(folder, SMILES, paths.data)
    if path is None:
        raise InputError(
            f"{folder / SMILES}: no such file; --nearest needs the training molecules: "
            f"copy {paths.data(Path(), SMILES)} of the experiment there"
        )
    return path


def find_file(folder: Path, name: str, path_in: Callable[[Path, str], Path]) -> Path | None:
    """Return the path of the file `name`, which describes the training molecules of the model in `folder`. It
    is looked for in `folder` and in the model's experiment, at `path_in(experiment's folder, name)`. Returns
    None if it is in neither place."""
    inside = [*folder.resolve().parents][2:3]  # results/<experiment>, if `folder` is seed0/models/<method>
    files = [folder / name, *(path_in(root, name) for root in inside)]
    return next((path for path in files if path.is_file()), None)
