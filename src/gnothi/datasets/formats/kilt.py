"""KILT (Petroni et al. 2021): tasks over one Wikipedia, their answers each with the pages it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question


def question(record: Record) -> Question:
    """Metadata's ``supporting`` names the titles of the pages. Outputs that are pages alone are no answers."""
    given = record.data.get("output") or []
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        raise record.invalid(f"output = {given!r:.60}", 'a list of objects with "answer" or "provenance"')
    found = [one for one in given if one.get("answer") is not None]
    pages = [page for one in given for page in one.get("provenance") or [] if isinstance(page, Mapping)]
    return Question(
        id=record.identity("id"),
        text=record.text("input"),
        answers=Record({"output": found}, record.place, record.number).answers("output"),
        metadata={"supporting": tuple(dict.fromkeys(str(page["title"]) for page in pages if page.get("title")))},
    )


def recognises(first: Mapping[str, Any]) -> bool:
    return "id" in first and isinstance(first.get("input"), str) and isinstance(first.get("output"), list | type(None))


FORMAT = Format("kilt", "KILT: the official lines (input, output: answer, provenance), and the hub's", recognises, question)
