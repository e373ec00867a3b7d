"""Token rows that a user prepared, as a kind of data."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pairflow.config import RealDraws, Settings
from pairflow.kinds.kind import Kind, Preprocessing, RowFiles, RowFloor, RowReference
from pairflow.kinds.tokens.settings import Tokens

if TYPE_CHECKING:
    from pairflow.kinds.tokens.data_sets import TokenFile
    from pairflow.metrics.measured import Machine, Measurement


class TokenReference(RowReference):
    def measure(self, settings: Settings, samples: Path, real: RowFiles, machine: "Machine") -> "Measurement":
        """Compare each trial's samples with the nearest training rows, and n-gram frequencies of samples and
        of held-out rows."""
        from pairflow.kinds.tokens.measure import measure_samples

        return measure_samples(samples, real, machine)


class TokenFloor(RowFloor):
    def measure(self, settings: RealDraws, real: RowFiles, machine: "Machine") -> "Measurement":
        """Compute the floor: the same metrics as for samples, measured on real rows.

        Each trial draws training rows and compares their n-gram frequencies with all held-out rows. The
        distance to the nearest training row is measured on held-out rows.
        """
        from pairflow.kinds.tokens.measure import measure_floor

        return measure_floor(settings, real, machine)


class TokensKind(Kind[Tokens]):
    name, settings, rows = "tokens", Tokens, "token rows"
    reference = TokenReference()
    floor = TokenFloor(reference)

    def source(self, settings: Tokens, folder: Path = Path()) -> "TokenFile":
        from pairflow.kinds.tokens.data_sets import TokenFile

        held_out = folder / settings.held_out if settings.held_out else None
        return TokenFile(folder / str(settings.file), held_out)

    def prepare(self, settings: Tokens, task: Preprocessing) -> None:
        """Check token rows, and split them into rows for training and held-out rows.

        The rows come from an array of integers (.npy, .npz, .pt), from a column of lists of integers
        (.parquet), or from a stream of integers (.bin), which is cut into rows.
        """
        source = self.source(settings)
        held_out = Path(settings.held_out) if settings.held_out else None
        source.read(settings).write(task.files, settings, source.fetch(), held_out)

    def is_made_by(self, description: Mapping[str, object], symbols: str) -> bool:
        return super().is_made_by(description, symbols) or description.get("vocabulary", "") is None


KIND = TokensKind()
