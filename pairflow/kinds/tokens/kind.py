"""Token rows, published or a user's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.config import RealDraws
from pairflow.kinds.kind import Kind, RowFiles
from pairflow.kinds.tokens.metrics import GROUPS, METRICS
from pairflow.kinds.tokens.settings import Tokens

if TYPE_CHECKING:
    from pairflow.metrics.measured import Machine, Measurement


class TokensKind(Kind):
    name, settings = "tokens", Tokens

    # Raw data

    def source(self, settings: Tokens, folder: Path = Path()) -> Any:
        from pairflow.kinds.tokens.sources import source_of

        return source_of(settings, folder)

    def prepare(
        self, settings: Tokens, files: Mapping[str, Path], parent: Path | None, progress: bool
    ) -> None:
        """Check token rows and split them, as preprocessing does with molecules and images.

        The rows come from a .npy file with a two-dimensional array of integers, or from the column `tokens`
        of a Parquet file.
        """
        from pairflow.kinds.tokens.sources import source_of

        source = source_of(settings)
        source.read(settings).write(files, settings, source.fetch())

    # Metrics of samples

    def measure(self, settings: Any, samples: Path, real: RowFiles, machine: "Machine") -> "Measurement":
        """Compare each trial's samples with the nearest training rows, and their n-gram frequencies with
        those of held-out rows."""
        from pairflow.kinds.tokens.measure import measure_samples

        return measure_samples(samples, real, machine)

    def measure_floor(self, settings: RealDraws, real: RowFiles, machine: "Machine") -> "Measurement":
        """Compute the floor: the same metrics as for samples, but measured on real rows.

        Each trial draws training rows, whose n-gram frequencies are compared with those of all held-out rows.
        For the distance to the nearest training row, held-out rows take the place of samples.
        """
        from pairflow.kinds.tokens.measure import measure_floor

        return measure_floor(settings, real, machine)

    # The page

    metrics, groups = METRICS, GROUPS

    # On demand

    rows = "token rows"

    def is_made_by(self, description: Mapping[str, Any], symbols: str) -> bool:
        return super().is_made_by(description, symbols) or description.get("vocabulary", "") is None


KIND = TokensKind()
