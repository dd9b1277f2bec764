"""Words of every script: text in its normal form, and what stands for a word where words are not set apart by spaces.

Ranges of characters are blocks of the Unicode Standard.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

# Latin letters, digits and signs between words, to which the analyser of English does justice as they come.
_PLAIN = (
    r"\t-\r\x1c-~\x85\xa0-\xac\xae-\u012f\u0131-\u02ff\u1e00-\u1eff\u2000-\u200a\u2010-\u2029\u202f-\u205f\u2070-\u20cf"
    r"\u2100-\u214f\u2190-\u2bff\u2c60-\u2c7f\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\ua720-\ua7ff\uab30-\uab6f"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff5e\ufffd\U0001f000-\U0001faff"
)
HAN_AND_KANA = (
    r"\u2e80-\u2fdf\u3005-\u3007\u3021-\u312f\u3190-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f"
    r"\U00020000-\U000323af"
)
_HANGUL = r"\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
SOUTH_EAST_ASIAN = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\ua9ff\uaa00-\uaadf"
_PAIRED = HAN_AND_KANA + _HANGUL
_RUN = re.compile(f"([{_PAIRED}]+)|([{SOUTH_EAST_ASIAN}]+)|([^{_PAIRED}{SOUTH_EAST_ASIAN}]+)")
_SPECIAL = re.compile(f"[^{_PLAIN}]")
_TOKEN = re.compile(rf"(?:[^\W_]|[^{_PLAIN}])+")
_BROKEN, _LAST_WORD = re.compile(r"-\s+(\w{3,})"), re.compile(r"\w+$")
_KEPT = 40
"""Bytes of the longest word that the analyser of English keeps."""
_PART = re.compile(r"\d+|\D+")
_LONGEST = 1000
"""Characters of a word that count."""
# Ignorable by the standard beside those of categories Cf and Cc; the last but one is Arabic's kashida, which stretches a word.
_IGNORED = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, *range(0xFE00, 0xFE10), 0xFFA0, 0x640}
# What many writers leave out: accents that have no letter of their own, vowels of Hebrew, Arabic and Syriac, dots of Hindi.
_OPTIONAL = {
    *range(0x300, 0x370), *range(0x591, 0x5C8), *range(0x610, 0x61B), *range(0x64B, 0x660), 0x670, *range(0x6D6, 0x6EE),
    *range(0x711, 0x74B), 0x93C, 0x9BC, 0xA3C, 0xABC, 0xB3C, 0xCBC,
}  # fmt: skip
_ALIKE = dict(zip("ёЁґҐیکٱँ", "еЕгГيكاं", strict=True)) | {
    chr(ord(letter) + vowel): chr(ord(same) + vowel)  # letters of Ethiopic that sound the same
    for letter, same in zip("ሐኀሠዐፀ", "ሀሀሰአጸ", strict=True)
    for vowel in range(8)
}
# Particles written together with the word behind them, while enough is left of it: of Arabic, Hebrew and Amharic. All that look
# like one go, so that a word that begins like one is the same with and without a particle.
_PARTICLES = re.compile(
    r"^(?:[وبفك]?ال(?=..)|لل(?=..)|و(?=...)|[והבל](?=[\u05d0-\u05ea]{3})|[כמש](?=[\u05d0-\u05ea]{4})|[የበለከ](?=..))+"
)
_ARABIC_ENDING = re.compile(r"(?<=[\u0620-\u064a]{2})(?:ها|ان|ات|ون|ين|يه|ه|ي)$")
_ARABIC_ALIKE = str.maketrans("ىةأإآ", "يهااا")
# Scripts of inflected languages without a stemmer: Armenian, those of India but Tamil, and Georgian. Case endings of the first
# and the last are cut off twice: after a plural's own.
_UNSTEMMED = re.compile(r"[\u0530-\u058f\u0900-\u0b7f\u0c00-\u0dff\u10a0-\u10ff\u1c90-\u1cbf]")
_ENDING = re.compile(r"(?<=...)(?:ი?სთვის|იდან|თან|გან|მა|ში|ზე|ის|ით|ად|ებ|[აეიოუსდ]|ում|ով|ից|ին|ն?եր|ու|[իըն])$")
_STEM, _ETHIOPIC_STEM = 6, 3
"""Characters of such a word that count, without the vowel signs at their end."""


class _Table(dict[int, str | None]):
    """For ``str.translate``: each character is looked up when it is first met."""

    def __init__(self, change: Callable[[str], str | None]) -> None:
        super().__init__()
        self._change = change

    def __missing__(self, code: int) -> str | None:
        self[code] = changed = self._change(chr(code))
        return changed


def _visible(letter: str) -> str | None:
    if letter in "\u2122\u2120":  # signs of a trade mark, which would become letters
        return " "
    if letter == "İ":  # which in lower case would be two characters
        return "I"
    hidden = ord(letter) in _IGNORED or (unicodedata.category(letter) in ("Cf", "Cc") and not letter.isspace())
    return None if hidden else letter


def _folded(letter: str) -> str | None:
    """A letter, digit or mark as it counts in a word; a space for all that stands between words."""
    if ord(letter) in _OPTIONAL:
        return None
    kind = unicodedata.category(letter)
    if kind == "Nd":
        return str(unicodedata.digit(letter))
    if kind[0] not in "LMN":
        return " "
    if "\u0370" <= letter <= "\u03ff" or "\u1f00" <= letter <= "\u1fff":  # Greek, with its accents or in capitals without
        return unicodedata.normalize("NFD", letter)[0]
    return _ALIKE.get(letter, letter)


_VISIBLE, _FOLDED = _Table(_visible), _Table(_folded)


def normal(text: str) -> str:
    """The text as it looks: composed (NFKC), without characters that are not seen. Plain text stays as it is."""
    if not is_special(text):
        return text
    return unicodedata.normalize("NFKC", text.translate(_VISIBLE))


def special_tokens(text: str) -> tuple[list[str], int]:
    """The tokens of a text to which the analyser of English does no justice: of other scripts, with characters that are not
    seen or not composed, or too long for it; and the number of all others, about."""
    words = text.split()
    # Plain letters have at most two bytes, but for those of Vietnamese, whose words are short.
    long = max(map(len, words), default=0) > _KEPT // 2
    long = long and any(len(token.encode("utf-8", "replace")) > _KEPT for token in words)
    if not long and not is_special(text):
        return [], len(words)
    tokens = _TOKEN.findall(text)
    special = [token for token in tokens if _SPECIAL.search(token) or (long and len(token.encode("utf-8", "replace")) > _KEPT)]
    return special, len(tokens) - len(special)


def broken(text: str) -> list[str]:
    """Words that a hyphen and a new line divide, whole; also words that never were: ``pre- and`` gives ``preand``."""
    if "- " not in text and "-\n" not in text:
        return []
    halves = ((_LAST_WORD.search(text, max(0, one.start() - _KEPT), one.start()), one[1]) for one in _BROKEN.finditer(text))
    return [first[0] + second for first, second in halves if first]


def units(text: str, mixed: bool = True) -> list[str]:
    """What is looked up of a text: words; of runs without spaces every two characters that follow each other (of Han, kana and
    Hangul) or three (of Thai, Lao, Khmer, Burmese); a run that is shorter, whole. A word beside such a run counts whole and by
    its letters and its digits (``Windows11``). Without ``mixed`` letters beside such a run, and single ones, do not count: in a
    text of other scripts they are seldom words."""
    terms: list[str] = []
    for token in normal(text).translate(_FOLDED).split():
        runs = _RUN.findall(token)
        for pairs, triples, word in runs:
            size = 2 if pairs else 3
            run = pairs or triples
            if word:
                if mixed or (len(runs) == 1 and len(word) > 1) or not word.isascii():
                    terms += map(_stem, dict.fromkeys([word, *_PART.findall(word)] if len(runs) > 1 else [word]))
            elif len(run) <= size:
                terms.append(run)
            else:
                terms += [run[start : start + size] for start in range(len(run) - size + 1)]
    return [one for one in terms if one]


def _stem(word: str) -> str:
    """What the analysers leave to do. For Arabic that is light10 (Larkey, Ballesteros and Connell, 2007)."""
    if "\u1200" <= word[:1] <= "\u139f":
        word = _PARTICLES.sub("", word)[:_ETHIOPIC_STEM]
        if "\u1200" <= word[-1] <= "\u135a":  # whose rows hold eight: a consonant with each vowel
            word = word[:-1] + chr(ord(word[-1]) & ~7)
    elif "\u0590" <= word[:1] <= "\u06ff":
        word = _PARTICLES.sub("", word.translate(_ARABIC_ALIKE))
        word = _ARABIC_ENDING.sub("", _ARABIC_ENDING.sub("", word))
    elif word.endswith("пись"):  # in which the Russian stemmer sees a verb
        word = word[:-1]
    elif _UNSTEMMED.match(word):
        word = _ENDING.sub("", _ENDING.sub("", word.lower()))[:_STEM]
        while len(word) > 2 and unicodedata.category(word[-1])[0] == "M":
            word = word[:-1]
    return word[:_LONGEST]


def is_special(text: str) -> bool:
    return not (text.isascii() and text.isprintable()) and _SPECIAL.search(text) is not None


def room(unit: str) -> int:
    """How many characters a unit lacks to be as long as those that are cut from a longer run."""
    pairs, triples, _ = _RUN.findall(unit)[0]
    return 2 - len(unit) if pairs else 3 - len(unit) if triples else 0
