"""An answer as clients read it: its text with marks such as [1], the passages, the decisions in words, and the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from gnothi.events import Event, ModelCall, Usage
from gnothi.report.terminal.console import clean
from gnothi.report.words import THOUGHT, Line, Narrator, place
from gnothi.runs.rows import jsonable
from gnothi.serving.service import Answered
from gnothi.types import Passage

NOTHING = "(no answer)"
Link = Callable[[Passage], str]


@dataclass(frozen=True, slots=True)
class Mark:
    """``[n]`` in the text, n a number or the client's name, from ``start`` to before ``end``, and the passage it stands for."""

    start: int
    end: int
    title: str
    url: str

    def as_dict(self) -> dict[str, Any]:
        return {"type": "url_citation", "url": self.url, "title": self.title, "start_index": self.start, "end_index": self.end}


@dataclass(frozen=True, slots=True)
class RenderedAnswer:
    """``full`` is what the key ``gnothi`` holds; ``sources`` are the passages that were kept."""

    text: str
    marks: tuple[Mark, ...]
    reasoning: str
    sources: tuple[dict[str, Any], ...]
    usage: Usage
    full: dict[str, Any]

    @property
    def search_results(self) -> list[dict[str, Any]]:
        return [{"title": one["title"], "url": one["url"], "snippet": one["text"]} for one in self.sources]


def render(answered: Answered, link: Link) -> RenderedAnswer:
    result = answered.result
    sources = tuple(_source(one, link(one)) for one in result.evidence)
    text, marks = result.text or NOTHING, []
    for called, source in zip(_called(result.evidence, answered.cites), sources, strict=True):
        start, mark = len(text) + 1, f" [{called}]"
        if mark not in text[len(result.text or NOTHING) :]:  # parts of one source are called alike
            text += mark
            marks.append(Mark(start, len(text), source["cited"], source["url"]))
    usage = result.cost
    record = result.as_dict()
    full = {
        "id": answered.id,
        "setup": answered.setup.name,
        "method": result.method,
        "asked": answered.question,
        "question": result.question.text,
        "answer": result.text,
        "rationale": result.rationale,
        "uncertainty": result.uncertainty,
        "probability_wrong": result.probability_wrong,
        "attached": answered.attached,
        "retrieved": usage.retrievals > 0,
        "found_nothing": result.found_nothing,
        "sources": list(sources),
        "decisions": record["decisions"],
        "searches": record["searches"],
        "usage": asdict(usage) | {"seconds": result.seconds},
        "warnings": warnings(answered),
    }
    return RenderedAnswer(text, tuple(marks), reasoning(result.events), sources, usage, jsonable(full))


def warnings(answered: Answered) -> list[str]:
    """What a client should know of the answer."""
    found_nothing = ["the search found nothing: the answer is from the model's memory alone."]
    return [
        *answered.setup.public_warnings,
        *answered.warnings,
        *(found_nothing if answered.result.found_nothing else ()),
    ]


def _source(passage: Passage, url: str) -> dict[str, Any]:
    """``cited`` is its title with where it stands."""
    title, where = passage.title or passage.id, place(passage)
    cited = f"{title} ({where})" if where else title
    return {"id": passage.id, "title": title, "cited": cited, "text": passage.text, "url": url, "metadata": passage.metadata}


def _called(evidence: Sequence[Passage], cites: Mapping[str, str]) -> Iterator[str]:
    """Numbers, but for what has a name of the client's: to it, that one means something already."""
    number = max((int(one) for one in cites.values() if one.isascii() and one.isdigit() and len(one) < 9), default=0)
    for one in evidence:
        if one.id in cites:
            yield cites[one.id]
        else:
            number += 1
            yield str(number)


def reasoning(events: Sequence[Event]) -> str:
    """The events in words."""
    narrate = EventNarrator()
    return "".join(lines.text for event in events if (lines := narrate(event)) is not None)


@dataclass(frozen=True, slots=True)
class EventLines:
    """An event in words, and as it is."""

    event: Event
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """A line each, with what it is about before the first."""
        return "".join(f"{one.label + ': ' if one.label else '  '}{one.lead}{clean(one.text)}\n" for one in self.lines)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: the event, and its lines."""
        lines = [{"label": one.label, "text": clean(one.text), "lead": one.lead, "tone": one.tone} for one in self.lines]
        return {"event": jsonable(self.event.as_dict()), "lines": lines}


class EventNarrator:
    """Describes the events of one question in order. Of a model's call only the thoughts are shown: it holds every sample."""

    def __init__(self) -> None:
        self._narrator = Narrator()

    def __call__(self, event: Event) -> EventLines | None:
        lines = tuple(line for line in self._narrator.describe(event) if not line.detail)
        if not isinstance(event, ModelCall):
            return EventLines(event, lines)
        thoughts = tuple(line for line in lines if line.label == THOUGHT)
        return EventLines(replace(event, texts=()), thoughts) if thoughts else None
