"""What Prometheus reads: questions, searches, trust, tokens, the queue, time by stage, and a gate that decides nothing."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from gnothi.calibration.verdicts import GateSummary, degenerate
from gnothi.events import Decided, ModelCall, Searched, Usage
from gnothi.serving.failures import Refusal, busy, refusal
from gnothi.serving.service import Outcome, Service, SetUp

# Room for so many questions at a time and so many that wait. A client that finds none is refused at once.
LONGEST = 60.0
_MEMORY = 0.9


class Room:
    """``seconds`` is what a question takes, the latest ones weighing most. Who comes first is first."""

    def __init__(self, slots: int, waiting: int) -> None:
        self.slots, self.room = slots, waiting
        self.under_way = self.waiting = 0
        self.seconds = 1.0
        self.closing = False
        self._free = asyncio.Semaphore(slots)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[float]:
        """A slot, as soon as one is free; gives the seconds waited. Raises Refusal where there is no room to wait, either."""
        if self.closing:
            raise Refusal(
                503,
                "The server is stopping. Ask again in a moment.",
                "server_error",
                "shutting_down",
                headers={"Retry-After": "5"},
            )
        if self.under_way + self.waiting >= self.slots + self.room:
            wait = min(LONGEST, self.seconds * (1 + self.waiting / self.slots))
            raise busy("Too many questions are waiting. Try again later.", wait, "overloaded")
        came = time.perf_counter()
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.under_way += 1
        began = time.perf_counter()
        try:
            yield began - came
            self.seconds = _MEMORY * self.seconds + (1 - _MEMORY) * (time.perf_counter() - began)
        finally:
            self.under_way -= 1
            self._free.release()


WINDOW = 200
"""The latest questions, which the trusted share and the alarm are about."""
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """An observer of a service. ``registry`` takes further ones."""

    def __init__(self, service: Service, room: Room) -> None:
        self.registry = registry = CollectorRegistry()
        self._questions = Counter(
            "gnothi_questions", "Questions by what came of them.", ("setup", "kind", "status"), registry=registry
        )
        self._refused = Counter("gnothi_refused", "Requests refused before they were asked.", ("code",), registry=registry)
        self._searches = Counter("gnothi_searches", "Queries to an index.", ("setup",), registry=registry)
        self._answers = Counter("gnothi_answers", "Answers by where they are from.", ("setup", "source"), registry=registry)
        self._tokens = Counter("gnothi_tokens", "Tokens of models' calls.", ("setup", "kind"), registry=registry)
        self._seconds = Histogram(
            "gnothi_stage_seconds",
            "Time of a question by stage: waiting for its turn, calls of models, searches, first event, whole.",
            ("stage",),
            buckets=SECONDS,
            registry=registry,
        )
        self._trusted = Gauge(
            "gnothi_trusted_share",
            f"Share of the latest {WINDOW} answers given without a search.",
            ("setup",),
            registry=registry,
        )
        self._alarm = Gauge(
            "gnothi_gate_degenerate", "1 where the gate lately (almost) always or never fires.", ("setup",), registry=registry
        )
        under_way = Gauge("gnothi_questions_under_way", "Questions being answered.", registry=registry)
        under_way.set_function(lambda: room.under_way)
        waiting = Gauge("gnothi_questions_waiting", "Questions waiting for their turn.", registry=registry)
        waiting.set_function(lambda: room.waiting)
        self._lately: dict[str, deque[tuple[bool, tuple[Decided, ...]]]] = {
            name: deque(maxlen=WINDOW) for name in service.setups
        }
        for name in service.setups:
            self._alarm.labels(name).set(0)
        service.observers.append(self)

    def __call__(self, outcome: Outcome) -> None:
        name = outcome.setup.name
        # A client that left, or a question that took too long.
        cancelled = isinstance(outcome.failure, asyncio.CancelledError)
        status = "ok" if outcome.failure is None else "cancelled" if cancelled else str(refusal(outcome.failure).status)
        self._questions.labels(name, outcome.kind, status).inc()
        usage = Usage.of(outcome.events)
        self._searches.labels(name).inc(usage.retrievals)
        self._tokens.labels(name, "prompt").inc(usage.prompt_tokens)
        self._tokens.labels(name, "generated").inc(usage.generated_tokens)
        self.observe("whole", outcome.seconds)
        for event in outcome.events:
            if isinstance(event, ModelCall):
                self.observe("model", event.seconds)
            elif isinstance(event, Searched):
                self.observe("search", event.seconds)
        if outcome.answered is not None and outcome.kind == "ask":
            self._answers.labels(name, "search" if usage.retrievals else "memory").inc()
            decided = tuple(event for event in outcome.events if isinstance(event, Decided) and event.kind == "retrieve")
            lately = self._lately[name]
            lately.append((not usage.retrievals, decided))
            self._trusted.labels(name).set(sum(trusted for trusted, _ in lately) / len(lately))
            self._alarm.labels(name).set(self.alarm(outcome.setup) is not None)

    def refused(self, code: str) -> None:
        self._refused.labels(code).inc()

    def observe(self, stage: str, seconds: float) -> None:
        self._seconds.labels(stage).observe(seconds)

    def alarm(self, setup: SetUp) -> str | None:
        """What to do about a gate that lately always or never fired; None where it decides."""
        decided = [event for _, some in self._lately[setup.name] for event in some if event.signal]
        return degenerate(_summary(decided), setup.plan.methods[0].name) if decided else None

    def text(self) -> tuple[bytes, str]:
        """All of it, and its media type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST


def _summary(decided: Sequence[Decided]) -> GateSummary:
    scores = [event.score for event in decided if event.score is not None]
    return GateSummary(
        signal=", ".join(sorted({event.signal for event in decided})),
        truth=None,
        metric=None,
        n=len(scores),
        wrong=0,
        auroc=None,
        interval=None,
        ece=None,
        decisions=len(decided),
        firing_rate=sum(event.verdict == "retrieve" for event in decided) / len(decided),
        thresholds=sorted({event.threshold for event in decided if event.threshold is not None}),
        range=[min(scores), max(scores)] if scores else None,
    )
