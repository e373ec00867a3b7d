"""The One Billion Word Benchmark (Chelba et al. 2013): its archive, and its sentences as once written."""

import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from pairflow.config import DataSettings
from pairflow.data.source import DatasetSize
from pairflow.data.status import described
from pairflow.data.unpack import require_plausible
from pairflow.errors import InputError
from pairflow.kinds.text.prepare import Parts, Rejected, normalise
from pairflow.kinds.text.settings import Text
from pairflow.kinds.text.sources import PublishedText, expected_size

TRAINING = [f"news.en-{number:05}-of-00100" for number in range(1, 100)]
HELD_OUT = [f"news.en.heldout-{number:05}-of-00050" for number in range(50)]
# In word pieces of bert-base-uncased, [SEP] included: 30,301,028 and 306,688 sentences of about 29.
_TOKENS, _HELD_OUT_TOKENS = 880_000_000, 8_900_000

_RULES = [  # of words that the benchmark has set apart, in this order
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(https?) : / / ", r"\1://"),
        (r" '(\w+)", r"'\1"),
        (r" (\w+) \.(?= |$)", r" \1."),
        (r" ([?!])(?= |$)", r"\1"),
        (r" ([,:;]) ", r"\1 "),
        (r" / ", "/"),
        (r'" ([^"]+) "', r'"\1"'),
        (r"' ([^']+) '", r"'\1'"),
        (r"\( ([^()]+) \)", r"(\1)"),
        (r"\[ ([^\[\]]+) \]", r"[\1]"),
        (r"([$£]) ", r"\1"),
    )
]


def detokenise(sentence: str) -> str:
    """A sentence without most spaces that the benchmark has put before punctuation and inside brackets.

    These are the rules that MDLM's authors use (Sahoo et al. 2024). They keep the one between `)` and `.`.
    """
    for pattern, replacement in _RULES:
        sentence = pattern.sub(replacement, sentence)
    return sentence


@dataclass(frozen=True)
class Lm1b(PublishedText):
    """Single sentences in a random order: 99 files for training and 50 held-out ones, for validation.

    The last of the 99, as many as `judge_fraction` says, are the judge's.
    """

    def parts(self, settings: Text, rejected: list[Rejected]) -> Parts:
        judge = ceil(Fraction(str(settings.judge_fraction)) * len(TRAINING))
        names = {"train": TRAINING[:-judge], "validation": HELD_OUT, "judge": TRAINING[-judge:]}
        return {part: self._sentences(set(own), settings) for part, own in names.items()}

    def _sentences(self, names: set[str], settings: Text) -> Iterator[str]:
        """The sentences of the files of these names, in the order of the archive."""
        path = self.fetch()
        try:
            with tarfile.open(path, "r|gz") as archive:
                for member in archive:
                    if member.name.rpartition("/")[2] in names and (file := archive.extractfile(member)):
                        require_plausible(path, member.size)
                        for line in file.read().decode("utf-8").splitlines():
                            yield normalise(detokenise(line), settings)
        except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error) as error:
            raise InputError(f"{path}: not the archive of LM1B: {described(error)}") from None

    def measure(self, settings: DataSettings, progress: bool = True) -> DatasetSize:
        assert isinstance(settings, Text)
        return expected_size(settings, _TOKENS, _HELD_OUT_TOKENS)
