"""The share of the words of samples that the training text has, too."""

from collections.abc import Iterable

_SIGNS = ".,;:!?\"'`()[]{}-_"


def whole_words(text: str) -> list[str]:
    """The words between white space, in small letters, without the signs around them.

    The first and the last are left out, because a row may begin or end within a word.
    """
    words = (word.strip(_SIGNS).lower() for word in text.split()[1:-1])
    return [word for word in words if word]


def list_words(texts: Iterable[str]) -> frozenset[str]:
    """The different words of some texts."""
    return frozenset(word for text in texts for word in whole_words(text))


def known_share(texts: Iterable[str], known: frozenset[str]) -> float:
    """The share of the words of all texts, with repeats, that are among `known`; NaN without any word."""
    words = [word for text in texts for word in whole_words(text)]
    return sum(word in known for word in words) / len(words) if words else float("nan")
