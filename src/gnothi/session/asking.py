"""One question, asked: the answer, and everything that was decided and spent on the way to it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gnothi.errors import counted
from gnothi.events import Decided, Event, Listener, Searched, Usage, found_nothing, listen
from gnothi.notebook import listing
from gnothi.own_code import running
from gnothi.protocols import Method
from gnothi.report.numbers import number
from gnothi.seeding import question_scope
from gnothi.session.plan import Plan
from gnothi.session.resources import Opened
from gnothi.signals.assessment import STOPS_EARLY
from gnothi.types import Answer, Passage, Question


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """An answer with how it came about. ``seconds`` is from the question's start to its end, everything being open;
    ``probability_wrong`` is by the calibration's curve, None without one or where it says nothing of this answer."""

    question: Question
    answer: Answer
    method: str
    model: str
    index: str | None
    graph: str | None
    seconds: float
    events: tuple[Event, ...]
    probability_wrong: float | None = None

    @property
    def text(self) -> str:
        """The answer itself."""
        return self.answer.text

    @property
    def rationale(self) -> str:
        """The reasoning that led to it; empty for a method that answers at once."""
        return self.answer.rationale

    @property
    def uncertainty(self) -> float | None:
        """Higher is less certain, in the units of the method's signal; None where the method has no such number."""
        return self.answer.uncertainty

    @property
    def evidence(self) -> tuple[Passage, ...]:
        """The passages that were kept."""
        return self.answer.evidence

    @property
    def decisions(self) -> tuple[Decided, ...]:
        """Every score that was held against a threshold, in order."""
        return tuple(event for event in self.events if isinstance(event, Decided))

    @property
    def searches(self) -> tuple[Searched, ...]:
        """Every query and what it found, in order."""
        return tuple(event for event in self.events if isinstance(event, Searched))

    @property
    def found_nothing(self) -> bool:
        """Whether something was searched for, and nothing found: then the answer is from the model's memory alone."""
        return found_nothing(self.events)

    @property
    def cost(self) -> Usage:
        """Retrievals, model calls and tokens."""
        return Usage.of(self.events)

    def __repr__(self) -> str:
        usage = self.cost
        found = "nothing found" if self.found_nothing else f"evidence {[one.id for one in self.evidence]}"
        return (
            f"<gnothi.Result {self.text!r} by {self.method}, model {self.model!r}, index {self.index!r}: "
            f"{counted(usage.retrievals, 'search', 'searches')}, {found}, {counted(usage.model_calls, 'model call')}>"
        )

    def _repr_html_(self) -> str:
        usage = self.cost
        cost = f"{counted(usage.retrievals, 'search', 'searches')}, {counted(usage.model_calls, 'model call')}"
        decided = [f"{one.signal} {number(one.score)} at {number(one.threshold)}: {one.verdict}" for one in self.decisions]
        about = {"decisions": decided, "method": self.method, "model": self.model, "index": self.index, "graph": self.graph}
        wrong = {"probability wrong": self.probability_wrong}
        return listing({"question": self.question.text, **self.answer.summary(), **wrong, **about, "cost": cost})

    def as_dict(self, trace: bool = False) -> dict[str, Any]:
        """JSON-ready. ``retrievals`` is their number; ``searches`` tells each one's query and what it found; ``trace`` adds
        every event."""
        usage = self.cost
        found = {
            "question": self.question.text,
            "method": self.method,
            "model": self.model,
            "index": self.index,
            "graph": self.graph,
            "answer": self.text,
            "rationale": self.rationale,
            "uncertainty": self.uncertainty,
            "evidence": [asdict(passage) for passage in self.evidence],
            "retrievals": usage.retrievals,
            "found_nothing": self.found_nothing,
            "searches": [
                {"query": event.query, "passages": [found.passage.id for found in event.passages]} for event in self.searches
            ],
            "decisions": [without_tag(event) for event in self.decisions],
            "usage": asdict(usage) | {"seconds": self.seconds},
        }
        return found | ({"events": [event.as_dict() for event in self.events]} if trace else {})


async def ask_method(
    plan: Plan, opened: Opened, method: Method, question: Question, listeners: Sequence[Listener] = ()
) -> Result:
    """The answer of the plan's only ``method``; ``listeners`` hear of everything as it happens."""
    seen: list[Event] = []
    with contextlib.ExitStack() as stack:
        for listener in (seen.append, *listeners):
            stack.enter_context(listen(listener))
        stack.enter_context(question_scope(plan.execution.seed, question.id))
        started = time.perf_counter()
        with running(f"code that method {method.name!r} uses"):
            answer = await method(question)
        seconds = time.perf_counter() - started
    index, graph = (None if source is None else source.name for source in (opened.retriever, opened.graph))
    doubt = probability_wrong(plan, seen)
    return Result(question, answer, method.name, opened.model.name, index, graph, seconds, tuple(seen), doubt)


def without_tag(event: Event) -> dict[str, Any]:
    return {key: value for key, value in event.as_dict().items() if key != "event"}


def probability_wrong(plan: Plan, seen: Sequence[Event]) -> float | None:
    """P(the answer from memory is wrong) by the calibration's curve. None where there is none, or it says nothing: of an answer
    after a retrieval, without a score of its signal, or with one that stopped as soon as the threshold was decided."""
    if plan.calibration is None:
        return None
    decided = [event for event in seen if isinstance(event, Decided) and event.kind == "retrieve"]
    scores = [event.score for event in decided if event.signal == plan.calibration.signal and event.score is not None]
    stops = plan.methods[0].values.get("schedule") in STOPS_EARLY
    if Usage.of(seen).retrievals or stops or not scores or len(scores) < len(decided):
        return None
    return plan.calibration.probability_wrong(max(scores))
