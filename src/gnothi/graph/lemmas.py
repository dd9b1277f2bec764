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
NONE = "none"
_CACHED = 1 << 17


def best(language: str) -> str:
    """The name of the best lemmatiser that is installed: for a language without any, words are taken as they are."""
    if find_spec(SIMPLEMMA):
        try:
            _simplemma(language)
        except InvalidSetting:
            return NONE
        return SIMPLEMMA
    return PLURALS if language == "en" else NONE


def lemmatiser(name: str, language: str = "en") -> Lemmatiser:
    """The function from a word in lower case to its lemma.

    Raises MissingDependency where it is simplemma, which is not installed, InvalidSetting for an unknown one.
    """
    if name == SIMPLEMMA:
        return _simplemma(language)
    if name not in _OURS:
        raise InvalidSetting(f"lemmatiser of a graph: got {name!r}, expected {SIMPLEMMA}, {' or '.join(_OURS)}.")
    return _OURS[name]


def singular(word: str) -> str:
    """English plurals and possessives without a dictionary: regular endings only."""
    word = word.removesuffix("'s")
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1]


def unchanged(word: str) -> str:
    """The word itself."""
    return word


_OURS: dict[str, Lemmatiser] = {PLURALS: singular, NONE: unchanged}


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
