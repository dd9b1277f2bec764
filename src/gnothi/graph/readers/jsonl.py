"""JSON Lines: ``{"head", "relation", "tail"}`` (or subject, predicate, object), perhaps a weight; other keys are ignored."""

from __future__ import annotations

from gnothi.errors import shown
from gnothi.graph.readers.base import Malformed, Triple, name, number
from gnothi.retrieval.ingest.lines import parse_json

_OTHERS = {"head": "subject", "relation": "predicate", "tail": "object"}


class JsonLines:
    header = False

    def parse(self, line: str) -> Triple | None:
        try:
            record = parse_json(line)
        except ValueError as error:
            raise Malformed(str(error)) from None
        if not isinstance(record, dict):
            raise Malformed("got JSON that is no object, expected one with head, relation and tail")
        head, relation, tail = (_text(record, key) for key in _OTHERS)
        return Triple(head, relation, tail, number(record.get("weight", 1.0)))


def _text(record: dict[str, object], key: str) -> str:
    value = record.get(key, record.get(_OTHERS[key]))
    if not isinstance(value, str):
        got = "nothing" if value is None else shown(value)
        raise Malformed(f"its {key} is {got}, expected text")
    # Lone surrogates are possible in JSON and impossible in UTF-8.
    return name(value.encode("utf-8", "replace").decode(), key)
