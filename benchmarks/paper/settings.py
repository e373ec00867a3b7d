"""What the page on the paper's tables depends on. Snakemake imports this too, so that it imports little."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import Field

from pairflow.artifacts import digest
from pairflow.config import Experiment
from pairflow.settings.check import Name, Settings


class PaperSettings(Settings):
    """What the page on the paper's tables depends on, besides finished experiments."""

    experiments: dict[Name, Experiment] = Field({}, description="The experiments on the paper's data.")


def choose_experiments(experiments: Mapping[str, Experiment]) -> PaperSettings:
    """The settings of the page: the experiments on the paper's data."""
    named = experiments.items()
    return PaperSettings(
        experiments={name: entry for name, entry in named if entry.data.source in entry.data.paper}
    )


def find_finished(results: Path, experiments: Iterable[str]) -> dict[str, Path]:
    """Experiment -> its metric rows, for those whose report exists."""
    files = {name: results / name / "metrics.parquet" for name in experiments}
    return {name: path for name, path in files.items() if path.is_file()}


def hash_finished(results: Path, experiments: Iterable[str]) -> dict[str, str]:
    """Hashes of the existing metrics: the page is made again if one changes, and nothing else is."""
    return {name: digest(path) for name, path in find_finished(results, experiments).items()}
