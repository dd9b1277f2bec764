"""From a word to its dictionary form, so that "dogs" finds the node "dog".

A graph remembers which of these it was built with, and its texts are read with the same.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
        raise MissingDependency("simplemma", "graph", "this graph") from None

    def lemma(word: str) -> str:
        return lemmatize(word, lang=language).lower()

    try:
        lemma("words")
    except ValueError:  # simplemma knows no such language
        raise InvalidSetting(
            f"language of a graph: got {language!r}, expected one that simplemma has a dictionary of (en, de, fr, es ...)."
        ) from None
    return functools.lru_cache(_CACHED)(lemma)


# Words of names and texts, and the forms under which names are looked up. Changing any of it changes ``FORMAT_VERSION``.

LONGEST = 4  # words of a name that is linked; names with more of them are seldom said in full
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_IN_BRACKETS = re.compile(r"(?<=\S)\s+\([^()]*\)$")
_POSSESSIVES = ("'s",)

# Words that name nothing alone: articles, pronouns, auxiliaries, prepositions, conjunctions, question words, single letters.
STOP_WORDS = frozenset(
    """
    a an the this that these those some any each every either neither both all few many much more most other another such own
    same several enough no none nothing nobody no-one something somebody someone anything anybody anyone everything everybody
    everyone one ones i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she
    her hers herself it its itself they them their theirs themselves who whom whose which what when where why how whoever
    whatever whichever whenever wherever am is are was were be been being do does did doing done have has had having can could
    may might must shall should will would ought need let's lets get gets got getting about above across after against along
    among around as at before behind below beneath beside besides between beyond but by despite down during except for from in
    inside into like near of off on onto out outside over past per since through throughout till to toward towards under until
    up upon via with within without and or nor so yet if then than because while although though unless whether not n't don't
    doesn't didn't isn't aren't wasn't weren't can't cannot couldn't won't wouldn't shouldn't hasn't haven't hadn't i'm i've
    i'll i'd you're you've you'll he's she's it's we're they're they've that's there's what's who's there here also only just
    very too even ever never always often still again once now well rather quite almost already maybe perhaps however
    therefore thus hence yes
    """.split()
) | frozenset("bcdefghjklmnopqrstuvwxyz")


class Word(NamedTuple):
    """A word of a text: its form (lower case, straight apostrophes) and its characters from ``start`` to before ``end``."""

    form: str
    start: int
    end: int

    @property
    def possessor(self) -> str:
        """The form without a possessive ending; empty where there is none."""
        return self.form[:-2] if self.form.endswith(_POSSESSIVES) else ""


def words(text: str) -> list[Word]:
    """Runs of letters and digits, with apostrophes between them."""
    return [Word(match[0].lower().replace("’", "'"), match.start(), match.end()) for match in _WORD.finditer(text)]


def forms(name: str) -> tuple[str, ...]:
    """The words under which a name is linked; empty where it is not: it has too many, or nothing but stop words.

    What stands in brackets at its end tells namesakes apart ("Paris (Texas)") and is not said.
    """
    parts = tuple(form.lower().replace("’", "'") for form in _WORD.findall(_IN_BRACKETS.sub("", name)))
    return parts if 1 <= len(parts) <= LONGEST and not STOP_WORDS.issuperset(parts) else ()


def hashes(keys: Sequence[str]) -> NDArray[np.uint64]:
    """A number of 64 bits for each key, the same on every machine."""
    digests = b"".join([blake2b(key.encode("utf-8", "replace"), digest_size=8).digest() for key in keys])
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64, copy=False)
