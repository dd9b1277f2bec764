"""How an answer is cut out of a reply: our way, or as the code of several papers does, which decides what an exact match is of.

Each of theirs is written from what the code does (docs/papers). What is cut short there ("15" of "15,140") stays so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from gnothi.methods.steps.parsing import read_reply

ExtractionName = Literal["gnothi", "seakr", "dragin", "flare", "ircot", "keqa", "whole"]

_SEAKR = re.compile(r"the answer is(?:\s*:\s*)?(.*?)[,.]", re.DOTALL)
_SEAKR_BEHIND = re.compile(r"[.?!]\s*([^?!]*?)\s+is the answer\b", re.DOTALL)
_FLARE = re.compile(r"answer is (.*)")
IRCOT = re.compile(r".* answer is:? (.*)\.?")
_KEQA = re.compile(r"^.*?answer is\s?:? (.*?)\.?$", re.DOTALL)
_DRAGIN = "the answer is"
DRAGIN_ENDS = ("Question:", "Note:")
"""Where DRAGIN's code ends a text that it looks for an answer in."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """``concluded``: the answer that a chain of thought names, empty where it names none. ``short``: that of a reply which
    should hold nothing else, with its question (empty where none is known). ``forced``: whether a chain that names none is
    continued with "So the answer is". ``to_the_end``: whether a chain goes on over blank lines, to where the model ends it.
    """

    concluded: Callable[[str], str]
    short: Callable[[str, str], str]
    forced: bool = True
    to_the_end: bool = False


def _seakr(chain: str) -> str:
    text = chain.lower()
    found = _SEAKR.search(text) or _SEAKR_BEHIND.search(text)
    return found[1].strip() if found else ""


def before_notes(text: str) -> str:
    """The text up to another question, or a note; one that begins so stays."""
    for end in DRAGIN_ENDS:
        text = text[: text.find(end)] if text.find(end) > 0 else text
    return text


def _dragin(chain: str) -> str:
    """All that follows, be it of other sentences, without the last full stop."""
    _, marker, rest = before_notes(chain).partition(_DRAGIN)
    return rest[1:].removesuffix(".").strip() if marker else ""


def _flare(chain: str) -> str:
    found = _FLARE.search(chain)
    return found[1].strip() if found else ""


def _ircot(chain: str) -> str:
    """The first line where nothing is named."""
    found = IRCOT.match(chain)
    return (found[1] if found else _line(chain)).removesuffix(".").strip()


def _keqa(chain: str) -> str:
    """What the first line says that the answer is, else the last sentence of the last line."""
    lines = [line.strip() for line in chain.splitlines() if line.strip()]
    named = next((found[1].strip() for line in lines if (found := _KEQA.match(line))), "")
    return named or next((one.strip() for one in reversed(lines[-1].split(". ") if lines else ()) if one.strip()), "")


def _line(reply: str, question: str = "") -> str:  # noqa: ARG001
    """The first line that is not blank."""
    return next((line.strip() for line in reply.splitlines() if line.strip()), "")


def _whole(reply: str, question: str = "") -> str:  # noqa: ARG001
    return " ".join(reply.split())


EXTRACTIONS: Mapping[ExtractionName, Extraction] = {
    "gnothi": Extraction(
        lambda chain: read_reply(_whole(chain)).conclusion, lambda reply, question: read_reply(reply, question).answer
    ),
    "seakr": Extraction(_seakr, _whole),
    "dragin": Extraction(_dragin, lambda reply, _: _whole(reply).removesuffix(".")),
    "flare": Extraction(_flare, _line, forced=False),
    "ircot": Extraction(_ircot, _whole, forced=False),
    "keqa": Extraction(_keqa, _line, forced=False, to_the_end=True),
    "whole": Extraction(_whole, _whole),
}
OURS = EXTRACTIONS["gnothi"]
