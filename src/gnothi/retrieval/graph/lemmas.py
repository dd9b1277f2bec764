"""From a word to its dictionary form, so that "dogs" finds the node "dog".

A graph remembers which of these it was built with, and its texts are read with the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.util import find_spec

from gnothi.errors import InvalidSetting, MissingDependency

Lemmatiser = Callable[[str], str]
PLURALS = "plurals"
SIMPLEMMA = "simplemma"
_CACHED = 1 << 17


def best() -> str:
    """The name of the best lemmatiser that is installed."""
    return SIMPLEMMA if find_spec(SIMPLEMMA) else PLURALS


def lemmatiser(name: str, language: str = "en") -> Lemmatiser:
    """The function from a word in lower case to its lemma.

    Raises MissingDependency where it is simplemma, which is not installed, InvalidSetting for an unknown one.
    """
    if name == PLURALS:
        return singular
    if name != SIMPLEMMA:
        raise InvalidSetting(f"lemmatiser of a graph: got {name!r}, expected {SIMPLEMMA} or {PLURALS}.")
    return _simplemma(language)


def singular(word: str) -> str:
    """English plurals without a dictionary: regular endings only."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1]


@functools.cache
def _simplemma(language: str) -> Lemmatiser:
    try:
        from simplemma import lemmatize
    except ImportError:
        raise MissingDependency("simplemma", "graph", "This graph, which was built with it,") from None

    def lemma(word: str) -> str:
        return lemmatize(word, lang=language).lower()

    try:
        lemma("words")
    except ValueError:  # simplemma knows no such language
        raise InvalidSetting(
            f"language of a graph: got {language!r}, expected one that simplemma has a dictionary of (en, de, fr, es ...)."
        ) from None
    return functools.lru_cache(_CACHED)(lemma)
