"""Every event in words: one way for the terminal (``terminal.steps``) and for the HTML page (``page.questions``).

An event becomes lines. The first has a label (search, gate, draft ...); what was found, ranked or kept stands in lines below.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gnothi import events
from gnothi.errors import counted
from gnothi.retrieval.filtering import unknown_keys
from gnothi.types import Passage

FOUND = 3
"""What was found is shown up to here, or one more where that is all; the rest are details."""
NOTHING_FOUND = "none: the search found nothing, so the answer is from the model's memory alone"
"""Of an answer without evidence, for that reason."""
THOUGHT = "thought"
"""The label of what a model that thinks said to itself."""
SOURCES = {
    "memory": "from memory",
    "passages": "from passages",
    "guess": "a guess: tries disagree, nothing useful was found",
    "nothing": "no answer found",
}
VERDICTS = {
    "retrieve": "unsure, retrieve",
    "trust": "sure, trust memory",
    "fall_back": "nothing passes the filter, what was found is read",
    "repeats": "it only repeats the question, which is asked for a short answer instead of",
    "copies": "it copies a worked example, so the question is asked for a short answer instead of",
}
STAGES = {
    "answered": "right, after reading it",
    "answered_without": "right, without reading it",
    "answered_untold": "right; unknown whether read",
    "misread": "read, but answered wrongly",
    "unread": "found, but not read",
    "not_found": "not found",
    "not_searched": "not searched for",
    "untold": "wrong; unknown whether found",
}
"""How far an answer came (``runs.answer_stages``)."""
_CHOSEN = {"retrieve": "retrieve", "trust": "trust memory"}
_TONES = {"retrieve": "doubt", "trust": "good", "fall_back": "doubt"}


@dataclass(frozen=True, slots=True)
class Line:
    """``lead`` is a score or a mark before the text; ``step`` counts drafts and quizzes. ``tone``: strong (the model's own
    words), look (a search), good, doubt, soft, or none. ``whole`` lines are wrapped, others cut where there is no more room.
    A ``detail`` is left out where space is short; a line ``instead`` stands there for such ones."""

    label: str
    text: str
    lead: str = ""
    tone: str = "soft"
    step: int | None = None
    whole: bool = False
    detail: bool = False
    instead: bool = False


class Narrator:
    """Describes the events of one question, in the order they happened: a step needs to know what came before."""

    def __init__(self) -> None:
        self._step = 0
        self._titles: dict[str, str] = {}
        self._reading = False  # the next draft is the one written with the passage that won

    def describe(self, event: events.Event) -> list[Line]:
        """At least one line. An event of another kind (a plug-in's) is shown by its fields."""
        ours = type(event).__module__ == events.__name__
        describe: Callable[[Any], Iterable[Line]] = getattr(self, f"describe_{event.tag}") if ours else self._fields
        return list(describe(event))

    def describe_drafted(self, event: events.Drafted) -> Iterator[Line]:
        if self._reading:
            self._reading = False
            yield from self.describe_written(event)
        else:
            yield self._draft(event.text)

    def describe_written(self, event: events.Drafted | events.Written) -> Iterator[Line]:
        yield Line("write", _text_or_none(event.text), tone="strong", whole=True)

    def _draft(self, text: str) -> Line:
        self._step += 1
        return Line("draft", _text_or_none(text), tone="strong", step=self._step, whole=True)

    def describe_gauged(self, event: events.Gauged) -> Iterator[Line]:
        yield self._draft(event.text)
        width = max((len(gauge.signal) for gauge in event.gauges), default=0)
        for label, gauge in _labelled("signals", event.gauges):
            tokens = gauge.prompt_tokens + gauge.generated_tokens
            price = f"{counted(gauge.model_calls, 'call')}, {tokens:,} tokens more" if gauge.model_calls else "at no extra cost"
            score = "not measured" if gauge.score is None else f"{gauge.score:.4g}"
            yield Line(label, price, f"{gauge.signal:<{width}}  {score:>12}  ")

    def describe_decided(self, event: events.Decided) -> Iterator[Line]:
        outcome = VERDICTS.get(event.verdict, event.verdict)
        if event.threshold is None and event.signal:  # a choice among several: nothing was sure or unsure
            outcome = _CHOSEN.get(event.verdict, outcome)
        label = "gate" if event.kind == "retrieve" else event.kind
        if not event.signal:  # chosen, not measured
            yield Line(label, f"{outcome} {event.subject}".rstrip(), tone="", whole=True)
        else:
            yield Line(label, f"{_comparison(event)}: {outcome}", tone=_TONES.get(event.verdict, ""), whole=True)

    def describe_searched(self, event: events.Searched) -> Iterator[Line]:
        self._titles |= {scored.passage.id: scored.passage.title for scored in event.passages}
        amount = counted(len(event.passages), "passage") if event.passages else "nothing found"
        yield Line("search", f"{event.query} ({amount}, {duration(event.seconds)})", tone="look", whole=True)
        visible = len(event.passages) if len(event.passages) <= FOUND + 1 else FOUND
        for place, (label, scored) in enumerate(_labelled("found", event.passages)):
            yield Line(label, entry(scored.passage), f"  {scored.score:6.2f}  ", detail=place >= visible)
        if visible < len(event.passages):
            yield Line("", f"and {len(event.passages) - visible} more", instead=True)

    def describe_partial(self, event: events.Partial) -> Iterator[Line]:
        without = "; ".join(reason for _, reason in event.lacking)
        yield Line("partial", f"without {len(event.lacking)} of {event.servers} servers: {without}", tone="doubt", whole=True)

    def describe_unknown_keys(self, event: events.UnknownKeys) -> Iterator[Line]:
        yield Line("filter", unknown_keys(event), tone="doubt", whole=True)

    def describe_linked(self, event: events.Linked) -> Iterator[Line]:
        names = ", ".join(dict.fromkeys(mention.node for mention in event.mentions))
        yield Line("link", f"{names or 'nothing that the graph knows'} ({duration(event.seconds)})", tone="look", whole=True)

    def describe_expanded(self, event: events.Expanded) -> Iterator[Line]:
        facts = f"{counted(event.facts, 'fact')} within {counted(event.hops, 'step')} ({duration(event.seconds)})"
        capped, others = event.capped[:FOUND], event.capped[FOUND:]
        more = f" and {len(others)} more" if others else ""
        hubs = f"; of {', '.join(capped)}{more} only {event.cap} each" if capped else ""
        yield Line("facts", facts + hubs, tone="look", whole=True)
        if others:
            yield Line("", f"the {len(others)} more: {', '.join(others)}", whole=True, detail=True)

    def describe_reflected(self, event: events.Reflected) -> Iterator[Line]:
        for label, (name, text) in _labelled("recall", event.told):
            yield Line(label, _titled(name, text or "(nothing)"), tone="good" if name in event.known else "soft")
        if not event.told:
            yield Line("recall", "nothing", whole=True)

    def describe_reranked(self, event: events.Reranked) -> Iterator[Line]:
        considered = f"{counted(event.considered, 'text')} by {event.reranker} ({duration(event.seconds)})"
        yield Line("rank", considered, tone="look", whole=True)
        for place, (text, score) in enumerate(event.best):
            yield Line("", text, f"  {score:6.2f}  ", detail=place >= FOUND)

    def describe_revised(self, event: events.Revised) -> Iterator[Line]:
        yield Line("revise", "nothing to change" if event.after == event.before else event.after, tone="", whole=True)

    def describe_ranked(self, event: events.Ranked) -> Iterator[Line]:
        answers = event.kind == "answer"
        label = {"answer": "answers", "passage": "read"}.get(event.kind, event.kind)
        self._reading = self._reading if answers else event.kind == "passage"
        for place, (name, text, score) in enumerate(event.candidates):
            titled = _titled(f"from {name}", text or "(none)") if answers else _titled(self._titles.get(name, name), text)
            yield _contender("" if place else label, titled, score, place == 0)
        first, second = [score for _, _, score in event.candidates[:2]] if len(event.candidates) > 1 else (None, None)
        if first is not None and second is not None and round(second - first, 2) > 0:
            yield Line("", f"won by {second - first:.2f}", whole=True)
        if not event.candidates:
            yield Line(label, "nothing to choose from", whole=True)

    def describe_rephrased(self, event: events.Rephrased) -> Iterator[Line]:
        yield Line("asked", event.standalone, tone="strong", whole=True)

    def describe_decomposed(self, event: events.Decomposed) -> Iterator[Line]:
        if not event.used:
            yield Line("split", "the model gave no usable list of quizzes: the question is asked as it is", whole=True)
        for number, quiz in enumerate(event.quizzes, start=1):
            yield Line("quiz", quiz, tone="strong", step=number, whole=True)

    def describe_grouped(self, event: events.Grouped) -> Iterator[Line]:
        answers = [f"{answer} ×{count}" for answer, count in event.groups]
        answers += [f"unknown ×{event.unknown}"] if event.unknown else []
        replies = sum(count for _, count in event.groups) + event.unknown
        tries = counted(event.tries, "try", "tries")
        yield Line("tries", f"{event.question} {', '.join(answers)} ({replies} of {tries})", tone="", whole=True)

    def describe_picked(self, event: events.Picked) -> Iterator[Line]:
        passages = counted(len(event.kept) + len(event.dropped), "passage")
        yield Line("pick", f"{event.question} {len(event.kept)} of {passages} {event.kind}", tone="", whole=True)
        yield from (Line("", entry(passage), "  * ", "good") for passage in event.kept)
        yield from (Line("", entry(passage), "    ", detail=True) for passage in event.dropped)

    def describe_filtered(self, event: events.Filtered) -> Iterator[Line]:
        count, of = sum(stays for *_, stays in event.sentences), counted(len(event.sentences), "sentence")
        outcome = f"{count} of {of} kept ({event.kind}, above {decimal(event.threshold)})"
        yield Line("filter", outcome if count else f"{outcome}: nothing is left of them", tone="", whole=True)
        for source, text, score, stays in event.sentences:
            yield _contender("", _titled(self._titles.get(source, source), text), score, stays, detail=not stays)

    def describe_quiz_answered(self, event: events.QuizAnswered) -> Iterator[Line]:
        source = SOURCES.get(event.source, event.source)
        yield Line("solved", f"{event.number} {event.answer} ({source})", tone="strong", whole=True)

    def describe_summarised(self, event: events.Summarised) -> Iterator[Line]:
        for label, premise in _labelled("notes", event.premises or ("none",)):
            yield Line(label, premise, tone="", whole=True)

    def describe_model_call(self, event: events.ModelCall) -> Iterator[Line]:
        tokens = f"{event.prompt_tokens} + {event.generated_tokens} tokens"
        how = "from the cache" if event.cached else duration(event.seconds)
        yield Line("model", f"{event.operation} {event.task} ({tokens}, {how})", whole=True)
        yield from _thoughts(event)
        yield from (Line("", repr(text), f"{count} × " if count > 1 else "") for text, count in Counter(event.texts).items())

    def _fields(self, event: events.Event) -> Iterator[Line]:
        fields = {key: value for key, value in event.as_dict().items() if key != "event"}
        yield Line(event.tag, ", ".join(f"{key} {value}" for key, value in fields.items()), tone="", whole=True)


def entry(passage: Passage, named: bool = False) -> str:
    """``named``: its id stands before it, which may tell the source already."""
    where = place(passage, named)
    return _titled(passage.title, passage.text) if not where else f"({where}) {_titled(passage.title, passage.text)}"


def place(passage: Passage, named: bool = False) -> str:
    """Where a passage stands, as in "handbook.pdf, p. 3, 2025-01-31"; empty where nothing is known. The source is left out
    where the passage is ``named`` by an id that begins with it."""
    metadata = passage.metadata
    source = str(metadata.get("source") or "")
    last = f"-{metadata['last_page']}" if metadata.get("last_page") else ""
    page = f"p. {metadata['page']}{last}" if metadata.get("page") else ""
    section = str(metadata.get("section") or "")
    parts = (
        "" if named and passage.id.startswith(source) else source,
        page,
        "" if section in passage.title else section,
        metadata.get("date"),
    )
    return ", ".join(str(one) for one in parts if one)


def duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def decimal(score: float | None, digits: int = 2) -> str:
    """A score; one that was not measured is a dash."""
    if score is None or math.isnan(score):
        return "-"
    return f"{round(score, digits) + 0.0:.{digits}f}"  # adding 0 turns -0.0 into 0.0


def _thoughts(event: events.ModelCall) -> Iterator[Line]:
    """What the model thought before it replied, the first of several samples' in short."""
    cut = f", {event.thoughts_cut} cut at the limit" if event.thoughts_cut else ""
    several = f"{len(event.thoughts)} thoughts, " if len(event.thoughts) > 1 else ""
    for place, thought in enumerate(event.thoughts):
        if place == 0:
            yield Line(THOUGHT, thought or "(nothing)", f"({several}{counted(event.thought_tokens, 'token')}{cut}) ")
        else:
            yield Line("", thought or "(nothing)", "another: ", detail=True)


def _text_or_none(text: str) -> str:
    return text or "(nothing said)"


def _titled(title: str, text: str) -> str:
    return f"{title}: {text}" if title else text


def _labelled(label: str, items: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The label goes with the first item alone."""
    yield from ((label if place == 0 else "", item) for place, item in enumerate(items))


def _contender(label: str, text: str, score: float | None, wins: bool, detail: bool = False) -> Line:
    return Line(label, text, f"{'*' if wins else ' '} {decimal(score):>6}  ", "good" if wins else "soft", detail=detail)


def _comparison(event: events.Decided) -> str:
    score, threshold = event.score, event.threshold
    if threshold is None:
        return f"{event.signal} {decimal(score)}, no threshold"
    if score is None:
        return f"{event.signal} not measured, threshold {decimal(threshold)}"
    digits = _digits(score, threshold)
    sign = ">" if score > threshold else "<" if score < threshold else "="
    early = "" if event.samples is None else f", after {counted(event.samples, 'sample')}"
    return f"{event.signal} {decimal(score, digits)} {sign} {decimal(threshold, digits)}{early}"


def _digits(score: float, threshold: float) -> int:
    """As many as are needed to see which one is larger, from 2 to 6; 2 where neither is, to the sixth digit."""
    if round(score, 6) == round(threshold, 6):
        return 2
    return next((digits for digits in range(2, 6) if round(score, digits) != round(threshold, digits)), 6)
