"""Log-probabilities of a reply's tokens, as far as they are numbers and belong to the answer."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnothi.types import Token

FLOOR = -9999.0
"""The value of a log-probability that is too small to report: OpenAI's for a token outside the likeliest, and ours for minus
infinity."""
_ROUNDING = 1e-4
"""By so much a logarithm of a probability may exceed 0, in 16 bits."""
_MARKS = {"Ġ": " ", "▁": " ", "Ċ": "\n", "</w>": " "}
"""How vocabularies write white space, where a server shows names of tokens in place of their texts."""
_COVERED = 0.6
"""Of a text, so much must be in the names of its tokens: some servers tell only of the first tokens."""
_SPECIAL = re.compile(r"(\s|<[^<>]*>|\[/?[A-Z_]+\])*")
"""What may follow an answer: white space and the names of tokens that end a reply."""


@dataclass(frozen=True, slots=True)
class Measured:
    """``tokens`` add up to the answer; None where the server gave no numbers, or some that are of no use, which
    ``lacking`` then says. ``floors`` counts those that only say how unlikely a token was at least."""

    tokens: tuple[Token, ...] | None = None
    lacking: str = ""
    floors: int = 0
    thought: int | None = None
    """How many tokens come before the answer."""


ABSENT = Measured()


def measured(logprobs: object, text: str, thinks: bool) -> Measured:
    """The tokens of ``text``, of either endpoint's form. ``thinks``: a thought came before it, whose tokens may be among
    them."""
    if not isinstance(logprobs, Mapping):
        return ABSENT
    content = logprobs.get("content")
    if isinstance(content, list):
        entries = [entry for entry in content if isinstance(entry, Mapping)]
        return aligned(chat_texts(entries), [entry.get("logprob") for entry in entries], text, thinks)
    names, numbers = logprobs.get("tokens"), logprobs.get("token_logprobs")
    if isinstance(names, list) and isinstance(numbers, list) and len(names) == len(numbers):
        return aligned([str(name) for name in names], numbers, text, thinks)
    return ABSENT


def number(value: object) -> float | None:
    """A log-probability; None for what is none: null, NaN, a text, a positive number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value > _ROUNDING:
        return None
    return min(0.0, max(float(value), FLOOR))


def chat_texts(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tokens' texts; a character whose bytes are spread over tokens belongs to the one that completes it."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    texts = []
    for entry in entries:
        raw = entry.get("bytes")
        if isinstance(raw, list) and all(isinstance(value, int) and 0 <= value < 256 for value in raw):
            texts.append(decoder.decode(bytes(raw)))
        else:
            texts.append(str(entry.get("token", "")))
    return texts


def aligned(names: Sequence[str], numbers: Sequence[object], text: str, thinks: bool = False) -> Measured:
    """The tokens that make up ``text``: those at the beginning, or, where something comes before it, those at the end.

    Where the names of tokens add up to something else, each gets the part that its name is found in, if most are found and
    nothing was thought before. Otherwise, and where a number is missing, there are none: a wrong number is worse."""
    if not text:
        return Measured((), thought=len(names))
    if not names:
        return ABSENT
    texts = list(names)
    place = _place(texts, text, thinks)
    if place is None:
        texts = [_plain(name) for name in names]
        place = _place(texts, text, thinks)
    if place is None and not thinks:
        place, texts = 0, _cut_by_names(texts, text)
    if place is None or not texts:
        return Measured(lacking="the tokens do not add up to the answer")
    tokens: list[Token] = []
    done, before, floors = 0, 0, 0
    for share, value in zip(texts, numbers, strict=True):
        start, done = done, done + len(share)
        if start < place and done <= place:
            before += 1
            continue
        if start >= place + len(text):
            break
        if (logprob := number(value)) is None:
            return Measured(lacking=f"a token's log-probability is {value!r:.20}")
        floors += logprob <= FLOOR
        tokens.append(Token(share[max(0, place - start) : max(0, place + len(text) - start)], logprob))
    return Measured(tuple(tokens), "", floors, before)


def _place(names: Sequence[str], text: str, thinks: bool) -> int | None:
    """Where ``text`` begins in what the names add up to. Before it may come nothing but, where the model thinks, whole tokens
    (and white space of the one that it begins in); after it the token that completed a stop string, or an end."""
    whole = "".join(names)
    if not thinks and whole.startswith(text):
        return 0
    at = whole.rfind(text)
    if at < 0 or not _SPECIAL.fullmatch(whole[at + len(text) :]):
        return None
    start = 0
    for name in names:
        if start + len(name) > at:
            return at if not whole[start:at].strip() else None
        start += len(name)
    return None


def _plain(name: str) -> str:
    for mark, replacement in _MARKS.items():
        name = name.replace(mark, replacement)
    return name


def _cut_by_names(names: Sequence[str], text: str) -> list[str]:
    """``text`` cut where the names of tokens can be found in it, in order; what lies between goes to the token before. Nothing
    where most of them are not found."""
    starts: list[int] = []
    at = matched = 0
    for name in names:
        place = text.find(name.strip(), at) if name.strip() else -1
        matched += place >= 0
        starts.append(at if place < 0 else place)
        at = starts[-1] if place < 0 else place + len(name.strip())
    if 2 * matched < sum(bool(name.strip()) for name in names) or sum(map(len, names)) < _COVERED * len(text):
        return []
    starts[0] = 0
    ends = [*starts[1:], len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def first(tokens: Sequence[Token], length: int) -> tuple[Token, ...]:
    """Those of the first ``length`` characters; of a token that reaches beyond them, the part inside."""
    part: list[Token] = []
    done = 0
    for token in tokens:
        if done >= length:
            break
        part.append(Token(token.text[: length - done], token.logprob))
        done += len(token.text)
    return tuple(part)


def after(tokens: Sequence[Token], length: int) -> tuple[Token, ...]:
    """Those after the first ``length`` characters; a token that reaches beyond them keeps the rest of its text."""
    part: list[Token] = []
    done = 0
    for token in tokens:
        done += len(token.text)
        if done > length:
            inside = min(len(token.text), done - length)
            part.append(Token(token.text[len(token.text) - inside :], token.logprob))
    return tuple(part)
