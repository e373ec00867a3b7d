"""What a trained model makes: batches of token rows, and molecules on demand."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pairflow import rng
from pairflow.config import DemandSettings, SampleSettings
from pairflow.errors import InputError
from pairflow.training import carried
from pairflow.training import model as checkpoint

PATIENCE = 20_000  # samples of which none is kept, after which the next are not waited for


def draw(
    network: nn.Module,
    facts: dict[str, Any],
    settings: SampleSettings | DemandSettings,
    steps: int,
    rows: int,
    device: torch.device,
    *labels: str | int,
) -> torch.Tensor:
    """One batch of samples (rows, N) on the CPU, a function of the settings' seed and the `labels`.

    `network` and `facts` are those of `checkpoint.load`. Models with the same corruption, and all numbers of
    `steps`, start from the same source states.
    """
    generator = torch.Generator(device).manual_seed(rng.stream_seed(settings.seed, *labels))
    corruption = checkpoint.corruption_of(facts)
    update = settings.model_dump(include={"sampler", "conversion", "greedy_tail"})
    x0 = corruption.source((rows, facts["length"]), generator, device)
    return corruption.sample(
        network, x0, **update, steps=steps, prediction=facts["prediction"], generator=generator
    ).cpu()


class Hopeless(InputError):
    """So few samples are kept that the next are not worth waiting for."""


class Molecules:
    """Molecules on demand: iterating gives `settings.count` SMILES strings of the model in `folder`.

    They are a function of the model, the settings and the kind of device, and fewer of them are the first of
    more. Raises Hopeless where none of the last 20,000 samples was kept; `selection` has counted all samples.

        for smiles in Molecules("models/pairflow", DemandSettings(count=100, nfe=4, unique=True)): ...

    Needs RDKit.
    """

    def __init__(self, folder: str | Path, settings: DemandSettings, device: str | torch.device = "cpu"):
        from pairflow.data.known import KnownMolecules
        from pairflow.data.molecules import Vocabulary

        self.folder, self.settings, self.device = Path(folder), settings, torch.device(device)
        facts = checkpoint.read_description(self.folder / "model.json")
        if facts.get("shape") or not facts["vocabulary"]:
            found = "images" if facts.get("shape") else "token rows without a vocabulary"
            raise InputError(f"{folder}: a model of {found}, but --count asks for molecules")
        self.vocabulary = Vocabulary.load(carried.vocabulary_file(self.folder, facts))
        if self.vocabulary.size != facts["vocabulary_size"]:
            raise InputError(
                f"{self.folder / carried.VOCABULARY}: {self.vocabulary.size} tokens, "
                f"but the model makes {facts['vocabulary_size']}"
            )
        self.known = KnownMolecules.load(carried.known_file(self.folder, facts)) if settings.novel else ()
        self.network, self.facts = checkpoint.load(self.folder, device=device)

    def __iter__(self) -> Iterator[str]:
        from pairflow.metrics.selection import Selection

        settings = self.settings
        self.selection = Selection(settings.parsed, settings.unique, self.known)
        for text in self._strings():
            smiles = self.selection.keep(text)
            if smiles is not None:
                yield smiles
            if self.selection.counts["kept"] == settings.count:
                return
            if self.selection.since.total() >= PATIENCE:
                raise Hopeless(_why(self.selection.since))

    def _strings(self) -> Iterator[str]:
        """Decoded samples without end."""
        rows = checkpoint.corruption_of(self.facts).rows_at_once(self.facts["length"])
        batch = 0
        while True:
            made = (self.network, self.facts, self.settings, self.settings.nfe, rows, self.device)
            for ids in draw(*made, "demand", batch).tolist():
                yield self.vocabulary.decode(ids)
            batch += 1


_ADVICE = {
    "invalid": "try a larger --nfe or a model trained longer",
    "known": "the model makes little but what it has learnt; go without --novel",
    "repeated": "the model makes little else with these settings; ask for fewer, or go without --unique",
}


def _why(since: Counter[str]) -> str:
    shares = ", ".join(f"{count / since.total():.0%} {verdict}" for verdict, count in since.most_common())
    [(most, _)] = since.most_common(1)
    return f"none of the last {since.total():,} samples was kept ({shares}): {_ADVICE[most]}"
