"""Text, as characters or pieces of words, as a kind of data."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pairflow.config import DemandSettings, Experiment
from pairflow.kinds.kind import (
    Costs,
    Drafting,
    Floor,
    Kind,
    Needs,
    OnDemand,
    Preprocessing,
    Reference,
    Scoring,
)
from pairflow.kinds.text.settings import Judge, JudgedDraws, NewText, Text, TextFiles, judge_settings
from pairflow.plan import paths
from pairflow.plan.job import Job
from pairflow.settings.sampling import DEMANDED

if TYPE_CHECKING:
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.kinds.text.data_sets import TextSource
    from pairflow.kinds.text.on_demand import ScoredText, TextDelivery
    from pairflow.kinds.text.page.page import TextPage
    from pairflow.metrics.measured import Machine, Measurement
    from pairflow.training.model import Model


class TextCosts(Costs):
    def preparing(self, raw_mb: float) -> Needs:
        return Needs(memory_mb=8000, minutes=120)

    def measuring(self, experiment: Experiment) -> Needs:
        """Return what the comparison needs of the machine. Only GPT-2 large, for gen_ppl, uses a GPU."""
        gpt2 = judge_settings(experiment).gen_ppl
        return Needs(memory_mb=16000 if gpt2 else 4000, minutes=120, gpu=gpt2)

    def is_timed(self, job: Job) -> bool:
        return not getattr(job.settings, "gen_ppl", False)  # GPT-2


class TextReference(Reference[Judge, TextFiles]):
    settings, files = Judge, TextFiles

    def list_files(self, root: Path, experiment: Experiment, comparison: str = "") -> dict[str, Path]:
        files = {"judge": "judge.parquet", "vocabulary": "vocabulary.json"}
        return paths.real_files(root) | {name: paths.data(root, file) for name, file in files.items()}

    def settings_of(self, experiment: Experiment, comparison: str = "") -> Judge:
        return judge_settings(experiment)

    def measure(self, settings: Judge, samples: Path, real: TextFiles, machine: "Machine") -> "Measurement":
        """Measure each trial's samples of text: entropy, known words, repeats, trigrams, and the perplexity
        under a judge, which learnt from text that no generator has seen."""
        from pairflow.kinds.text.measure import measure_samples

        return measure_samples(settings, samples, real, machine)


class TextFloor(Floor[JudgedDraws, TextFiles]):
    settings, files = JudgedDraws, TextFiles

    def measure(self, settings: JudgedDraws, real: TextFiles, machine: "Machine") -> "Measurement":
        """Compute reference values: the metrics of samples, on held-out text and on three trivial baselines.

        The method 'data' is held-out text. The baselines are drawn from the training text without a model:
        'shuffled' tokens, a 'chain' of trigrams, and a 'snippet', one training row repeated.
        """
        from pairflow.kinds.text.measure import measure_floor

        return measure_floor(settings, real, machine)


def _draft(request: "DraftRequest") -> "Draft | None":
    from pairflow.kinds.text.survey import draft_text, recognise

    reason = recognise(request)
    return draft_text(request, reason) if reason else None


def _deliver(model: "Model", settings: DemandSettings) -> "TextDelivery":
    from pairflow.kinds.text.on_demand import TextDelivery

    return TextDelivery(model, settings)


def _score(model: "Model") -> "ScoredText":
    from pairflow.kinds.text.on_demand import ScoredText

    return ScoredText(model)


class TextKind(Kind[Text]):
    name, settings, rows = "text", Text, "text"
    shows_pairs = True
    costs, reference = TextCosts(), TextReference()
    floor = TextFloor(reference)
    drafting = Drafting(NewText, _draft)
    delivery = OnDemand(_deliver, ("judge_ppl",), DEMANDED | {"prefix", "template"})
    scoring = Scoring(_score)

    def source(self, settings: Text, folder: Path = Path()) -> "TextSource":
        from pairflow.kinds.text.data_sets import DATA_SETS, OwnText

        own = OwnText(folder / settings.source, settings.format, settings.column, sheet=settings.sheet)
        held_out = folder / settings.held_out if settings.held_out else None
        return DATA_SETS.get(settings.source) or own.with_split(settings.split_column, held_out)

    def prepare(self, settings: Text, task: Preprocessing) -> None:
        """Turn text into token rows, a vocabulary and a table of rejected pieces.

        The text comes with the package, from your own file or folder, or from a published data set. A
        published data set is read from the folder that PAIRFLOW_DATA_DIR names, or downloaded and verified.
        """
        from pairflow.kinds.text.prepare import store

        store(self.source(settings), settings, task.files, task.parent)

    def is_made_by(self, description: Mapping[str, object], symbols: str) -> bool:
        return symbols in ("characters", "bert")

    def page(self) -> "TextPage":
        from pairflow.kinds.text.page.page import TextPage

        return TextPage()


KIND = TextKind()
