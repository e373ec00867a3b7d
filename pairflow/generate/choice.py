"""The model to sample from and its number of steps: the user's choice, or the best of an experiment."""

import contextlib
import shlex
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from pairflow.artifacts import read_metadata, read_object, read_table
from pairflow.config import check
from pairflow.errors import InputError
from pairflow.files import Json
from pairflow.kinds import kind_of_model, on_demand_kinds
from pairflow.kinds.kind import AnyKind
from pairflow.metrics.metric import best_run, leading_evaluation, mean_values
from pairflow.plan import paths
from pairflow.settings.sampling import MeasuredAt
from pairflow.training.model import DiscreteModel, Model
from pairflow.training.model_files import read_description
from pairflow.training.options import MODEL_FILES, VOCABULARY

MEASURED = "sampling.json"  # in a model's folder: the settings with which its metrics were measured
# The settings in it that do not depend on the number of steps.
MEASURED_WITH = ("temperature", "sampler", "greedy_tail", "grammar")


class ModelChoice(NamedTuple):
    """The folder of a model and its number of sampling steps.

    Attributes:
        folder: the folder of the model.
        nfe: the number of sampling steps.
        reason: a sentence that explains what was chosen for the user; empty if nothing was.
        source: the file with the measurements behind the choice, or None.
        measured: the settings at which the model was measured, or None if they are unknown.
    """

    folder: Path
    nfe: int
    reason: str = ""
    source: Path | None = None
    measured: MeasuredAt | None = None

    @property
    def files(self) -> list[Path]:
        """Files that no output may replace: the model's files, and the user's data file of its experiment."""
        files = [self.folder / name for name in MODEL_FILES]
        roots = [*self.folder.resolve().parents][2:3]  # results/<experiment>, of its seed0/models/<method>
        for root in roots:
            with contextlib.suppress(InputError, OSError):
                settings = read_metadata(paths.data(root, "train.parquet")).parameters
                if name := settings.get("file") or settings.get("source"):
                    files.append(root.parent.parent / name)
        return files

    def load(self, device: str | torch.device) -> tuple[AnyKind, DiscreteModel]:
        """Return the kind of data and the model. Raise InputError unless both support samples on demand."""
        kind, model = kind_in(self.folder), Model.load(self.folder, device=device)
        if not kind.delivery or not isinstance(model, DiscreteModel):
            raise not_on_demand(self.folder, kind)
        return kind, model


def choose(folder: Path, nfe: int | None, scores: bool = False) -> ModelChoice:
    """Return the model in `folder`, or the best model of the finished experiment in `folder`.

    An experiment is judged by its leading evaluation (the one named main, if there is one) and by the first
    metric that its kind of data ranks models by (`OnDemand.chosen_by`) and that was measured. With `nfe`, the
    method with the best mean at that number of steps is taken. If `nfe` is None or was not evaluated, it is
    the method with the fewest steps whose mean is within 1 % of the best; `nfe`, if given, stays the number
    of steps.

    A single model is sampled as it was measured, by its file MEASURED; without this file `nfe` is needed.
    With `scores`, the model is to score rows, and needs no number of steps.

    Raises InputError if the kind of data does not support samples on demand (or, with `scores`, scores), if
    `nfe` is needed but missing, or if the experiment has no such metric.
    """
    kind, metrics = kind_in(folder), folder / "metrics.parquet"
    if scores and not kind.scoring:
        scored = " and ".join(sorted(each.rows for each in on_demand_kinds() if each.scoring))
        raise InputError(f"{folder}: scores are for {scored}; this makes {kind.rows}")
    if not kind.delivery:
        raise not_on_demand(folder, kind)
    if (folder / "model.json").is_file() or not metrics.is_file():
        read_description(folder / "model.json")
        measured = None if scores else measured_at(folder)
        if measured:
            return _as_measured(folder, measured, nfe)
        if nfe is None and not scores:
            raise InputError(f"{folder}: a single model has no default number of steps; add --nfe")
        return ModelChoice(folder, nfe or 1)
    table, metadata = read_table(metrics, "metrics")
    rows = table.to_pandas()
    chosen_by = kind.delivery.chosen_by
    metric = next((name for name in chosen_by if name in set(rows.metric)), chosen_by[-1])
    rows = rows[(rows.metric == metric) & rows.nfe.notna()]
    if rows.empty:
        raise InputError(f"{metrics}: no metric '{metric}' to choose a model by; name the folder of a model")
    leading = leading_evaluation(rows.evaluation)
    rows = rows[rows.evaluation == leading]
    rows = rows[rows.extractor.fillna("") == rows.extractor.fillna("").iloc[0]]
    about = kind.settings.metrics[metric]
    means = mean_values(rows.assign(value=rows.value / rows.samples) if about.counted else rows)
    at_nfe = {run: mean for run, mean in means.items() if run[1] == nfe}
    method, evaluated = best_run(at_nfe or means, lowest=about.best == "lowest")
    steps, mean = nfe or evaluated, means[method, evaluated]
    share = f"{mean:.1%} of its samples are {about.label}"
    quality = share if about.counted else f"its {about.label} is {mean:.4g}"
    evaluation = metadata.parameters.get("evaluations", {}).get(leading, {})
    settings = {name: evaluation[name] for name in MEASURED_WITH if name in evaluation}
    measured = check(MeasuredAt, {**settings, "nfe": steps}, str(metrics))
    taken = "" if scores else f" with {measured.words}"
    at = f"at {evaluated} step{'s' * (evaluated > 1)}"
    reason = f"{folder}: takes {method}{taken}; by the metrics {quality} {at}"
    return ModelChoice(paths.model(folder, int(rows.seed.min()), method), steps, reason, metrics, measured)


def with_grammar(model: DiscreteModel) -> DiscreteModel:
    """Return the model with the grammar of its rows, if its kind of data has one."""
    if not (model.folder / VOCABULARY).is_file():
        return model
    delivery = kind_in(model.folder).delivery
    return replace(model, grammar=delivery.grammar(model)) if delivery else model


def measured_at(folder: Path) -> MeasuredAt | None:
    """Return the settings at which a model was measured, from the file MEASURED; None without it."""
    content = _content(folder / MEASURED)
    return check(MeasuredAt, content, str(folder / MEASURED)) if content else None


def _as_measured(folder: Path, measured: MeasuredAt, nfe: int | None) -> ModelChoice:
    """Return the choice of a single model as it was `measured`, but with `nfe` steps if these are given."""
    reason = "" if nfe else f"{folder.name}: takes {measured.words}, unless you give other values"
    return ModelChoice(folder, nfe or measured.nfe, reason, folder / MEASURED, measured)


def kind_in(folder: Path) -> AnyKind:
    """Return the kind of data that the model, or the experiment, in `folder` generates."""
    description = _content(folder / "model.json")
    vocabulary = _content(folder / VOCABULARY) or _content(paths.data(folder, VOCABULARY))
    return kind_of_model(description, str(vocabulary.get("kind", "")))


def _content(path: Path) -> Json:
    """Return the content of a JSON file; empty if it cannot be read, which other functions report."""
    try:
        return read_object(path)
    except (OSError, ValueError):
        return {}


def not_on_demand(folder: Path, kind: AnyKind) -> InputError:
    """Return the error for the model or the experiment in `folder`, which gives no samples on demand.

    If its `kind` of data supports them, the model is of a continuous flow. The error names options that work.
    """
    if kind.delivery:
        use = "use --solver euler --samples 100 --trials 1"
        return InputError(
            f"{folder}: --count needs a model of tokens; this one is of a continuous flow: {use}"
        )
    makes = " or ".join(sorted(each.rows for each in on_demand_kinds()))
    options, models = "--samples 100 --trials 1", sorted(folder.glob("seed*/models/*/model.json"))
    if not models:
        return InputError(f"{folder}: --count makes {makes}; this model makes {kind.rows}: use {options}")
    options = f"--model {shlex.quote(str(models[0].parent))} --nfe 4 {options}"
    return InputError(f"{folder}: --count makes {makes}; its models make {kind.rows}: use {options}")
