"""Answers that differ from a gold answer by the way they are written alone, and those that are equal by it alone."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence

from gnothi.metrics.normalise import ARTICLES, exact_match, normalise

_KINDS = {
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63",
    "'": "\u2018\u2019\u201b\u02bc\u2032\u00b4`",
    '"': "\u201c\u201d\u201e\u2033",
    "I": "\u0130",  # whose small letter is two characters
}
_ALIKE = str.maketrans({one: plain for plain, kinds in _KINDS.items() for one in kinds})
_WIDTHS = ("<wide>", "<narrow>", "<noBreak>")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}([.,' ])\d{3}(?:\1\d{3})*(?![\d])")
_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]")


def alike(text: str) -> str:
    """The text with one kind of dash, apostrophe and quotation mark, letters of one width, accents composed, and nothing that
    cannot be seen. Superscripts stay: 10⁶ is not 106. Idempotent."""
    if text.isascii():
        return text.replace("`", "'")
    wide = "".join(
        unicodedata.normalize("NFKC", character) if unicodedata.decomposition(character).startswith(_WIDTHS) else character
        for character in text
        if unicodedata.category(character) != "Cf"
    )
    return unicodedata.normalize("NFC", wide).translate(_ALIKE)


def misses_by_spelling(answer: str, golds: Sequence[str]) -> bool:
    """Whether the answer is no exact match, and would be one if it and the gold answers were ``alike``."""
    return not exact_match(answer, golds) and exact_match(alike(answer), [*map(alike, golds)]) > 0


def matches_without_signs(answer: str, golds: Sequence[str]) -> bool:
    """Whether the answer is an exact match only since the official normal form drops signs: 3.14 for 314, -5 for 5, C++ for C.

    Signs that group digits by thousands (1,820) or stand for a currency tell nothing and do not count."""
    form, signed = normalise(answer), _signed(answer)
    same = [gold for gold in golds if normalise(gold) == form]
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

    return " ".join(ARTICLES.sub(" ", _PUNCTUATION.sub(attached_sign, text)).split())
