"""Languages of an index: which stems its Latin words have, and where its sentences end."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from gnothi.errors import InvalidSetting

DEFAULT = "english"
NONE = "none"
"""For languages in Latin letters whose stems nobody here knows."""
_CODES = {
    "arabic": "ar", "danish": "da", "dutch": "nl", "english": "en", "finnish": "fi", "french": "fr", "german": "de",
    "greek": "el", "hungarian": "hu", "italian": "it", "norwegian": "no", "portuguese": "pt", "romanian": "ro",
    "russian": "ru", "spanish": "es", "swedish": "sv", "tamil": "ta", "turkish": "tr", NONE: "en",
}  # fmt: skip
"""Those that tantivy has stemmers of, and their codes."""
_NOT_LATIN = ("arabic", "greek", "russian", "tamil")


def named(language: str) -> str:
    """A language by its name or code. Raises InvalidSetting for one without stems."""
    wanted = language.strip().casefold()
    names = {code: name for name, code in reversed(_CODES.items())} | {name: name for name in _CODES}
    if wanted not in names:
        raise InvalidSetting(
            f"<--language>: got {language!r:.40}, expected {', '.join(sorted(_CODES))} or a code as de. Name {NONE} for "
            "another language in Latin letters; one in other letters needs nothing."
        )
    return names[wanted]


def code(language: str) -> str:
    """As libraries call it."""
    return _CODES[language]


def stemmer(language: str) -> str:
    """Of Latin words, as tantivy calls it; empty for none. Words of other scripts have their stems in every index."""
    return "" if language == NONE else DEFAULT if language in _NOT_LATIN else language


_LOOKED_AT = 100
_LATIN = re.compile(r"[a-z\u00e0-\u024f\u1ea0-\u1eff]{2,}", re.IGNORECASE)
_ENGLISH = {"the", "of", "and", "in", "to", "a", "is", "was", "for", "that"}
_LEAST_WORDS = 5
"""Of a passage whose language can be guessed."""
_LEAST, _DOUBTED = 3, 0.5
"""Passages of another language, and their share of those looked at, from which on a notice is given."""
_NO_LANGUAGE = ("zxx", "und", "mul")
"""Codes of ISO 639 for text in none, an unknown one, or several."""


class Sample:
    """Up to a hundred passages, evenly from all: do they seem to be of the index's language? Only to warn, and only with
    py3langid (``gnothi[documents]``)."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._count, self._step = 0, 1

    def look(self, text: str) -> None:
        if self._count % self._step == 0:
            self._texts.append(text[:1000])
            if len(self._texts) > _LOOKED_AT:
                self._texts, self._step = self._texts[::2], self._step * 2
        self._count += 1

    def doubt(self, language: str) -> str:
        """A notice for the user; empty where there is none."""
        latin = [text for text in self._texts if len(_LATIN.findall(text)) >= max(_LEAST_WORDS, len(text.split()) / 2)]
        # Most indexes are English, and the guesser takes a second to open.
        open_to_doubt = [text for text in latin if language != DEFAULT or not _seems_english(text)]
        if len(open_to_doubt) <= len(latin) * _DOUBTED:
            return ""
        try:
            import py3langid
        except ImportError:
            return ""
        guess: Any = py3langid.classify
        (guessed, number), *_ = Counter(guess(text)[0] for text in open_to_doubt).most_common(1)
        stems, known = stemmer(language), {code: name for name, code in reversed(_CODES.items())}
        if number < _LEAST or number <= len(latin) * _DOUBTED or known.get(guessed, "") == stems or guessed in _NO_LANGUAGE:
            return ""
        return (
            f"{number} of {len(latin)} passages looked at seem to be {known.get(guessed, repr(guessed))}, and words have "
            f"{stems or 'no'} stems here, so fewer are found. If that is so, build a new index with "
            f"<--language {known.get(guessed, NONE)}>."
        )


def _seems_english(text: str) -> bool:
    words = text.lower().split()
    return sum(word in _ENGLISH for word in words) > len(words) / 10


def analysis(language: str) -> str:
    """What is done with words, to be shown to users."""
    return (
        f"Latin words: {stemmer(language) or 'no'} stems, accents folded; Cyrillic, Greek, Arabic, Tamil: stems; Hebrew: "
        "particles off; Armenian, Georgian, Indic: the first 6 characters without endings; Ethiopic: 3 without particles; "
        "Chinese, Japanese, Korean: pairs of characters; Thai, Lao, Khmer, Burmese: threes; others: whole words"
    )
