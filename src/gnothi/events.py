"""What happened while a question was answered, as frozen tagged records on a context variable.

Methods do not write events: the parts they call do (gates, re-rankers, wrappers around models and retrievers).
``record()`` opens a list that receives every event of the current task and of the tasks started inside it; recordings nest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar

from gnothi.errors import MALFORMED, InvalidInput, malformation
from gnothi.typed import typed
from gnothi.types import Mention, Passage, ScoredPassage


@dataclass(frozen=True, slots=True)
class Event:
    """``tag`` is the class's name as written in files: ``ModelCall`` is "model_call"."""

    tag: ClassVar[str] = "event"

    def __init_subclass__(cls) -> None:
        cls.tag = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready form; ``event`` names the kind."""
        names = (item.name for item in fields(self) if "unwritten" not in item.metadata)
        return {"event": self.tag, **{name: _plain(getattr(self, name)) for name in names}}


def read(record: Mapping[str, Any]) -> Event:
    """The event that ``as_dict`` wrote, also by way of JSON (where a number that is not finite is null: NaN here).

    Raises InvalidInput for an event of a kind that there is not, or with other contents, as a later version may write."""
    kind = kinds().get(record.get("event", ""))
    if kind is None:
        raise InvalidInput(f"got an event {record.get('event')!r:.60}, expected one of {', '.join(sorted(kinds()))}.")
    try:
        event: Event = typed(kind, record)
    except MALFORMED as error:
        raise InvalidInput(f"got an event {kind.tag!r} that cannot be read: {malformation(error):.200}.") from None
    return event


def kinds() -> dict[str, type[Event]]:
    """Every kind of event by its tag, those that a plug-in defined included."""
    return {kind.tag: kind for kind in Event.__subclasses__()}


def _plain(value: Any) -> Any:
    """Records as dictionaries, all the way down (as ``dataclasses.asdict``, which copies every text and number, too)."""
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    return value


@dataclass(frozen=True, slots=True)
class ModelCall(Event):
    """One request to a model. ``operation`` is generate, sample, states, score or attend; tokens are of this request
    alone.

    ``cached``: the answer was kept from an earlier request and cost nothing now; its tokens are those it cost then. ``cut``:
    how many of the replies ended at the limit of their length. ``thoughts`` are what a model that thinks said to itself before
    its replies: no part of ``texts``; ``thought_tokens`` are among the generated ones, and ``thoughts_cut`` says how many of
    the thoughts ended at their limit. ``passages`` are those of the prompt; files do not keep them.
    """

    model: str
    operation: str
    task: str
    prompt_tokens: int
    generated_tokens: int
    seconds: float
    texts: tuple[str, ...] = ()
    cached: bool = False
    cut: int = 0
    thoughts: tuple[str, ...] = ()
    thought_tokens: int = 0
    thoughts_cut: int = 0
    passages: tuple[Passage, ...] = field(default=(), metadata={"unwritten": True})


@dataclass(frozen=True, slots=True)
class Searched(Event):
    """One query to a retriever and what came back."""

    query: str
    passages: tuple[ScoredPassage, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class UnknownKeys(Event):
    """A search found nothing whose filters name keys that no passage of the index has; ``known`` are those that there are.
    ``starred``: filters with a ``*`` that is not at a value's end."""

    index: str
    lacking: tuple[str, ...]
    known: tuple[str, ...]
    starred: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Partial(Event):
    """A search that some of an index's ``servers`` (or of a server's shards) had no part in: ``lacking`` are their names,
    each with the reason."""

    index: str
    servers: int
    lacking: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Linked(Event):
    """The nodes of a knowledge graph that a text names."""

    text: str
    mentions: tuple[Mention, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Expanded(Event):
    """The neighbourhood of some nodes: how many facts, and the nodes of which only ``cap`` facts were taken."""

    nodes: tuple[str, ...]
    hops: int
    cap: int
    facts: int
    capped: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Drafted(Event):
    """A sentence the model proposed, with its uncertainty (None where none was measured)."""

    text: str
    uncertainty: float | None


@dataclass(frozen=True, slots=True)
class Written(Event):
    """What was written with the passages found, in place of a draft."""

    text: str


@dataclass(frozen=True, slots=True)
class Gauge:
    """One signal's reading (None where nothing could be measured), and what it takes beside the reply that it is about."""

    signal: str
    score: float | None
    model_calls: int
    prompt_tokens: int
    generated_tokens: int


@dataclass(frozen=True, slots=True)
class Gauged(Event):
    """A reply the model proposed, with several signals' uncertainties of it. Nothing was decided by them."""

    text: str
    gauges: tuple[Gauge, ...]


@dataclass(frozen=True, slots=True)
class Decided(Event):
    """A score held against a threshold. ``kind`` is what was decided (retrieve, keep, ...), ``subject`` what about,
    ``verdict`` the outcome in a word. ``signal`` names the score's source. ``samples``: how many it took, where drawing ended
    as soon as the side was decided; the score of fewer than all is moved to where that of all lies. ``draws``: where a rule for
    that is to be chosen, the scores of the first samples of each of several draws, and of all of them."""

    kind: str
    signal: str
    score: float | None
    threshold: float | None
    verdict: str
    subject: str = ""
    samples: int | None = None
    draws: tuple[tuple[float | None, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked(Event):
    """Candidates ordered by uncertainty, the chosen one first.

    ``kind`` is passage or answer; each candidate is (label, text, score).
    """

    kind: str
    candidates: tuple[tuple[str, str, float | None], ...]


@dataclass(frozen=True, slots=True)
class Reranked(Event):
    """Texts by how well a re-ranker says they fit a query: (text, score), best first; of ``considered`` texts the best ones."""

    reranker: str
    query: str
    best: tuple[tuple[str, float], ...]
    considered: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Rephrased(Event):
    """A question of a conversation, and the one that stands alone in its place."""

    question: str
    standalone: str


@dataclass(frozen=True, slots=True)
class Decomposed(Event):
    """A question and the smaller ones it was split into, in order; ``#1`` in one of them stands for the answer to the first.

    ``used`` is False where the reply was no usable list, so that the question itself is asked instead."""

    question: str
    quizzes: tuple[str, ...]
    used: bool = True


@dataclass(frozen=True, slots=True)
class Grouped(Event):
    """Several answers to one question by meaning: (answer, number of answers that mean it), largest group first.

    ``unknown`` answers belong to no group; ``tries`` is the number of answers planned, of which groups and unknown ones
    were given before the outcome was settled."""

    question: str
    groups: tuple[tuple[str, int], ...]
    unknown: int
    tries: int


@dataclass(frozen=True, slots=True)
class Picked(Event):
    """Which of the passages found for a question were judged worth keeping. ``kind`` names the judge's criterion."""

    kind: str
    question: str
    kept: tuple[Passage, ...]
    dropped: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Filtered(Event):
    """Which sentences of the passages found for a question were kept. ``kind`` names the score (pmi, ...), ``threshold`` what
    it is held against. Each sentence is (passage id, text, score, whether it was kept); a score that is not finite is None."""

    kind: str
    question: str
    sentences: tuple[tuple[str, str, float | None, bool], ...]
    threshold: float


@dataclass(frozen=True, slots=True)
class QuizAnswered(Event):
    """A smaller question (``number`` from 1, references replaced) and its answer.

    ``source`` says where that came from: memory, passages, guess (inconsistent, but nothing better was found) or nothing."""

    number: int
    question: str
    answer: str
    source: str


@dataclass(frozen=True, slots=True)
class Summarised(Event):
    """The answers to the smaller questions put together: what the model was told, how it concluded, what it answered."""

    question: str
    premises: tuple[str, ...]
    explanation: str
    answer: str


@dataclass(frozen=True, slots=True)
class Reflected(Event):
    """What the model said when asked to tell something about each subject: (subject, text). ``known`` are the subjects
    about which it said anything; the others' texts were left out."""

    told: tuple[tuple[str, str], ...]
    known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Revised(Event):
    """Internal knowledge before and after it was held against external knowledge."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost: counted from its events, so that no method keeps books. Tokens are summed over all model calls,
    those answered from the cache included (``cached_calls`` of them), so that methods compare whatever was cached. A retrieval
    is a search, or the neighbourhood of some nodes of a graph. ``thought_tokens`` are those of the generated ones that a model
    thought."""

    retrievals: int = 0
    model_calls: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    cached_calls: int = 0
    thought_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @classmethod
    def of(cls, events: Iterable[Event]) -> Usage:
        listed = list(events)
        calls = [event for event in listed if isinstance(event, ModelCall)]
        return cls(
            retrievals=sum(isinstance(event, Searched | Expanded) for event in listed),
            model_calls=len(calls),
            prompt_tokens=sum(call.prompt_tokens for call in calls),
            generated_tokens=sum(call.generated_tokens for call in calls),
            cached_calls=sum(call.cached for call in calls),
            thought_tokens=sum(call.thought_tokens for call in calls),
        )


def found_nothing(events: Iterable[Event]) -> bool:
    """Whether something was searched for, and no search found anything."""
    numbers = [
        len(event.passages) if isinstance(event, Searched) else event.facts
        for event in events
        if isinstance(event, Searched | Expanded)
    ]
    return bool(numbers) and not any(numbers)


Listener = Callable[[Event], None]
_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("gnothi_event_listeners", default=())


def emit(event: Event) -> None:
    """Hand ``event`` to every listener of the current context, outermost first."""
    for listener in _listeners.get():
        listener(event)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Call ``listener`` for each event inside the block."""
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def record() -> Iterator[list[Event]]:
    """Collect the events inside the block."""
    events: list[Event] = []
    with listen(events.append):
        yield events
