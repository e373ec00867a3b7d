"""Text, as characters or pieces of words, as a kind of data."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.config import DEMANDED, Experiment
from pairflow.kinds.kind import Files, Needs, OnDemandKind
from pairflow.kinds.text.settings import Judge, JudgedDraws, Text, TextFiles, judge_settings
from pairflow.plan import paths
from pairflow.plan.job import Job

if TYPE_CHECKING:
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.metrics.measured import Machine, Measurement


class TextKind(OnDemandKind):
    name, settings, rows = "text", Text, "text"
    floor, real, comparison = JudgedDraws, TextFiles, Judge
    shows_pairs = True
    demanded, chosen_by = DEMANDED | {"prefix", "template"}, ("judge_ppl",)

    def prepare(self, settings: Text, files: Files, parent: Path | None, progress: bool) -> None:
        """Turn text into token rows, a vocabulary and a table of rejected pieces.

        The text comes with the package, from your own file or folder, or from a published data set. A
        published data set is read from the folder that PAIRFLOW_DATA_DIR names, or downloaded and verified.
        """
        self.load("prepare").store(self.source(settings), settings, files, parent)

    def preparing(self, raw_mb: float) -> Needs:
        return Needs(memory_mb=8000, minutes=120)

    def real_files(self, root: Path, experiment: Experiment, comparison: str = "") -> dict[str, Path]:
        files = {"judge": "judge.parquet", "vocabulary": "vocabulary.json"}
        return paths.real_files(root) | {name: paths.data(root, file) for name, file in files.items()}

    def comparison_settings(self, experiment: Experiment, comparison: str = "") -> Judge:
        return judge_settings(experiment)

    def measuring(self, experiment: Experiment) -> Needs:
        """Return what the comparison needs of the machine. Only GPT-2 large, for gen_ppl, uses a GPU."""
        gpt2 = judge_settings(experiment).gen_ppl
        return Needs(memory_mb=16000 if gpt2 else 4000, minutes=120, gpu=gpt2)

    def measure(self, settings: Judge, samples: Path, real: TextFiles, machine: "Machine") -> "Measurement":
        """Measure each trial's samples of text: perplexity under a judge that learnt from text which no
        generator has seen, entropy, known words, repeats, and trigrams."""
        return self.load("measure").measure_samples(settings, samples, real, machine)

    def measure_floor(self, settings: JudgedDraws, real: TextFiles, machine: "Machine") -> "Measurement":
        """Compute reference values: the metrics of samples, on held-out text and on three trivial baselines.

        The method 'data' is held-out text. The baselines are drawn from the training text without a model:
        'shuffled' tokens, a 'chain' of trigrams, and a 'snippet', one training row repeated.
        """
        return self.load("measure").measure_floor(settings, real, machine)

    def is_made_by(self, description: Mapping[str, Any], symbols: str) -> bool:
        return symbols in ("characters", "bert")

    def draft(self, request: "DraftRequest") -> "Draft | None":
        survey = self.load("survey")
        reason = survey.recognise(request)
        return survey.draft_text(request, reason) if reason else None

    def is_timed(self, job: Job) -> bool:
        return not getattr(job.settings, "gen_ppl", False)  # GPT-2


KIND = TextKind()
