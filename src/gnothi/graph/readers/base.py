"""What every reader of triples gives: a parser of lines. Every line is a place where reading can go on after a kill."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from gnothi.errors import shown

LONGEST_NAME = 1000
LABEL = ""  # as the relation of a triple: the tail is the name by which the head is known


class Triple(NamedTuple):
    """A line's fact. Of facts at a hub those of larger ``weight`` come first. A ``head`` or ``tail`` that is an IRI stands in
    angle brackets and gets a name when the graph is put together."""

    head: str
    relation: str
    tail: str
    weight: float = 1.0


class Malformed(Exception):
    """A line that is not what its format asks for; the message says why, for the user."""


class Parser(Protocol):
    """Reads the lines of one file."""

    @property
    def header(self) -> bool:
        """Whether the first line names the columns and holds no triple."""
        ...

    def parse(self, line: str) -> Triple | None:
        """The triple of a line, None for one that is to be left out. Raises Malformed."""
        ...


def name(text: str, what: str) -> str:
    """A node's or relation's name as it is kept: white space collapsed. Raises Malformed for one that is empty or too long."""
    kept = " ".join(text.split())
    if not kept:
        raise Malformed(f"its {what} is empty")
    if len(kept) > LONGEST_NAME:
        raise Malformed(f"its {what} has {len(kept)} characters, expected at most {LONGEST_NAME}")
    return kept


def number(value: object) -> float:
    """A weight. Raises Malformed for anything but a finite number."""
    try:
        weight = float(value)  # type: ignore[arg-type]  # whatever is no number is told below
    except (TypeError, ValueError, OverflowError):
        weight = float("nan")
    if isinstance(value, bool) or not abs(weight) < float("inf"):
        raise Malformed(f"its weight is {shown(value)}, expected a finite number")
    return weight
