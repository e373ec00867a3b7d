"""The class of a job of the workflow: its files, its settings and what it asks of the machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pairflow.config import Settings

Files = Mapping[str, Path | Sequence[Path]]


@dataclass(frozen=True, eq=False)
class Job:
    """One job of the workflow. `inputs` and `outputs` are named as in the rule and in the files' metadata.

    `rule` is the rule's name without a kind of data at its end, and `settings` are the settings of its
    command. `origin` are the settings of the pairs or samples that the job measures. `threads` None means all
    cores, and `gpu` says that the job uses a GPU if there is one. Jobs of higher `priority` start first.
    `shards` is the number of jobs that share the pairing.
    """

    rule: str
    inputs: Files
    outputs: Mapping[str, Path]
    settings: Settings | None = None
    threads: int | None = 1
    gpu: bool = False
    priority: int = 0
    method: str | None = None
    seed: int | None = None
    evaluation: str | None = None
    nfe: int | None = None
    shards: int = 1
    origin: Settings | None = None

    @property
    def groups(self) -> dict[str, list[Path]]:
        """The input files: a dict from each input's name in the rule to a list of its paths."""
        return {name: [files] if isinstance(files, Path) else [*files] for name, files in self.inputs.items()}

    @property
    def needed(self) -> list[Path]:
        """The input files, in one list."""
        return [path for group in self.groups.values() for path in group]

    @property
    def record(self) -> Path:
        """The path of the output whose provenance file records the job's seconds, memory and device."""
        return next(iter(self.outputs.values()))

    @property
    def parameters(self) -> dict[str, object]:
        """Parameters of the job by name. Each output's metadata store the ones it depends on."""
        parameters: dict[str, object] = {"method": self.method} if self.method else {}
        for settings in (self.origin, self.settings):
            parameters |= settings.model_dump(mode="json") if settings else {}
        return parameters
