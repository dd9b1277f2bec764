"""Data sets that have a name and no file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gnothi.schemes import Scheme, as_scheme
from gnothi.types import Question


@dataclass(frozen=True, kw_only=True)
class DataSet(Scheme[Iterable[Question]]):
    """``open`` takes the argument, what stands behind ``NAME:`` (mostly nothing), and how many questions are wanted at least
    (None: as many as there are); it may give more. ``parts`` are arguments worth listing, each with a line about it."""

    parts: Mapping[str, str] = field(default_factory=dict)


def as_data_set(thing: DataSet | Callable[[str, int | None], Iterable[Question]]) -> DataSet:
    """A function of the argument and the limit is a data set, too."""
    if isinstance(thing, DataSet):
        return thing
    plain = as_scheme(thing)
    return DataSet(open=plain.open, summary=plain.summary, fingerprint=plain.fingerprint)
