"""The share of the words of samples that the training text has, too."""

from collections.abc import Iterable

_SIGNS = ".,;:!?\"'`()[]{}-_"


def whole_words(text: str, cut: bool = True) -> list[str]:
    """The words between white space, in small letters, without the signs around them.

    `cut`: the row may begin or end within a word, so that the first and the last one are left out.
    """
    words = text.split()
    stripped = (word.strip(_SIGNS).lower() for word in (words[1:-1] if cut else words))
    return [word for word in stripped if word]


def list_words(texts: Iterable[str], cut: bool = True) -> frozenset[str]:
    """The different words of some texts."""
    return frozenset(word for text in texts for word in whole_words(text, cut))


def known_share(texts: Iterable[str], known: frozenset[str], cut: bool = True) -> float:
    """The share of the words of all texts, with repeats, that are among `known`; NaN without any word."""
    words = [word for text in texts for word in whole_words(text, cut)]
    return sum(word in known for word in words) / len(words) if words else float("nan")
