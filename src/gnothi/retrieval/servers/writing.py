"""Building on servers: what all kinds of them share."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.retrieval.dense.encoders import EncodePassages
from gnothi.retrieval.targets import Written
from gnothi.retrieval.writer import Put
from gnothi.types import Passage

Standing = dict[str, tuple[Passage, str]]
"""Passages with their origins, by id."""


class ServerWriter(ABC):
    """The part of a ``targets.Writer`` that tells new passages from standing ones. ``content`` is what was noted of the content
    before, ``lost`` are the origins that have lost passages."""

    def __init__(self, content: str, encode: EncodePassages | None, lost: Iterable[str] = ()) -> None:
        self._content, self._encode = content, encode
        self._lost = set(lost)
        self.pending_bytes = 0
        self.covered: Counter[tuple[str, str]] = Counter()

    def put_all(self, passages: Written) -> list[Put]:
        ours = [(self._storable(given), origin) for given, origin in passages]
        standing = self._standing([passage.id for passage, _ in ours])
        outcomes: list[Put] = []
        written: Standing = {}  # an id may come twice
        for passage, origin in ours:
            known = standing.get(passage.id)
            outcomes.append("added" if known is None else "standing" if known == (passage, origin) else "replaced")
            standing[passage.id] = passage, origin
            if outcomes[-1] != "standing":
                if known:
                    self.covered[known[1], origin] += 1
                    self._lost.add(known[1])
                written[passage.id] = passage, origin
                self._note("put", *passage.change)
                self.pending_bytes += passage.size
        if written:
            self._write(written)
        return outcomes

    def _storable(self, given: Passage) -> Passage:
        return given.storable()

    @abstractmethod
    def _standing(self, ids: Sequence[str]) -> Standing:
        """Those of these ids that are there, or will be with the next commit."""

    @abstractmethod
    def _write(self, written: Mapping[str, tuple[Passage, str]]) -> None:
        """Put each in the place of the one with the same id."""

    def _note(self, *change: str) -> None:
        """What tells this content from the one before the change."""
        self._content = hashlib.blake2b(repr((self._content, change)).encode(), digest_size=16).hexdigest()


class Place(Protocol):
    @property
    def prefix(self) -> str: ...


T = TypeVar("T", bound=Place)


def only(found: Sequence[T], spec: str, where: str, what: str) -> T:
    """The one place that a build writes to. Raises InvalidSetting for several, and for one whose ids get a prefix."""
    if len(found) != 1 or found[0].prefix:
        raise InvalidSetting(
            f"{spec}: got {len(found)} {where}s, prefix {found[0].prefix!r}; expected one {where} without a prefix: a "
            f"build writes to one {what}. Build one after the other, each by an address of its own."
        )
    return found[0]


def foreign(name: str, what: str) -> IndexUnavailable:
    return IndexUnavailable(
        f"{name} is there, and no build of ours made it: it can be searched, not written. Name another {what}."
    )


def busy(name: str) -> str:
    return f"{name} is being written by another build: one at a time. Wait until it has ended, then run this again."
