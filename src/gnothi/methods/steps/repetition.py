"""Text that goes round in circles, as that of small models does: where it begins to, and whether a sentence adds anything."""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.methods.steps.queries import bare, is_content

# The longest stretch that is looked for, in words; from _LONG words on, twice is a circle, below three times.
_LONGEST, _LONG = 16, 4


def until_it_repeats(text: str) -> str:
    """The text up to where it says the same words again and again; the first time stays.

    Three times in a row is a circle ("very very" is none), of stretches of four words and more already twice. Case and
    punctuation do not matter."""
    words = text.split()
    forms = [bare(word).casefold() for word in words]
    for end in range(1, len(words)):
        for length in range(1, min(_LONGEST, end) + 1):
            times = 2 if length >= _LONG else 3
            start = end - length
            if forms[start : start + times * length] == forms[start:end] * times:
                return " ".join(words[:end])
    return text


def adds_nothing(sentence: str, chain: Sequence[str]) -> bool:
    """Whether every word of a sentence that says something stands in the ``chain`` already."""
    said = {bare(word).casefold() for one in chain for word in one.split()}
    words = [bare(word).casefold() for place, word in enumerate(sentence.split()) if is_content(word, place == 0)]
    return all(word in said for word in words)
