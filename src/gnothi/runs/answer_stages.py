"""How far the answer to a question came: was it in what was found, in what was read, and in what was said?

So the search and the reader are told apart, for every method alike: by what searches returned (``events.Searched``), by the
passages of the prompts whose replies the final answer is made of (``events.ModelCall``); where prompts have none, by the
evidence that was kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gnothi.events import Event, Expanded, ModelCall, Searched
from gnothi.metrics.holding import holds
from gnothi.metrics.normalise import normalise
from gnothi.types import Answer, Passage, Question

READ, WITHOUT, UNTOLD_RIGHT = "answered", "answered_without", "answered_untold"
MISREAD, UNREAD, UNFOUND, UNSEARCHED, UNTOLD = "misread", "unread", "not_found", "not_searched", "untold"
STAGES = (READ, WITHOUT, UNTOLD_RIGHT, MISREAD, UNREAD, UNFOUND, UNSEARCHED, UNTOLD)
"""Of right answers: it was read; it was not; that cannot be told. Of wrong ones: it was read; found, and not read; not found by
any search; nothing was searched for; that cannot be told."""
_NAMED = ("supporting", "supporting_facts", "supporting_ids", "supporting_titles", "supporting_passages", "positive_ctxs")
"""Keys of a question's metadata under which data sets name the passages that it needs."""
_ABOUT = ("id", "_id", "passage_id", "title")


def reached(question: Question, answer: Answer, scores: Mapping[str, float], events: Sequence[Event]) -> dict[str, Any]:
    """``found`` and ``read``: whether the passages held a gold answer, or were all that the data set names as needed.

    None where that cannot be told (``metrics.holding``), or where facts of a graph were read, which events do not hold.
    ``stage`` is one of ``STAGES``. Empty where nothing is known of the question."""
    golds = question.answers if question.metadata.get("answerable") is not False else ()
    needed = supporting(question.metadata)
    if not scores or not (golds or needed):
        return {}
    found = [one.passage for event in events if isinstance(event, Searched) for one in event.passages]
    known = {passage.id for passage in found}
    read = _of(known, _shown(answer, events)) or _of(known, answer.evidence)
    facts = any(isinstance(event, Expanded) for event in events)
    was_found, was_read = (_held(passages, question, golds, needed) for passages in (found, read))
    if facts:
        was_found, was_read = was_found or None, was_read or None
    searched = facts or any(isinstance(event, Searched) for event in events)
    right = max(scores.get("em", 0), scores.get("accuracy", 0)) >= 1
    return {"found": was_found, "read": was_read, "stage": _stage(was_found, was_read, right, searched)}


def supporting(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Titles or ids of the passages that a question needs, as far as its data set names them."""
    for key in _NAMED:
        value = metadata.get(key)
        if isinstance(value, list | tuple) and (named := tuple(dict.fromkeys(filter(None, map(_name, value))))):
            return named
    return ()


def _name(one: Any) -> str:
    if isinstance(one, Mapping):
        one = next((one[key] for key in _ABOUT if one.get(key)), "")
    elif isinstance(one, list | tuple):  # a title and the number of a sentence
        one = one[0] if one else ""
    return str(one) if isinstance(one, str | int) else ""


def _held(passages: Sequence[Passage], question: Question, golds: Sequence[str], needed: Sequence[str]) -> bool | None:
    there = {form for one in passages for form in (one.id, one.id.partition("#")[0], normalise(one.title))}
    if needed and all(name in there or normalise(name) in there for name in needed):
        return True
    held = holds([f"{one.title}\n{one.text}" for one in passages], golds, question.text)
    return False if needed and held is None else held


def _of(known: Collection[str], passages: Iterable[Passage]) -> list[Passage]:
    """Those that are found ones, or sentences of them: others are the model's own words."""
    return [one for one in passages if one.id in known or one.id.rpartition("#")[0] in known]


def _shown(answer: Answer, events: Sequence[Event]) -> Iterator[Passage]:
    """What stood in the prompts whose replies are a part of the answer; where no reply is, in the last one."""
    calls = [event for event in events if isinstance(event, ModelCall) and event.operation in ("generate", "sample", "score")]
    answered, short = normalise(f"{answer.rationale} {answer.text}"), normalise(answer.text)
    made_of = [call for call in calls if any(_part(normalise(text), answered, short) for text in call.texts)]
    for call in made_of or calls[-1:]:
        yield from call.passages


def _part(reply: str, answered: str, short: str) -> bool:
    return bool(reply) and (reply in answered or (bool(short) and short in reply))


def _stage(found: bool | None, read: bool | None, right: bool, searched: bool) -> str:
    if right:
        return READ if read else WITHOUT if read is False else UNTOLD_RIGHT
    if read:
        return MISREAD
    if read is None or found is None:
        return UNTOLD
    return UNREAD if found else UNFOUND if searched else UNSEARCHED
