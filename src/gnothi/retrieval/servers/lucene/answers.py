"""What a server's answers hold, read so that nothing that is lacking goes unnoticed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gnothi.errors import MALFORMED, IndexUnavailable, InvalidSetting
from gnothi.retrieval.analysis import unpacked
from gnothi.retrieval.servers.lucene.index import METADATA, MOST, OWN_ID, Index
from gnothi.retrieval.servers.patience import Passing
from gnothi.types import Passage, ScoredPassage


@dataclass(frozen=True, slots=True)
class Hits:
    """``lacking`` of ``shards`` had no part in it, and why."""

    passages: tuple[ScoredPassage, ...]
    shards: int = 1
    lacking: tuple[tuple[str, str], ...] = ()


def read_hits(answer: Mapping[str, Any], index: Index, k: int) -> Hits:
    """Of a search for the ``k`` best. Raises Passing for an answer that is not whole, IndexUnavailable for one that no passage
    can be read from, InvalidSetting where more passages match than a server shows at once."""
    try:
        shards, lacking = _shards(answer)
        asked = min(k, MOST)
        total, hits = answer["hits"]["total"], answer["hits"]["hits"]
        matching = int(total["value"] if isinstance(total, dict) else total)
        expected = min(asked, matching)
        if len(hits) != expected and (len(hits) > asked or not lacking):
            raise Passing(f"the answer has {len(hits)} hits, and {expected} were to come")
        passages = tuple(ScoredPassage(_passage(hit, index), float(hit["_score"])) for hit in hits)
    except MALFORMED as error:
        raise Passing(f"the answer is not that of a search ({type(error).__name__}: {error})") from None
    if lacking and not index.partial:
        raise Passing(f"{len(lacking)} of {shards} shards gave no answer ({lacking[0][1]})")
    if k > MOST and matching > MOST:
        raise too_many(k, index)
    return Hits(passages, shards, lacking)


def too_many(k: int, index: Index) -> InvalidSetting:
    return InvalidSetting(
        f"the number of passages to retrieve: got {k}, expected at most {MOST} where more than that "
        f"match: {index.name} shows no more at once. Pass a smaller k."
    )


def _shards(answer: Mapping[str, Any]) -> tuple[int, tuple[tuple[str, str], ...]]:
    found = answer["_shards"]
    total, successful = int(found["total"]), int(found["successful"])
    reasons = [_failure(one) for one in found.get("failures", ())]
    clusters = answer.get("_clusters", {})
    reasons += [("a cluster", "was left out")] * int(clusters.get("skipped", 0))
    missing = total - successful + int(clusters.get("skipped", 0))
    if answer.get("timed_out") and not missing:
        return total, (("a shard", "ran out of time"),)
    lacking = [*reasons[:missing], *[("a shard", "no reason given")] * (missing - len(reasons))]
    return total, tuple(lacking)


def _failure(one: Mapping[str, Any]) -> tuple[str, str]:
    reason = one.get("reason")
    said = reason.get("reason") or reason.get("type") if isinstance(reason, dict) else reason
    return f"shard {one.get('shard')} of {one.get('index')}", str(said)[:200]


def _passage(hit: Mapping[str, Any], index: Index) -> Passage:
    source = hit.get("_source")
    if source is None:
        raise IndexUnavailable(
            f"{index.name} keeps no _source, of which passages are made: it can be searched by its own means only."
        )
    key = hit["_id"] if index.id == OWN_ID else field(source, index.id)
    return Passage(
        index.prefix + as_text(key),
        as_text(field(source, index.text)),
        as_text(field(source, index.title)),
        unpacked(source.get(METADATA)),
    )


def field(source: Any, name: str) -> Any:
    """The value of a field, whose dots may be steps into the object or belong to the name; None where there is none."""
    if not isinstance(source, dict) or not name:
        return None
    if name in source:
        return source[name]
    places = [place for place, letter in enumerate(name) if letter == "."]
    return next((found for place in places if (found := field(source.get(name[:place]), name[place + 1 :])) is not None), None)


def as_text(value: Any) -> str:
    """Several values are lines."""
    return "" if value is None else "\n".join(map(as_text, value)) if isinstance(value, list) else str(value)
