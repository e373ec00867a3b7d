"""The data sets of text. A new one is an entry here, and its name in `settings.TEXT_SOURCES`."""

from pathlib import Path

from pairflow.data.download import RawFile
from pairflow.kinds.text.lm1b import Lm1b
from pairflow.kinds.text.settings import Text
from pairflow.kinds.text.sources import EmbeddedText, OwnText, Text8, TextSource

_LM1B = "1-billion-word-language-modeling-benchmark-r13output.tar.gz"
_EMBEDDED = Path(__file__).with_name("shakespeare.txt.xz")

_TEXTS: tuple[TextSource, ...] = (
    # Tiny Shakespeare, 40,000 lines of his plays, in the public domain.
    EmbeddedText(
        "shakespeare",
        RawFile((_EMBEDDED.name,), embedded=_EMBEDDED),
        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    ),
    Text8(
        "text8",
        RawFile(
            ("text8.zip",),
            "http://mattmahoney.net/dc/text8.zip",
            sha256="a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
        ),
    ),
    Lm1b(
        "lm1b",
        RawFile(
            (_LM1B,),
            f"https://www.statmt.org/lm-benchmark/{_LM1B}",
            sha256="01ba60381110baf7f189dfd2b8374de371e8c9a340835793f190bdae9e90a34e",
        ),
    ),
)
DATA_SETS: dict[str, TextSource] = {text.name: text for text in _TEXTS}


def source_of(settings: Text, folder: Path = Path()) -> TextSource:
    """The source that the settings name; a relative path of an own file or folder is one below `folder`."""
    return DATA_SETS.get(settings.source) or OwnText(folder / settings.source)
