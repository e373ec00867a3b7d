"""What a caller of `pairflow.train` asks for, and the experiment that `pairflow new` would make of it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pandas as pd

from pairflow import published
from pairflow.api.local import Runner, needed_jobs
from pairflow.api.own_data import LABEL
from pairflow.artifacts import atomic, read_object, read_words
from pairflow.config import Experiment, check, parse_method, suggest
from pairflow.config.file import merge
from pairflow.config.training import DISTILLATIONS, Optimisation
from pairflow.data.draft import FEWEST, MOST, NO_START, Draft, DraftRequest, Entry
from pairflow.errors import InputError
from pairflow.estimate.forecast import forecast
from pairflow.kinds import draft_experiment, new_settings, registry, source_of
from pairflow.plan import paths
from pairflow.plan.jobs import jobs
from pairflow.training.model_files import read_description

OWN = "own"  # the name of the pairs with given sources
SETTINGS = "train.json"  # in the folder of a training: what was asked for, and the experiment
_TUNED = (suggest.SMALL["name"], suggest.TRANSFORMER["name"])  # networks with suggested settings
_PAIRS = {"count": 8192, "steps": 64}  # that a parent model makes, as in the experiment `demo_full`


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The arguments of `pairflow.train`, and the files of the data and of given pairs.

    `labelled`: whether labels are given. `start`: the parent's folder. `from_scratch`: whether start is
    "none".
    """

    file: Path
    vocabulary_size: int | None
    method: str
    network: Any
    own_pairs: Path | None
    labelled: bool
    hours: float | None
    iterations: int | None
    seed: int
    start: Path | None
    from_scratch: bool
    settings: Mapping[str, Any]
    taken_as: str | None
    options: Mapping[str, Any]

    def experiment(self, root: Path, runner: Runner) -> Experiment:
        """Return the experiment that is stored in `root` for the same arguments, or else a new one.

        The experiment is stored in `root`, with these arguments.
        """
        file, asked = root / SETTINGS, json.loads(json.dumps(asdict(self), default=str))
        try:
            stored = read_object(file)
        except (OSError, ValueError, InputError):
            stored = {}
        if stored.get("asked") != asked:
            stored = {"asked": asked, "experiment": self._suggest(root, runner)}
        experiment = check(Experiment, stored["experiment"], "train")
        with atomic(file) as [temporary]:
            temporary.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
        return experiment

    def _suggest(self, root: Path, runner: Runner) -> Entry:
        draft = self._draft(root, runner)
        for text in (draft.table, *draft.advice):
            runner.say(text)
        training = self.settings.get("training")
        iterations = self.iterations or (isinstance(training, Mapping) and training.get("iterations"))
        hours = self.hours or draft.hours
        make = draft.with_iterations or partial(_at_iterations, draft, runner)
        if not iterations and hours:
            iterations = self._fitting(draft, make, hours, root, runner)
            if self.hours and not iterations:
                raise InputError(f"hours: the time of a {self.network['name']} is unknown; give `iterations`")
        entry = self._completed(make(iterations) if iterations else draft.experiment)
        how = check(Experiment, entry, "train")
        runner.say(
            f"Training: {how.network.name}, {how.training.iterations:,} iterations of "
            f"{how.training.batch_size} of {draft.size.rows:,} rows."
        )
        return entry

    def _draft(self, root: Path, runner: Runner) -> Draft:
        """Return what `pairflow new` suggests for the file: an experiment, notes and expected hours."""
        compare = bool(parse_method(self.method).distillations)
        if self.vocabulary_size is not None:
            return self._draft_tokens(compare, runner)
        values = {**self.options, "compare": compare}
        values |= {"condition": LABEL} if self.labelled else {}
        values |= {"hours": self.hours} if self.hours else {}
        if "held_out" in values:
            values["held_out"] = str(Path(values["held_out"]).resolve())
        request = DraftRequest(
            self.file,
            str(self.file),
            check(new_settings(), values, "train"),
            self.start,
            self._start_name or NO_START * self.from_scratch,
            rejects=paths.data(root, "rejected.parquet"),
            unused=root / "condition.csv",
            device=runner.type,
            quiet=not runner.progress,
            configuration=root / SETTINGS,
            taken_as=self.taken_as,
        )
        return draft_experiment(request)

    @property
    def _start_name(self) -> str:
        """The name or the path of the model to start from, in an experiment; empty without one."""
        return (published.name_of(self.start) or str(self.start)) if self.start else ""

    def _draft_tokens(self, compare: bool, runner: Runner) -> Draft:
        """Return the draft of an experiment on token rows, as `pairflow new` makes it for other data.

        It depends on the rows' number and length, on K, and on the device; `compare` says whether it has
        distillations.
        """
        data: Entry = {"source": "tokens", "file": str(self.file), "vocabulary_size": self.vocabulary_size}
        if self.labelled:
            names = sorted({*read_words(self.file, LABEL)} - {""})
            data["condition"] = {"column": LABEL, "classes": names}
        settings = check(registry.SETTINGS[registry.KINDS.index("tokens")], {**data, **self.options}, "train")
        size = source_of(settings).measure(settings)
        sizes = (size.length, size.vocabulary_size, size.rows)
        start = {"from": self._start_name} if self.start else {}
        network = self.network
        if self.start and not network:
            network = read_description(self.start / "model.json")["network"]
        tuned = network if network and network["name"] in _TUNED else None
        about = {
            "description": f"{size.total:,} token rows",
            "scale": "reduced",
            "data": settings.model_dump(),
        }

        def make(iterations: int | None = None) -> Entry:
            how: Any = {"iterations": iterations, "network": tuned, "fine_tuned": bool(start)}
            entry = {**about, **start, **suggest.experiment(*sizes, runner.type, compare, **how)}
            return entry | ({"network": network} if network else {})

        hours = suggest.hours(make()["network"], runner.type)
        text = f"{size.total:,} token rows, N = {size.length}, K = {size.vocabulary_size}"
        more: Any = {"content": "", "rejected": pd.DataFrame(), "hours": hours, "with_iterations": make}
        return Draft(experiment=make(), size=size, table=text, **more)

    def _completed(self, entry: Entry) -> Entry:
        """Return the suggested `entry` with the caller's network, pairs, method, seed and settings."""
        entry = dict(entry)
        if self.network:
            entry["network"] = self.network
        if self.own_pairs:
            entry["pairs"] = {OWN: str(self.own_pairs)}
        for name in parse_method(self.method).distillations:
            how = distillation_like(name, entry["distillation"])
            entry["distillation"] = entry["distillation"] | {name: how}
        entry = cast(Entry, merge(entry, dict(self.settings)))
        return entry | {"methods": [self.method], "seeds": [self.seed]}

    def _fitting(
        self, draft: Draft, make: Callable[[int], Entry], hours: float, root: Path, runner: Runner
    ) -> int | None:
        """Return the number of iterations with which the model's jobs take `hours`, None if it is unknown.

        `make` returns the experiment that is suggested for a number of iterations.
        """
        target, rates, known = paths.model(root, self.seed, self.method) / "model.safetensors", None, []
        for iterations in (10 * FEWEST, 20 * FEWEST):
            experiment = check(Experiment, self._completed(make(iterations)), "train")
            table = needed_jobs(jobs(root, experiment), target)
            where = (draft.size, runner.cores, runner.type)
            how: Any = {"progress": runner.progress, "fresh": True, "rates": rates, "table": table}
            expected = forecast(root, experiment, *where, **how)
            rates = expected.rates
            known.append(sum(expected.costs[job].seconds or 0.0 for job in table))
        few, more = known
        if more <= few:
            return None
        fitting = 10 * FEWEST * (1 + (3600 * hours - few) / (more - few))
        digits = 10 ** max(0, len(str(int(max(1, fitting)))) - 2)
        most = draft.most or MOST
        return int(max(FEWEST, min(most, fitting // digits * digits)))


def _at_iterations(draft: Draft, runner: Runner, iterations: int) -> Entry:
    """Return the experiment of a draft, with what is suggested for another number of iterations."""
    size, compare = draft.size, "distillation" in draft.experiment
    sizes = (size.length, size.vocabulary_size, size.rows)
    return {**draft.experiment, **suggest.experiment(*sizes, runner.type, compare, iterations)}


def network_like(settings: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return what `pairflow new` suggests for a network that is given only by its name; else `settings`."""
    alike = (known for known in (suggest.SMALL, suggest.TRANSFORMER) if {"name": known["name"]} == settings)
    return next(alike, settings)


def distillation_like(name: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of the distillation `name`: those in `known`, or else settings made from DCD's."""
    if name in known:
        return dict(known[name])
    shared = {key: value for key, value in known["dcd"].items() if key in Optimisation.model_fields}
    return shared | ({"pairs": _PAIRS} if DISTILLATIONS[name].on_pairs else {})
