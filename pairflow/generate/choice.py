"""Which model to sample from, and in how many steps: as a user says, or by the metrics of an experiment."""

import contextlib
import shlex
from pathlib import Path
from typing import NamedTuple

from pairflow.artifacts import read_metadata, read_object, read_table
from pairflow.errors import InputError
from pairflow.metrics.ranking import best_run, leading_evaluation, mean_values
from pairflow.plan import paths
from pairflow.training.model_files import read_description
from pairflow.training.options import MODEL_FILES, VOCABULARY

_OTHER_ROWS = {
    "tokens": "token rows",
    "image": "images",
    "vectors": "vectors",
}  # by the kind that a vocabulary.json names
_TEXT = ("characters", "subwords", "bert")  # likewise, the kinds of text


class ModelChoice(NamedTuple):
    """The folder of a model, a number of sampling steps, and a sentence on why, if metrics chose them."""

    folder: Path
    nfe: int
    reason: str = ""

    @property
    def files(self) -> list[Path]:
        """What no output may replace: the model's files, and the file that its experiment was made from."""
        roots = [*self.folder.resolve().parents][2:3]  # results/<experiment>, of its seed0/models/<method>
        return [self.folder / name for name in MODEL_FILES] + [*filter(None, map(_source, roots))]


def choose(folder: Path, nfe: int | None) -> ModelChoice:
    """The model in `folder`, or the best one of the finished experiment in `folder`.

    Of an experiment: the `best_run` in its leading evaluation by the share of useful samples if it was
    measured, or else of valid ones, and of text by its perplexity under the judge. With `nfe`, the best
    method at that number of steps, if the experiment was evaluated there. Raises InputError for what makes
    neither molecules nor text, for a model without `nfe`, and for an experiment without such a metric.
    """
    metrics = folder / "metrics.parquet"
    if (folder / "model.json").is_file() or not metrics.is_file():
        _require_decodable(folder, folder / VOCABULARY)
        read_description(folder / "model.json")
        if nfe is None:
            raise InputError(f"{folder}: a model does not say how many steps to take; add --nfe")
        return ModelChoice(folder, nfe)
    _require_decodable(folder, paths.data(folder, VOCABULARY))
    text = makes_text(folder)
    rows = read_table(metrics, "metrics")[0].to_pandas()
    useful = "useful_strict" in set(rows.metric)
    metric = "judge_ppl" if text else "useful_strict" if useful else "valid"
    rows = rows[(rows.metric == metric) & rows.nfe.notna()]
    if rows.empty:
        raise InputError(f"{metrics}: no metric '{metric}' to choose a model by; name the folder of a model")
    rows = rows[rows.evaluation == leading_evaluation(rows.evaluation)]
    rows = rows[rows.extractor.fillna("") == rows.extractor.fillna("").iloc[0]]
    means = mean_values(rows if text else rows.assign(value=rows.value / rows.samples))
    at_nfe = {run: mean for run, mean in means.items() if run[1] == nfe}
    method, evaluated = best_run(at_nfe or means, lowest=text)
    steps, mean = nfe or evaluated, means[method, evaluated]
    quality = (
        f"its {metric} is {mean:.4g}"
        if text
        else f"{mean:.1%} of its samples are {metric.removesuffix('_strict')}"
    )
    reason = f"{folder}: takes {method} with --nfe {steps}; by the metrics {quality} at NFE {evaluated}"
    return ModelChoice(paths.model(folder, int(rows.seed.min()), method), steps, reason)


def choose_for_scores(folder: Path) -> ModelChoice:
    """The model that `choose` takes without a number of steps, of which scores need none.

    Raises InputError for what makes neither molecules nor text.
    """
    for vocabulary in (folder / VOCABULARY, paths.data(folder, VOCABULARY)):
        if kind := _OTHER_ROWS.get(_kind(vocabulary)):
            raise InputError(f"{folder}: scores are for molecules and text; this makes {kind}")
    finished = (folder / "metrics.parquet").is_file() and not (folder / "model.json").is_file()
    choice = choose(folder, None if finished else 1)
    return choice._replace(reason=f"{folder}: takes {choice.folder.name}" if finished else "")


def _source(root: Path) -> Path | None:
    """The file or folder that the data of the experiment in `root` were read from, if they tell."""
    train = paths.data(root, "train.parquet")
    with contextlib.suppress(InputError, OSError):
        settings = read_metadata(train).parameters
        if name := settings.get("source") or settings.get("file"):
            return root.parent.parent / name
    return None


def makes_text(folder: Path) -> bool:
    """Whether the model in `folder`, or the experiment whose folder it is, is one of text."""
    return any(_kind(path) in _TEXT for path in (folder / VOCABULARY, paths.data(folder, VOCABULARY)))


def _require_decodable(folder: Path, vocabulary: Path) -> None:
    """InputError if a vocabulary.json says that its rows are none of molecules or text."""
    if (kind := _kind(vocabulary)) in _OTHER_ROWS:
        raise no_molecules(folder, _OTHER_ROWS[kind])


def _kind(vocabulary: Path) -> str:
    """The kind of rows that a vocabulary.json names; empty where it cannot be read, which others report."""
    try:
        return str(read_object(vocabulary)["kind"])
    except (OSError, ValueError, LookupError):
        return ""


def no_molecules(folder: Path, rows: str) -> InputError:
    """The error for a model, or an experiment with models, of `rows` where molecules are asked for."""
    options, models = "--samples 100 --trials 1", sorted(folder.glob("seed*/models/*/model.json"))
    if not models:
        return InputError(f"{folder}: --count makes molecules; this model makes {rows}: use {options}")
    options = f"--model {shlex.quote(str(models[0].parent))} --nfe 4 {options}"
    return InputError(f"{folder}: --count makes molecules; its models make {rows}: use {options}")
