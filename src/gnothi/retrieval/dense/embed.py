"""Vectors for every passage of an index: what has one keeps it, under whatever id, so that work goes on where it stopped."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from gnothi.errors import IndexUnavailable, InvalidSetting, ModelUnavailable
from gnothi.locks import hold
from gnothi.retrieval import folder as folders
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.dense.encoders import EncodePassages, Encoding, Vectors, stored_name
from gnothi.retrieval.dense.index import Neighbours, check_weights, content_of
from gnothi.retrieval.dense.store import FOLDER, Manifest, Store, read_manifest
from gnothi.types import Passage

BATCH = 256
"""Passages whose vectors are made and written together: what a kill costs at most."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EmbedReport:
    """What was done: ``passages`` have vectors now, ``encoded`` of them in this run; ``dropped`` were of passages that are
    gone."""

    encoder: str
    dimension: int
    passages: int
    encoded: int
    dropped: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """``stage`` is "encoding" or "linking neighbours"; ``fresh`` of the ``done`` were done in this run."""

    stage: str
    done: int
    total: int
    fresh: int


def embed(
    index: str | os.PathLike[str],
    encoding: Encoding | None = None,
    *,
    encode: EncodePassages | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> EmbedReport:
    """Make the vectors that the passages of the folder ``index`` lack, and forget those of passages that are gone.

    ``encoding`` None goes on with the one the folder names; ``encode`` takes the encoder's place. Raises IndexUnavailable,
    InvalidSetting for another encoding than the vectors there are of, ModelUnavailable, MissingDependency.
    """
    path, started = Path(index), time.monotonic()
    folders.read_manifest(path)  # before anything is written: is it an index at all?
    busy = f"vectors of the index {path} are being made by another process. Wait until it has ended."
    with hold(path / "gnothi-dense.lock", IndexUnavailable, busy):
        # Noted before the passages are read: what is put meanwhile is missed, and noticed when the vectors are used.
        content = content_of(path)
        manifest = _manifest(path, encoding)
        store = Store(path, manifest)
        try:
            work = _Embedding(BM25Index.open(path), store, encode, on_progress or (lambda _: None))
            encoded = work.encode()
            dropped = work.drop()
            store.compact()
            Neighbours.build(store, lambda done, total, fresh: work.report(Progress("linking neighbours", done, total, fresh)))
            # Weights from the hub may have come only now.
            fingerprint = store.manifest.fingerprint or store.manifest.encoding.fingerprint()
            named = store.rows.named
            store.note(replace(store.manifest, passages=named, content=content, fingerprint=fingerprint))
        finally:
            store.close()
    return EmbedReport(manifest.encoder, store.manifest.dimension, named, encoded, dropped, time.monotonic() - started)


class _Embedding:
    def __init__(
        self, index: BM25Index, store: Store, encode: EncodePassages | None, report: Callable[[Progress], None]
    ) -> None:
        self.index = index
        self.store = store
        self.encoder = encode
        self.report = report

    def encode(self) -> int:
        """Number of passages encoded."""
        encode: EncodePassages | None = None
        total, done, fresh = len(self.index), self.store.rows.named, 0
        for batch in _batches(self._pending()):
            # Of a file that was moved or renamed, only the ids are others.
            rows = self.store.rows.same(digest for _, digest in batch)
            batch.sort(key=lambda item: item[1] in rows)
            new = [passage for passage, digest in batch if digest not in rows]
            vectors = self.store.vectors()[[rows[digest] for _, digest in batch[len(new) :]]]
            if new:
                encode = encode or self.encoder or self._opened()
                encoded = encode(new)
                self._check(encoded, len(new))
                vectors = np.concatenate([encoded, vectors]) if len(vectors) else encoded
            self.store.add(vectors, {passage.id: digest for passage, digest in batch})
            done, fresh = done + len(batch), fresh + len(new)
            self.report(Progress("encoding", min(done, total), total, fresh))
        return fresh

    def drop(self) -> int:
        """Number of vectors of passages that are gone."""
        rows = self.store.rows
        if rows.named == len(self.index):
            return 0
        gone = [key for key in rows.every_id() if self.index.get(key) is None]
        rows.drop(gone)
        return len(gone)

    def _pending(self) -> Iterator[tuple[Passage, bytes]]:
        for passage in self.index.passages():
            digest = hashlib.blake2b(repr((passage.title, passage.text)).encode(), digest_size=16).digest()
            if self.store.rows.digest(passage.id) != digest:
                yield passage, digest

    def _opened(self) -> EncodePassages:
        encoding = self.store.manifest.encoding
        if encoding.question_encoder:
            # Before hours of work: do the two belong together?
            ours = encoding.passages()([Passage("", "text")]).shape[1]
            theirs = encoding.questions()(["question"]).shape[1]
            if ours != theirs:
                raise ModelUnavailable(
                    f"the encoders do not belong together: {encoding.encoder!r} gives {ours} numbers for a passage, "
                    f"{encoding.question_encoder!r} {theirs} for a question. Name the two that were trained together."
                )
        return encoding.passages()

    def _check(self, vectors: Vectors, rows: int) -> None:
        known = self.store.manifest.dimension
        if vectors.ndim != 2 or len(vectors) != rows or known not in (0, vectors.shape[1]):
            raise ModelUnavailable(
                f"the encoder gave an array of shape {vectors.shape} for {rows} passages, expected ({rows}, {known or 'any'}). "
                "Name another encoder: the one that made the index's vectors, where it has some."
            )
        if not np.isfinite(vectors).all():
            raise ModelUnavailable("the encoder gave a vector with NaN or infinity. Its weights are broken; use another one.")
        if not known:
            self.store.note(replace(self.store.manifest, dimension=vectors.shape[1]))


def _manifest(path: Path, encoding: Encoding | None) -> Manifest:
    """Of the vectors there are, or of those to come."""
    known = read_manifest(path)
    if encoding is not None:
        encoding = replace(
            encoding,
            encoder=stored_name(encoding.encoder),
            question_encoder=encoding.question_encoder and stored_name(encoding.question_encoder),
        )
    if known is not None and (known.dimension or encoding is None):
        if encoding not in (None, known.encoding):
            raise InvalidSetting(
                f"the vectors of the index {path} are of another encoder or other prompts: got {str(encoding)!r}, expected "
                f"{str(known.encoding)!r}. Leave <--encoder> out to go on with it, or remove {path / FOLDER} to begin anew."
            )
        check_weights(path, known)
        return known
    if encoding is None:
        raise InvalidSetting(
            f"the index {path} has no vectors yet: name the encoder that makes them with <--encoder MODEL>, a folder or hub id "
            "of sentence-transformers such as sentence-transformers/all-MiniLM-L6-v2."
        )
    return Manifest(
        encoding.encoder,
        encoding.question_encoder,
        encoding.question_prompt,
        encoding.passage_prompt,
        encoding.fingerprint(),
    )


def _batches(things: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(things)
    while batch := list(islice(rest, BATCH)):
        yield batch
