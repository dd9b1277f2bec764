"""Questions as vectors, and which way an index is searched: what all kinds of servers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol, TypeVar

from gnothi.concurrency import Batcher, in_batches
from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.retrieval.dense.encoders import EncodeQuestions, Encoding, Vectors

By = Literal["words", "vectors", "both"]
Distance = Literal["inner", "cosine", "euclidean"]
Encoders = Callable[[str], EncodeQuestions]
Encoder = Batcher[str, Vectors]


class Searched(Protocol):
    @property
    def by(self) -> By: ...
    @property
    def vectors(self) -> str: ...
    @property
    def encoder(self) -> str: ...
    @property
    def distance(self) -> Distance: ...


T = TypeVar("T", bound=Searched)


def check_encoder(one: Searched) -> None:
    """Raises InvalidSetting where vectors are searched and nobody says what makes them of questions."""
    if one.by != "words" and not (one.encoder and one.vectors):
        raise InvalidSetting(
            f'by = "{one.by}": got no encoder for questions. Name that of {one.vectors!r}, which holds the vectors: '
            'encoder = "...".'
        )


def one_way(found: Iterable[Searched], name: str) -> By:
    """By which all are searched. Raises IndexUnavailable where they differ."""
    ways = {one.by for one in found}
    if len(ways) > 1:
        raise IndexUnavailable(f"{name}: got servers searched by {' and by '.join(sorted(ways))}, expected one way.")
    return ways.pop()


def encoders(found: Iterable[Searched], make: Encoders | None = None) -> dict[str, Encoder]:
    """By name, each loaded once. Raises ModelUnavailable, or MissingDependency without sentence-transformers."""
    made = make or (lambda name: Encoding(name).questions())
    return {name: _batcher(made(name)) for name in {one.encoder for one in found}}


def vectors_alike(found: Sequence[Searched]) -> bool:
    """Whether scores of one are on the scale of another's."""
    return len({(one.encoder, one.distance) for one in found}) == 1


def _batcher(encode: EncodeQuestions) -> Encoder:
    return Batcher(in_batches(lambda queries: list(encode(queries))), "encoder")
