"""What attention and entropy tell about a text that a model wrote: when it needs information, and which (DRAGIN, section 3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from gnothi.types import Attended

Counts = Callable[[str, bool], bool]
"""Whether a word says anything, given that it opens a sentence or not (then its capital makes a name of it)."""

# After what a sentence begins: nothing, a new line, the end of another sentence, a label or a tag of the prompt.
_OPENING = re.compile(r"(?:^|\n|[.!?:>]\W?)\s*$")
_NEAR = 8


def needs_for_information(attended: Attended, counts: Counts, relative: bool = True) -> list[float]:
    """RIND: for each token of the continuation its entropy, times the most that a later token looks at it, times 0 for a token
    of a word that ``counts`` says no of, and for mere punctuation. The last token, which none follows, gets 0.

    ``relative``: attention counts by the mean over the tokens of the same sentence, as in the authors' code, so that the scale
    does not depend on the length of what the model sees; else as it is, as in the paper's formula.
    """
    count, start = len(attended.entropies), attended.prompt_tokens
    looked_at = np.zeros(count)
    for place in range(count - 1):
        looked_at[place] = attended.attention[place + 1 :, start + place].max()
    if relative:
        for first, end in _sentences(attended.tokens[start:]):
            total = looked_at[first:end].sum()
            looked_at[first:end] *= (end - first) / total if total > 0 else 0.0
    counted = np.zeros(count, bool)
    for word, places, opens in _words(attended.tokens[start:], "".join(attended.tokens[:start])):
        counted[places] |= counts(word, opens)
    counted &= [any(letter.isalnum() for letter in token) for token in attended.tokens[start:]]
    return [float(value) for value in np.asarray(attended.entropies, np.float64) * looked_at * counted]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a continuation: the places of its tokens there, its need for information, whether it says anything."""

    text: str
    places: list[int]
    need: float
    counts: bool


def words_in_need(attended: Attended, counts: Counts, lengths: Sequence[int]) -> list[list[Word]]:
    """RIND by sentence and word, as in the authors' code: the mean entropy of a word's tokens, times how much tokens, they
    too, look at them, by the mean over the words of the sentence. It does not matter here whether they say anything.

    ``lengths``: how many words each sentence has."""
    start = attended.prompt_tokens
    looked_at = [attended.attention[place:, start + place].max() for place in range(len(attended.entropies))]
    words = iter(_words(attended.tokens[start:], "".join(attended.tokens[:start])))
    sentences = []
    for length in lengths:
        inside = list(islice(words, length))
        sums = np.array([sum(looked_at[place] for place in places) for _, places, _ in inside], np.float64)
        shares = sums * len(inside) / sums.sum() if sums.any() else sums
        needs = [float(attended.entropies[places].mean() * share) for (_, places, _), share in zip(inside, shares, strict=True)]
        measured = zip(inside, needs, strict=True)
        sentences.append([Word(text, places, need, counts(text, opens)) for (text, places, opens), need in measured])
    return sentences


def words_attended_by(attended: Attended, unsure: Sequence[Word], end: int, text: str, n: int, counts: Counts) -> list[str]:
    """QFS as in the authors' code: of ``text``, in the prompt, and of the continuation before token ``end``, without the
    ``unsure`` words, the ``n`` that these are predicted from: that the token before each of theirs looks at most, on average.

    The first token of a continuation counts by its own row: the one before it is the prompt's."""
    start = attended.prompt_tokens
    first = _beginning(attended.tokens[:start], text)
    weights = np.zeros(len(attended.tokens))
    for word in unsure:
        before = slice(first, start + word.places[0])
        for place in word.places:
            row = attended.attention[max(place - 1, 0), before].astype(np.float64)
            weights[before] += row / (row.sum() or 1.0) / len(word.places)
    left_out = {start - first + place for word in unsure for place in word.places}
    words = [
        word
        for word in _words(attended.tokens[first : start + end])
        if left_out.isdisjoint(word[1]) and counts(word[0], word[2])
    ]
    looked_at = [weights[[first + place for place in places]].sum() for _, places, _ in words]
    places = sorted(sorted(range(len(words)), key=lambda place: -looked_at[place])[:n])
    return [words[place][0] for place in places]


def _sentences(tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Where sentences begin and end: after a full stop, exclamation or question mark that white space follows."""
    ends = [
        place + 1
        for place in range(len(tokens) - 1)
        if tokens[place].rstrip()[-1:] in (".", "!", "?") and (tokens[place][-1:].isspace() or tokens[place + 1][:1].isspace())
    ]
    return list(zip([0, *ends], [*ends, len(tokens)], strict=True))


def attended_words(attended: Attended, row: int, text: str, n: int, counts: Counts) -> list[str]:
    """QFS: of the last occurrence of ``text`` in the prompt and of the continuation before token ``row``, the ``n`` words
    that this token looks at most, in the order of the text and without those that ``counts`` says no of.

    White space may differ between ``text`` and the tokens. A word is looked at as much as the one of its tokens that is most.
    """
    end = attended.prompt_tokens + row
    first = _beginning(attended.tokens[: attended.prompt_tokens], text)
    weights = attended.attention[row, first:end]
    words = [(word, float(weights[places].max()), opens) for word, places, opens in _words(attended.tokens[first:end])]
    eligible = [place for place, (word, _, opens) in enumerate(words) if counts(word, opens)]
    places = sorted(sorted(eligible, key=lambda place: -words[place][1])[:n])
    return [words[place][0] for place in places]


def _words(tokens: Sequence[str], before: str = "") -> list[tuple[str, list[int], bool]]:
    """The words that tokens spell, each with the places of the tokens it is made of, and whether it opens a sentence.

    ``before`` is the text before the first token, which begins a word."""
    before = before[-_NEAR:]
    text, start = before + "".join(tokens), len(before)
    owners = [place for place, token in enumerate(tokens) for _ in token]
    words = []
    for match in re.compile(r"\S+").finditer(text, start):
        first, end = match.span()
        opens = _OPENING.search(text[max(0, first - _NEAR) : first]) is not None
        words.append((match.group(), sorted(set(owners[first - start : end - start])), opens))
    return words


def _beginning(tokens: Sequence[str], text: str) -> int:
    """The token in which the last occurrence of ``text`` begins; past the end where there is none."""
    owners = [place for place, token in enumerate(tokens) for letter in token if not letter.isspace()]
    place = "".join("".join(tokens).split()).rfind("".join(text.split()))
    return owners[place] if 0 <= place < len(owners) else len(tokens)


def deepest(scores: Sequence[float]) -> float:
    """The greatest need, 0 without any."""
    return float(np.max(scores)) if len(scores) else 0.0
