"""The events of one question as short steps that a person reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

STEPS = 60
CHARACTERS = 320


class Step(NamedTuple):
    """``kind`` is the event's tag, ``title`` a few words, ``lines`` what there is to read."""

    kind: str
    title: str
    lines: tuple[str, ...]


def steps(events: Sequence[Mapping[str, Any]]) -> list[Step]:
    """At most ``STEPS`` of them, long texts cut; what cannot be read (an event of a later version) is named."""
    shown = [_step(event) for event in events[:STEPS]]
    if len(events) > STEPS:
        shown.append(Step("more", f"{len(events) - STEPS} more events are in events.jsonl", ()))
    return shown


def _step(event: Mapping[str, Any]) -> Step:
    kind = str(event.get("event", "event"))
    try:
        return _READERS[kind](event)
    except (KeyError, TypeError, ValueError, IndexError):
        return Step(kind, kind, (_cut(str(dict(event))),))


def _model_call(event: Mapping[str, Any]) -> Step:
    tokens = f"{event['prompt_tokens']} + {event['generated_tokens']} tokens"
    texts = [_cut(text) for text in event.get("texts", ())]
    distinct = list(dict.fromkeys(texts))
    lines = [f"{texts.count(text)} × {text}" if len(texts) > 1 else text for text in distinct[:6]]
    if len(distinct) > 6:
        lines.append(f"and {len(distinct) - 6} other texts")
    kept = ", from the cache" if event.get("cached") else ""
    return Step("model_call", f"{event['operation']} ({event['task']}), {tokens}{kept}", tuple(lines))


def _searched(event: Mapping[str, Any]) -> Step:
    found = [scored["passage"] for scored in event["passages"]]
    lines = [
        _cut(f"{passage['title']}: {passage['text']}" if passage["title"] else passage["text"], 160) for passage in found[:5]
    ]
    if len(found) > 5:
        lines.append(f"and {len(found) - 5} more")
    return Step("searched", f"searched “{_cut(event['query'], 120)}”, found {len(found)}", tuple(lines))


def _linked(event: Mapping[str, Any]) -> Step:
    nodes = list(dict.fromkeys(mention["node"] for mention in event["mentions"]))
    said = _cut(", ".join(nodes), 160) if nodes else "no name of the graph"
    return Step("linked", f"linked “{_cut(event['text'], 120)}”: {said}", ())


def _expanded(event: Mapping[str, Any]) -> Step:
    hubs = event["capped"]
    lines = (_cut(f"only {event['cap']} facts each of: {', '.join(hubs)}"),) if hubs else ()
    return Step("expanded", f"{event['facts']} facts within {event['hops']} steps of {len(event['nodes'])} nodes", lines)


def _drafted(event: Mapping[str, Any]) -> Step:
    return Step("drafted", f"drafted, uncertainty {_number(event['uncertainty'])}", (_cut(event["text"]),))


def _decided(event: Mapping[str, Any]) -> Step:
    limit = "" if event["threshold"] is None else f", threshold {_number(event['threshold'])}"
    score = f" ({event['signal']} {_number(event['score'])}{limit})" if event["signal"] else ""
    return Step("decided", f"{event['kind']}: {event['verdict']}{score}", ())


def _gauged(event: Mapping[str, Any]) -> Step:
    lines = [f"{gauge['signal']} {_number(gauge['score'])}" for gauge in event["gauges"]]
    return Step("gauged", f"drafted, {len(lines)} signals", (_cut(event["text"]), *lines))


def _ranked(event: Mapping[str, Any]) -> Step:
    candidates = [f"{_number(score)} {label}: {_cut(text, 160)}" for label, text, score in event["candidates"]]
    return Step("ranked", f"ranked {len(candidates)} by uncertainty ({event['kind']}), the first was taken", tuple(candidates))


def _decomposed(event: Mapping[str, Any]) -> Step:
    lines = tuple(f"{number}. {_cut(quiz, 160)}" for number, quiz in enumerate(event["quizzes"], start=1))
    return Step("decomposed", "split into quizzes" if event["used"] else "not split: no list that could be used", lines)


def _grouped(event: Mapping[str, Any]) -> Step:
    said = [f"{count} × {_cut(answer, 160)}" for answer, count in event["groups"]]
    said += [f"{event['unknown']} × unknown"] if event["unknown"] else []
    given = sum(count for _, count in event["groups"]) + event["unknown"]
    return Step("grouped", f"tried “{_cut(event['question'], 120)}” {given} times of {event['tries']}", tuple(said))


def _picked(event: Mapping[str, Any]) -> Step:
    found = len(event["kept"]) + len(event["dropped"])
    kept = [_cut(f"{passage['title']}: {passage['text']}".removeprefix(": "), 160) for passage in event["kept"]]
    return Step("picked", f"{event['kind']} for “{_cut(event['question'], 120)}”: {len(kept)} of {found}", tuple(kept))


def _filtered(event: Mapping[str, Any]) -> Step:
    sentences = event["sentences"]
    kept = [f"{_number(score)} {_cut(text, 160)}" for _, text, score, stays in sentences if stays]
    outcome = f"kept {len(kept)} of {len(sentences)} sentences" if kept else f"kept none of {len(sentences)} sentences"
    return Step("filtered", f"{outcome} ({event['kind']}, threshold {_number(event['threshold'])})", tuple(kept))


def _quiz_answered(event: Mapping[str, Any]) -> Step:
    title = f"quiz {event['number']} answered ({event['source']}): {_cut(event['answer'], 160)}"
    return Step("quiz_answered", title, (_cut(event["question"]),))


def _summarised(event: Mapping[str, Any]) -> Step:
    return Step(
        "summarised", f"summarised: {_cut(event['answer'], 160)}", (*map(_cut, event["premises"]), _cut(event["explanation"]))
    )


_READERS = {
    "model_call": _model_call,
    "searched": _searched,
    "linked": _linked,
    "expanded": _expanded,
    "drafted": _drafted,
    "decided": _decided,
    "gauged": _gauged,
    "ranked": _ranked,
    "decomposed": _decomposed,
    "grouped": _grouped,
    "picked": _picked,
    "filtered": _filtered,
    "quiz_answered": _quiz_answered,
    "summarised": _summarised,
}


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"


def _cut(text: str, characters: int = CHARACTERS) -> str:
    text = " ".join(str(text).split())
    return text if len(text) <= characters else text[: characters - 1] + "…"
