"""2WikiMultiHopQA (Ho et al. 2020): HotpotQA's keys and the chain of triples that leads to the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnothi.datasets.formats import hotpotqa
from gnothi.datasets.packed import PACKED
from gnothi.datasets.records import Format, Record, read_records
from gnothi.types import Question

NAMES = "id_aliases.json"
_ALIASES = "answer_aliases"


def question(record: Record) -> Question:
    """As HotpotQA's; metadata's ``evidences`` are triples of subject, relation, object. ``kind`` is compositional, comparison,
    bridge_comparison or inference."""
    read = hotpotqa.question(record)
    answers = tuple(dict.fromkeys((*read.answers, *record.texts(_ALIASES)))) if read.answers else ()
    return replace(read, answers=answers, metadata={**read.metadata, "evidences": _triples(record)})


def beside(path: Path) -> Callable[[Record], Record]:
    """Adds the names that the official scorer takes for right, too: those of ``answer_id`` in ``id_aliases.json``, an object a
    line, where that file lies beside the questions'."""
    names = _names(path.with_name(NAMES))

    def completed(record: Record) -> Record:
        more = names.get(str(record.data.get("answer_id")))
        return replace(record, data={**record.data, _ALIASES: more}) if more else record

    return completed


def _names(path: Path) -> dict[str, list[str]]:
    path = next((one for one in (path, path.with_name(path.name + PACKED)) if one.is_file()), path)
    if not path.is_file():
        return {}
    lines = read_records(path)
    return {line.text("Q_id"): [*line.texts("aliases"), *line.texts("demonyms")] for line in lines}


def _triples(record: Record) -> tuple[tuple[str, ...], ...]:
    given = record.data.get("evidences") or []
    shaped = isinstance(given, list) and all(isinstance(item, list) and len(item) == 3 for item in given)
    if not shaped:
        raise record.invalid(f"evidences = {given!r:.60}", "a list of [subject, relation, object]")
    return tuple(tuple(map(str, item)) for item in given)


def recognises(first: Mapping[str, Any]) -> bool:
    return {"question", "context", "evidences"} <= first.keys()


FORMAT = Format(
    "2wikimultihopqa",
    "2WikiMultiHopQA: the official files (with evidences)",
    recognises,
    question,
    particular=2,
    beside=beside,
)
