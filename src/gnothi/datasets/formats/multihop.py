"""Questions that take several passages: HotpotQA and its kin."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnothi.datasets.formats.generic import ALIASES, ANSWERS, IDS
from gnothi.datasets.records import PACKED, Record, has, read_records, reads
from gnothi.types import Question

# HotpotQA (Yang et al. 2018): the official files, and lines that hold each question's passages with a ``supporting`` flag.


def is_hotpotqa(first: Mapping[str, Any]) -> bool:
    passages = first.get("passages")
    flagged = isinstance(passages, list) and bool(passages) and isinstance(passages[0], dict) and "supporting" in passages[0]
    return "question" in first and (flagged or {"supporting_facts", "context"} <= first.keys())


@reads("hotpotqa", "HotpotQA: the official files, or lines with passages and supporting flags", is_hotpotqa)
def hotpotqa(record: Record) -> Question:
    """The passages stay in the file (index it to search them); metadata's ``supporting`` names the titles that are needed."""
    alias_key = record.first(ALIASES)
    answers = record.answers(*ANSWERS) + (record.answers(alias_key) if alias_key else ())
    kind = record.text("type") if record.data.get("type") else ""
    level = record.data.get("level")
    return record.question(
        answers, kind, id=" ".join(IDS), supporting=_supporting(record), level=level if isinstance(level, str) else None
    )


def _supporting(record: Record) -> tuple[str, ...]:
    try:
        if "passages" in record.data:
            titles = [passage["title"] for passage in record.data["passages"] if passage.get("supporting")]
        else:
            facts = record.data.get("supporting_facts") or []
            titles = facts["title"] if isinstance(facts, Mapping) else [title for title, _ in facts]  # the hub's shape, too
    except (TypeError, KeyError, ValueError, AttributeError):
        raise record.invalid("passages of another shape", "passages with title and supporting, or supporting_facts") from None
    return tuple(dict.fromkeys(map(str, titles)))


# 2WikiMultiHopQA (Ho et al. 2020): HotpotQA's keys and the chain of triples that leads to the answer.

NAMES = "id_aliases.json"
_ALIASES = "answer_aliases"


def two_wiki_beside(path: Path) -> Callable[[Record], Record]:
    """Adds the names that the official scorer takes for right, too: those of ``answer_id`` in ``id_aliases.json``, an object a
    line, where that file lies beside the questions'."""
    names = _names(path.with_name(NAMES))

    def completed(record: Record) -> Record:
        more = names.get(str(record.data.get("answer_id")))
        return replace(record, data={**record.data, _ALIASES: more}) if more else record

    return completed


@reads(
    "2wikimultihopqa",
    "2WikiMultiHopQA: the official files (with evidences)",
    has("question", "context", "evidences"),
    particular=2,
    beside=two_wiki_beside,
)
def two_wiki(record: Record) -> Question:
    """As HotpotQA's; metadata's ``evidences`` are triples of subject, relation, object. ``kind`` is compositional, comparison,
    bridge_comparison or inference."""
    read = hotpotqa.question(record)
    answers = tuple(dict.fromkeys((*read.answers, *record.texts(_ALIASES)))) if read.answers else ()
    return replace(read, answers=answers, metadata={**read.metadata, "evidences": _triples(record)})


def _names(path: Path) -> dict[str, list[str]]:
    path = next((one for one in (path, path.with_name(path.name + PACKED)) if one.is_file()), path)
    if not path.is_file():
        return {}
    lines = read_records(path)
    return {line.text("Q_id"): [*line.texts("aliases"), *line.texts("demonyms")] for line in lines}


def _triples(record: Record) -> tuple[tuple[str, ...], ...]:
    triples = record.data.get("evidences") or []
    shaped = isinstance(triples, list) and all(isinstance(item, list) and len(item) == 3 for item in triples)
    if not shaped:
        raise record.invalid(f"evidences = {triples!r:.60}", "a list of [subject, relation, object]")
    return tuple(tuple(map(str, item)) for item in triples)


# MuSiQue (Trivedi et al. 2022): questions over two to four passages, composed of simpler ones.


def is_musique(first: Mapping[str, Any]) -> bool:
    paragraphs = first.get("paragraphs")
    return (
        {"question", "answer"} <= first.keys()
        and isinstance(paragraphs, list)
        and all(isinstance(one, Mapping) and "paragraph_text" in one for one in paragraphs)
    )


@reads("musique", "MuSiQue: the official lines (paragraphs, question, answer, answer_aliases)", is_musique)
def musique(record: Record) -> Question:
    """``kind`` is the number of steps ("2hop"). Metadata: ``supporting`` titles, the ``decomposition``, and ``answerable``
    where the file says so. The passages stay in the file."""
    paragraphs = record.data.get("paragraphs")
    if not isinstance(paragraphs, list) or not all(isinstance(paragraph, Mapping) for paragraph in paragraphs):
        raise record.invalid(f"paragraphs = {paragraphs!r:.60}", "a list of objects with title and is_supporting")
    steps = record.data.get("question_decomposition")
    steps = steps if isinstance(steps, list) else ()
    answerable = record.data.get("answerable")
    aliases = record.answers("answer_aliases") if "answer_aliases" in record.data else ()
    kind = record.identity("id").split("__")[0]
    return record.question(
        (*record.answers("answer"), *aliases) if answerable is not False else (),
        kind if "hop" in kind else "",
        supporting=tuple(
            dict.fromkeys(str(paragraph.get("title")) for paragraph in paragraphs if paragraph.get("is_supporting"))
        ),
        decomposition=tuple(str(step.get("question")) for step in steps if isinstance(step, Mapping)),
        answerable=answerable if isinstance(answerable, bool) else None,
    )


# IIRC (Ferguson et al. 2020): passages of Wikipedia with questions whose answers stand in the articles they link to.

_KINDS = ("span", "binary", "value", "none")
_BAD = "bad"


def iirc_questions(passage: Record) -> Iterator[Record]:
    """The questions of a passage, each with its ``title``. The text stays in the file, as do the articles; a question that the
    authors marked as bad is left out."""
    title = passage.data.get("title", "")
    try:
        questions = [{**one, "title": title} for one in passage.data["questions"] if one["answer"]["type"] != _BAD]
    except (KeyError, TypeError):
        raise passage.invalid("questions of another shape", "questions, each with question, qid and answer") from None
    for number, one in enumerate(questions, start=1):
        yield Record(one, f"{passage.place}, question {number}", passage.number)


@reads(
    "iirc",
    "IIRC: the official files (text, links, questions)",
    has("links", "questions", "text"),
    particular=2,
    records=iirc_questions,
)
def iirc(record: Record) -> Question:
    """``kind`` is that of the answer: span, binary (yes or no), value (a number) or none, which is not answerable. Spans are
    alternatives, as SeaKR's and DRAGIN's code takes them; a value's unit is not part of the answer."""
    answer = record.data["answer"]
    kind = answer["type"]
    if kind not in _KINDS:
        raise record.invalid(f"answer.type = {kind!r:.40}", "span, binary, value or none")
    answers: tuple[str, ...] = ()
    if kind == "span":
        spans = answer.get("answer_spans")
        if not isinstance(spans, list) or not all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in spans):
            raise record.invalid(f"answer_spans = {spans!r:.60}", "a list of spans, each with its text")
        answers = tuple(text for one in spans if (text := one["text"].strip()))
    elif kind != "none":
        answers = record.inside(answer).answers("answer_value")
    return record.question(answers, kind, id="qid", title=str(record.data["title"]), answerable=kind != "none")


# StrategyQA (Geva et al. 2021): yes-or-no questions that take several facts, in the official files' keys.

_NO_PARAGRAPH = {"no_evidence", "operation"}


def is_strategyqa(first: Mapping[str, Any]) -> bool:
    known = "decomposition" in first or {"term", "facts"} <= first.keys()
    return "qid" in first and isinstance(first.get("answer"), bool) and known


@reads("strategyqa", "StrategyQA: the official files (qid, question, answer true or false, ...)", is_strategyqa)
def strategyqa(record: Record) -> Question:
    """``true`` and ``false`` are the answers yes and no. Metadata: ``term`` (what the question is about), ``facts``,
    ``decomposition`` (sub-questions, ``#1`` being the first one's answer) and ``supporting`` (titles of evidence)."""
    term = record.data.get("term")
    return record.question(
        record.answers("answer"),
        "yes_no",
        id="qid",
        facts=record.texts("facts"),
        decomposition=record.texts("decomposition"),
        supporting=tuple(dict.fromkeys(_titles(record.data.get("evidence")))),
        term=term if isinstance(term, str) else None,
    )


def _titles(evidence: object) -> Iterator[str]:
    """Of paragraph names ("Genghis Khan-17"), however deeply annotators, steps and paragraphs are nested."""
    if isinstance(evidence, str) and evidence not in _NO_PARAGRAPH:
        yield re.sub(r"-\d+$", "", evidence)
    elif isinstance(evidence, list):
        for item in evidence:
            yield from _titles(item)
