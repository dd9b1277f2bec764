"""StrategyQA (Geva et al. 2021): yes-or-no questions that take several facts, in the official files' keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question

_NO_PARAGRAPH = {"no_evidence", "operation"}


def question(record: Record) -> Question:
    """``true`` and ``false`` are the answers yes and no. Metadata: ``term`` (what the question is about), ``facts``,
    ``decomposition`` (sub-questions, ``#1`` being the first one's answer) and ``supporting`` (titles of evidence)."""
    metadata: dict[str, Any] = {
        "facts": record.texts("facts"),
        "decomposition": record.texts("decomposition"),
        "supporting": tuple(dict.fromkeys(_titles(record.data.get("evidence")))),
    }
    if isinstance(record.data.get("term"), str):
        metadata["term"] = record.data["term"]
    return Question(
        id=record.identity("qid"),
        text=record.text("question"),
        answers=record.answers("answer"),
        kind="yes_no",
        metadata=metadata,
    )


def _titles(evidence: object) -> Iterator[str]:
    """Of paragraph names ("Genghis Khan-17"), however deeply annotators, steps and paragraphs are nested."""
    if isinstance(evidence, str) and evidence not in _NO_PARAGRAPH:
        yield re.sub(r"-\d+$", "", evidence)
    elif isinstance(evidence, list):
        for item in evidence:
            yield from _titles(item)


def recognises(first: Mapping[str, Any]) -> bool:
    known = "decomposition" in first or {"term", "facts"} <= first.keys()
    return "qid" in first and isinstance(first.get("answer"), bool) and known


FORMAT = Format("strategyqa", "StrategyQA: the official files (qid, question, answer true or false, ...)", recognises, question)
