"""Answers that differ from a gold answer by the way they are written alone, and those that are equal by it alone."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence

from gnothi.metrics.normalise import ARTICLES, exact_match, normalise

_KINDS = {
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\u05be",
    "'": "\u2018\u2019\u201b\u02bb\u02bc\u2032\u00b4`\u05f3",
    '"': "\u201c\u201d\u201e\u2033\u00ab\u00bb\u05f4",
    "%": "\u066a",
    "I": "\u0130",  # whose small letter is two characters
}
_ALIKE = str.maketrans({one: plain for plain, kinds in _KINDS.items() for one in kinds})
_WIDTHS = ("<wide>", "<narrow>", "<noBreak>")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}([.,' ])\d{3}(?:\1\d{3})*(?![\d])")
_SPACED = re.compile(r"(?<!\d)\d{1,3}(?: \d{3})+(?!\d)")
_DIGIT = re.compile(r"[^\D0-9]")
_POINTS = re.compile("[\u05b0-\u05bd\u05bf\u05c1\u05c2\u05c7\u064b-\u0652\u0670]")  # Hebrew and Arabic vowels, mostly unwritten
_PER = "\u2030\u2031"  # of a thousand, of ten thousand: signs that tell as much as %, which is told elsewhere
_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]")


def alike(text: str) -> str:
    """The text with one kind of dash, apostrophe, quotation mark and digit, letters of one width, accents composed, no points
    for vowels, and nothing that cannot be seen. Superscripts stay: 10⁶ is not 106. Idempotent."""
    if text.isascii():
        return text.replace("`", "'")
    wide = "".join(
        unicodedata.normalize("NFKC", character) if unicodedata.decomposition(character).startswith(_WIDTHS) else character
        for character in text
        if unicodedata.category(character) != "Cf"
    )
    plain = unicodedata.normalize("NFC", _POINTS.sub("", unicodedata.normalize("NFC", wide)))
    return _DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), plain).translate(_ALIKE)


def spelt(text: str) -> str:
    """The official normal form of the text in ``alike`` spelling, without the signs of other scripts around it and the spaces
    that group digits by thousands."""
    return _without_signs_around(_SPACED.sub(lambda match: match[0].replace(" ", ""), normalise(alike(text))))


def misses_by_spelling(answer: str, golds: Sequence[str]) -> bool:
    """Whether the answer is no exact match, and would be one if it and the gold answers were ``spelt`` the same."""
    form = spelt(answer)
    same = any(form == spelt(gold) for gold in golds)
    return bool(form) and same and not exact_match(answer, golds) and not matches_without_signs(answer, golds)


def matches_without_signs(answer: str, golds: Sequence[str]) -> bool:
    """Whether the answer is ``spelt`` as a gold answer only since the official normal form drops signs: 3.14 for 314, -5 for 5,
    C++ for C.

    Signs that group digits by thousands (1,820) or stand for a currency tell nothing and do not count."""
    form, signed = spelt(answer), _signed(answer)
    same = [gold for gold in golds if spelt(gold) == form]
    return bool(form and same) and all(_signed(gold) != signed for gold in same)


def vanishes(gold: str) -> bool:
    """Whether a gold answer normalises to nothing or to one letter, so that hardly an answer is told from it. A digit stays
    itself."""
    form = normalise(gold)
    return not form or (len(form) == 1 and form.isascii() and form.isalpha())


def _signed(text: str) -> str:
    """The normal form with the signs that belong to a number or to a letter before them."""
    text = alike(text).lower()
    text = _GROUPED.sub(lambda match: re.sub(r"\D", "", match[0]), text)

    def attached_sign(match: re.Match[str]) -> str:
        sign, before, after = match[0], text[: match.start()][-1:], text[match.end() :][:1]
        if before.isdigit() and after.isdigit():
            return "." if sign == "," else sign
        if sign in "+-" and after.isdigit() and not before.isalnum():
            return sign
        return sign if (sign == "%" and before.isdigit()) or (sign in "+#" and (before.isalpha() or before == "+")) else ""

    return _without_signs_around(" ".join(ARTICLES.sub(" ", _PUNCTUATION.sub(attached_sign, text)).split()))


def is_foreign_sign(character: str) -> bool:
    """Whether it is punctuation that the official normal form, which knows that of ASCII alone, keeps."""
    return not character.isascii() and unicodedata.category(character)[0] == "P" and character not in _PER


def _without_signs_around(text: str) -> str:
    kept = [place for place, one in enumerate(text) if not one.isspace() and not is_foreign_sign(one)]
    return text[kept[0] : kept[-1] + 1] if kept else ""
