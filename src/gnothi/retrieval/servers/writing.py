"""Building on servers: what all kinds of them share."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.retrieval.dense.encoders import EncodePassages, Encoding
from gnothi.retrieval.ledger import Ledger
from gnothi.retrieval.servers.searching import Place, check_weights
from gnothi.retrieval.targets import Written
from gnothi.retrieval.writer import Put
from gnothi.types import Passage

Standing = dict[str, tuple[Passage, str]]
"""Passages with their origins, by id."""
Encode = EncodePassages | None


class ServerWriter(ABC):
    """The part of a ``targets.Writer`` that tells new passages from standing ones. ``content`` is what was noted of the content
    before, ``lost`` are the origins that have lost passages."""

    def __init__(self, content: str, encode: Encode, lost: Iterable[str] = ()) -> None:
        self._content, self._encode = content, encode
        self._lost = set(lost)
        self.pending_bytes = 0
        self.covered: Counter[tuple[str, str]] = Counter()

    def put_all(self, passages: Written) -> list[Put]:
        ours = [(self._storable(one), origin) for one, origin in passages]
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

    def _storable(self, passage: Passage) -> Passage:
        return passage.storable()

    @abstractmethod
    def _standing(self, ids: Sequence[str]) -> Standing:
        """Those of these ids that are there, or will be with the next commit."""

    @abstractmethod
    def _write(self, written: Mapping[str, tuple[Passage, str]]) -> None:
        """Put each in the place of the one with the same id."""

    def _note(self, *change: str) -> None:
        """What tells this content from the one before the change."""
        self._content = hashlib.blake2b(repr((self._content, change)).encode(), digest_size=16).hexdigest()


class NotedLedger(Ledger):
    """Of a server without transactions. ``notes``: ``content`` changes with the passages, ``begun`` are the origins whose
    passages may be there although no source tells of them, ``lost`` those that have lost some, which no source may know.
    ``note`` writes changes of them."""

    def __init__(self, rows: Iterable[Sequence[Any]], notes: Mapping[str, Any], note: Callable[..., None]) -> None:
        super().__init__(rows=rows)
        self.notes, self.note = {"begun": [], "lost": [], **notes}, note
        self.recover(self.notes["begun"], self.notes["lost"])

    def update_notes(self, **changes: Any) -> None:
        self.note(**changes)
        self.notes |= changes

    def save(self) -> None:
        super().save()
        if self.notes["begun"] != self.orphans or self.notes["lost"]:
            self.update_notes(begun=self.orphans, lost=[])


class NotedWriter(ServerWriter):
    """Notes the origins of passages before they are written, and those that lose some: what a killed build left of an origin
    that no source knows is deleted at the end of the next build."""

    def __init__(self, ledger: NotedLedger, encode: Encode) -> None:
        super().__init__(str(ledger.notes.get("content", "")), encode, ledger.notes["lost"])
        self._ledger = ledger
        self._begun: set[str] = set()

    def _note_state(self, complete: bool) -> None:
        begun = sorted({*self._begun, *self._ledger.orphans})
        self._ledger.update_notes(content=self._content, complete=complete, begun=begun, lost=sorted(self._lost))


P = TypeVar("P", bound=Place)


def only(places: Sequence[P], spec: str, where: str) -> P:
    """The one place that a build writes to. Raises InvalidSetting for several, and for one whose ids get a prefix."""
    if len(places) != 1 or places[0].prefix:
        several = "s" * (len(places) != 1)
        raise InvalidSetting(
            f"{spec}: got {len(places)} {where}{several}, prefix {places[0].prefix!r}; expected one {where} without a prefix: "
            f"a build writes to one {places[0].noun}. Build one after the other, each by an address of its own."
        )
    return places[0]


def encoded_by(place: Place) -> tuple[Encode, dict[str, str]]:
    """What makes the vectors of passages, and what is noted of it."""
    encode = Encoding(place.encoder).passages() if place.encoder else None
    return encode, {"encoder_name": place.encoder, "encoder": Encoding(place.encoder).fingerprint() if encode else ""}


def size_of(encode: Encode) -> int:
    """Of a vector in numbers, 0 without."""
    return int(encode([Passage("", "size")]).shape[1]) if encode else 0


def check_vectors(notes: Mapping[str, Any], name: str, encoder: str) -> None:
    """Raises IndexUnavailable where ``name`` was built with vectors and no ``encoder`` is given, or the other way round, or
    where its vectors were made by other weights."""
    if bool(notes.get("encoder_name")) != bool(encoder):
        raise IndexUnavailable(
            f"{name} was built {'with' if notes.get('encoder_name') else 'without'} vectors: got "
            f"{'an' if encoder else 'no'} encoder. Build as before, or into another place."
        )
    if encoder:
        check_weights(notes, name, encoder)


def foreign(name: str, noun: str) -> IndexUnavailable:
    return IndexUnavailable(
        f"{name} is there, and no build of ours made it: it can be searched, not written. Name another {noun}."
    )


def busy(name: str) -> str:
    return f"{name} is being written by another build: one at a time. Wait until it has ended, then run this again."
