"""Records of collections in the shapes that they have elsewhere: which keys are a passage's text, title and id, chosen by a
file's first record, or named by the user."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gnothi.retrieval.ingest.base import Checkpoint, NoDocument, Step, record_step
from gnothi.retrieval.terms import flat
from gnothi.types import Passage

LONGEST_ID = 500
TEXTS = ("text", "contents", "content", "passage", "passage_text", "paragraph_text", "body", "document")
TITLES = ("title", "wikipedia_title", "page_title")
IDS = ("_id", "id", "docid", "doc_id", "pid", "passage_id", "corpus_id", "wikipedia_id")
_QUESTIONS = ("question", "query", "question_text", "input")
_SECTION = re.compile(r"^(?:Section|BULLET)::::-?\s*", re.MULTILINE)  # KILT's marks
_SEEN = 200_000

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of text, title and id that the user names; ``a.b`` is a key of an object. Empty: found by the first record."""

    text: str = ""
    title: str = ""
    id: str = ""


AS_FOUND = Keys()


@dataclass(frozen=True, slots=True)
class Shape:
    """``passages`` gives those of a record, which has the id ``default`` if it has none of its own, and raises ValueError that
    says what is wrong with it. ``notice`` tells the user how a file is read where that is not plain."""

    passages: Callable[[Record, str], Iterable[Passage]]
    notice: str = ""


class ReadRecord(NamedTuple):
    """A record of a file, or what is wrong where it should be; ``number`` counts them, or the lines. ``read`` bytes of the file
    were read for it."""

    record: object
    number: int
    problem: str = ""
    checkpoint: Checkpoint | None = None
    read: int = 0


def steps(path: Path, records: Iterable[ReadRecord], first: object, key: str, words: int, keys: Keys) -> Iterator[Step]:
    """The steps for a file's records; ``first`` is its first one, also where reading goes on in the middle.

    Raises NoDocument for a file of questions.
    """
    dropped: set[str] = set()
    shape = shape_of(path, first, keys, dropped)
    if shape.notice:
        yield Step(notice=shape.notice)
    for entry in records:
        where = entry.checkpoint or Checkpoint(0, entry.number)
        try:
            if entry.problem:
                raise ValueError(entry.problem)
            if not isinstance(entry.record, Mapping):
                raise ValueError(f"got {kind(entry.record)}, expected an object with id, title and text")
            passages = list(shape.passages(entry.record, f"{key}#{entry.number}"))
        except ValueError as error:
            yield Step(checkpoint=where, invalid=str(error), read=entry.read)
            continue
        if entry.checkpoint and len(passages) == 1:
            yield record_step(passages[0], words, entry.checkpoint)
            continue
        cut = tuple(part for passage in passages for part in record_step(passage, words, where).passages)
        # A record whose passages came before is not empty.
        yield Step(cut, entry.checkpoint, empty=bool(passages) and not cut, read=entry.read)
    if dropped:
        yield Step(notice=f"has keys that hold lists, which are left out: {', '.join(sorted(dropped))}")


def shape_of(path: Path, first: object, keys: Keys, dropped: set[str]) -> Shape:
    """How the records of a file are read whose first one is ``first``; ``dropped`` gets the keys that are left out. Raises
    NoDocument for a file of questions alone."""
    if not isinstance(first, Mapping):
        return Shape(_plain(keys, dropped))
    named = {_plain_name(key): key for key in reversed(first)}  # of two, the first one
    text, title, id = (
        setting or next((named[name] for name in names if name in named), "")
        for setting, names in ((keys.text, TEXTS), (keys.title, TITLES), (keys.id, IDS))
    )
    columns = Keys(text, title, id if keys.id or id not in ("_id", "id") else "")  # lines may have either of the two
    if keys.text:
        return Shape(_plain(columns, dropped))
    for name, recognises, passages in _NESTED:
        if recognises(first):
            return Shape(
                _distinct(passages),
                f"holds questions with passages, as {name} does: the passages are indexed, each once, the questions are not",
            )
    if any(_asks(first.get(named.get(name, ""))) for name in _QUESTIONS) and not isinstance(_value(first, text), str):
        raise NoDocument(f"{path} holds questions, no passages. Ask them with gnothi eval; <--text-key> names a key to index.")
    if {"query_id", "corpus_id"} <= named.keys() and not text:
        raise NoDocument(f"{path} holds judgements of relevance, no documents.")
    if (path.name.lower().startswith("queries") or path.parent.name.lower() == "queries") and text == "text" and not title:
        raise NoDocument(f"{path} holds queries, by its name. <--text-key text> indexes it all the same.")
    if text == named.get("contents") and text and not title:
        return Shape(_plain(columns, dropped, titled=True), "is read as FlashRAG's: the first line of 'contents' is the title")
    if isinstance(_value(first, text), list) and "wikipedia_id" in first:
        return Shape(_of_kilt, "is read as KILT's: the parts of 'text' are joined, without the title that they begin with")
    usual = text in ("text", "") and title in ("title", "") and id in ("_id", "id", "")
    if not text and (values := [name for name, value in first.items() if _says(value)]) and set(values) - {title, id}:
        return Shape(
            _row(columns),
            f"has no key that is known as the text: records are read as rows ({', '.join(values)[:80]}). "
            "<--text-key> names one",
        )
    described = ", ".join(f"{value!r} as {name}" for name, value in (("text", text), ("title", title), ("id", id)) if value)
    return Shape(_plain(columns, dropped), "" if usual or keys != AS_FOUND else f"is read with {described}")


def check_id(passage_id: str) -> str:
    if not passage_id or len(passage_id) > LONGEST_ID:
        raise ValueError(f"its id has {len(passage_id)} characters, expected 1 to {LONGEST_ID}")
    return passage_id


def kind(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), f"a {type(value).__name__}")


def _plain_name(key: str) -> str:
    return re.sub(r"\W+", "_", key.strip().lower()).strip("_") if key != "_id" else key


def _asks(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, Mapping) and not value.keys().isdisjoint(("stem", "text")))


def _says(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and bool(str(value).strip())


def _value(record: Record, key: str) -> Any:
    """Under a key, or under ``a.b`` in an object."""
    if key in record or "." not in key:
        return record.get(key)
    outer, _, inner = key.partition(".")
    nested = record.get(outer)
    return _value(nested, inner) if isinstance(nested, Mapping) else None


def _plain(keys: Keys, dropped: set[str], titled: bool = False) -> Callable[[Record, str], Iterable[Passage]]:
    """``titled``: the first line of the text is the title, perhaps in quotes."""
    keys = Keys(keys.text or "text", keys.title or "title", keys.id)
    own = frozenset((keys.text, keys.title, keys.id, *(("_id", "id") if not keys.id else ())))

    def passages(record: Record, default: str) -> Iterator[Passage]:
        text, title = _string(record, keys.text, required=True), _string(record, keys.title, required=False)
        if titled:
            first, end, rest = text.partition("\n")
            title, text = (_unquoted(first), rest) if end else ("", text)
        metadata, omitted = flat(record, own)
        dropped.update(omitted)
        yield Passage(_id(record, keys.id, default), text, title, metadata)

    return passages


def _row(keys: Keys) -> Callable[[Record, str], Iterable[Passage]]:
    """A record without a text: what it holds as ``key: value; ...``, as the row of a table."""

    def passages(record: Record, default: str) -> Iterator[Passage]:
        metadata = flat(record, frozenset((keys.id, keys.title)))[0]
        text = "; ".join(f"{key}: {value}" for key in record if _says(value := metadata.get(key)))
        yield Passage(_id(record, keys.id, default), text, _string(record, keys.title, required=False), metadata)

    return passages


def _of_kilt(record: Record, default: str) -> Iterator[Passage]:
    parts = record.get("text")
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"its 'text' is {kind(parts)}, expected a list of strings")
    title = _string(record, "wikipedia_title", required=False)
    body = parts[1:] if parts and parts[0].strip() == title.strip() else parts
    metadata = flat(record, frozenset(("text", "wikipedia_title", "wikipedia_id", "_id")))[0]
    text = _SECTION.sub("", "\n".join(part.strip() for part in body))
    yield Passage(_id(record, "wikipedia_id", default), text, title, metadata)


Pair = tuple[str, str]  # title and text


def _distinct(pairs: Callable[[Record], Iterable[Pair]]) -> Callable[[Record, str], Iterable[Passage]]:
    """Passages that many records repeat, each once; its id is a digest of it."""
    digests: set[bytes] = set()

    def passages(record: Record, default: str) -> Iterator[Passage]:  # noqa: ARG001 - of the record, not of its passages
        try:
            texts = [(str(title or ""), text) for title, text in pairs(record) if isinstance(text, str) and text.strip()]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise ValueError("its passages are of another shape than those of the first record") from None
        for title, text in texts:
            digest = hashlib.blake2b(json.dumps([title, text]).encode(), digest_size=12)
            if digest.digest() in digests:
                continue
            if len(digests) == _SEEN:
                digests.clear()  # one that comes again has the same id
            digests.add(digest.digest())
            yield Passage(digest.hexdigest(), text, title)

    return passages


def _squad(record: Record) -> Iterator[Pair]:
    yield record.get("title") or "", record["context"]


def _squad_articles(record: Record) -> Iterator[Pair]:
    for paragraph in record["paragraphs"]:
        yield record.get("title") or "", paragraph["context"]


def _trivia(record: Record) -> Iterator[Pair]:
    pages, results = record.get("entity_pages") or {}, record.get("search_results") or {}
    yield from zip(pages.get("title") or [], pages.get("wiki_context") or [], strict=False)
    if not pages.get("wiki_context"):
        yield from zip(results.get("title") or [], results.get("search_context") or [], strict=False)


def _dpr(record: Record) -> Iterator[Pair]:
    for name in ("positive_ctxs", "negative_ctxs", "hard_negative_ctxs", "ctxs"):
        for one in record.get(name) or []:
            yield one.get("title") or "", one["text"]


def _multihop(record: Record) -> Iterator[Pair]:
    """HotpotQA's and 2WikiMultiHopQA's pairs of title and sentences, the same on the hub, and our lines' passages."""
    paragraphs = record.get("passages") or record.get("paragraphs") or record["context"]
    listed: Iterable[Any] = paragraphs or ()
    if isinstance(paragraphs, Mapping):
        listed = zip(paragraphs["title"], paragraphs.get("sentences") or paragraphs["content"], strict=True)
    for one in listed:
        title, text = (one["title"], one.get("text") or one.get("paragraph_text")) if isinstance(one, Mapping) else one
        yield title, text if isinstance(text, str) else " ".join(sentence.strip() for sentence in text or ())


def _has_question(record: Record) -> bool:
    return isinstance(record.get("question"), str)


def _is_multihop(record: Record) -> bool:
    paragraphs = record.get("passages") or record.get("paragraphs") or record.get("context")
    if isinstance(paragraphs, Mapping):
        return "title" in paragraphs and ("sentences" in paragraphs or "content" in paragraphs)
    first = paragraphs[0] if isinstance(paragraphs, list) and paragraphs else None
    listed = isinstance(first, list) and len(first) == 2 and isinstance(first[1], list)
    return _has_question(record) and (
        listed or (isinstance(first, Mapping) and "title" in first and ("text" in first or "paragraph_text" in first))
    )


def _is_squad(record: Record) -> bool:
    return _has_question(record) and isinstance(record.get("context"), str)


def _is_articles(record: Record) -> bool:
    paragraphs = record.get("paragraphs")
    return isinstance(paragraphs, list) and all(
        isinstance(one, Mapping) and {"qas", "context"} <= one.keys() for one in paragraphs
    )


def _is_trivia(record: Record) -> bool:
    return _has_question(record) and isinstance(record.get("entity_pages") or record.get("search_results"), Mapping)


def _is_dpr(record: Record) -> bool:
    return _has_question(record) and ("positive_ctxs" in record or "ctxs" in record)


_NESTED: tuple[tuple[str, Callable[[Record], bool], Callable[[Record], Iterable[Pair]]], ...] = (
    ("SQuAD", _is_articles, _squad_articles),
    ("SQuAD", _is_squad, _squad),
    ("TriviaQA", _is_trivia, _trivia),
    ("DPR", _is_dpr, _dpr),
    ("HotpotQA", _is_multihop, _multihop),
)


def _id(record: Record, key: str, default: str) -> str:
    value = _value(record, key) if key else record.get("_id", record.get("id"))
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"its id is {kind(value)}, expected a string or a whole number")
    return check_id(str(value))


def _string(record: Record, name: str, required: bool) -> str:
    value = _value(record, name)
    if isinstance(value, list) and required and value and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        has = name in record or value is not None
        problem = f"its {name!r} is {kind(value)}" if has else f"no {name!r} (it has {', '.join(record) or 'nothing'})"
        raise ValueError(f"{problem}, expected a string")
    return value


def _unquoted(title: str) -> str:
    title = title.strip()
    return title[1:-1].replace('""', '"') if len(title) > 1 and title[0] == title[-1] == '"' else title
