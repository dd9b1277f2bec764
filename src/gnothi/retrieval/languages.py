"""Languages of an index: which stems its Latin words have, and where its sentences end."""

from __future__ import annotations

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
    asked = language.strip().casefold()
    names = {code: name for name, code in reversed(_CODES.items())} | {name: name for name in _CODES}
    if asked not in names:
        raise InvalidSetting(
            f"<--language>: got {language!r:.40}, expected {', '.join(sorted(_CODES))} or a code as de. Name {NONE} for another "
            "language in Latin letters; one in other letters needs nothing."
        )
    return names[asked]


def code(language: str) -> str:
    """As libraries call it."""
    return _CODES[language]


def stemmer(language: str) -> str:
    """Of Latin words, as tantivy calls it; empty for none. Words of other scripts have their stems in every index."""
    return "" if language == NONE else DEFAULT if language in _NOT_LATIN else language
