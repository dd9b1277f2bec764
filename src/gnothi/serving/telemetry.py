"""OpenTelemetry spans of every question, by the GenAI conventions (semantic-conventions-genai 0.1.0, in development):
``invoke_agent`` over ``chat`` and ``retrieval``, decisions as events. Contents only where asked for.

OpenTelemetry's own variables say where spans go, ``OTEL_EXPORTER_OTLP_ENDPOINT`` first of all.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gnothi.errors import MissingDependency, origin
from gnothi.events import Decided, Event, ModelCall, Searched, Usage
from gnothi.methods.planned import name_of
from gnothi.models import is_remote
from gnothi.serving.service import Outcome, Service, SetUp

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

BILLION = 1_000_000_000
_CHAT = ("generate", "sample")
_AGENT = {"ask": "invoke_agent", "helper": "invoke_agent", "know": "invoke_agent", "search": "retrieval"}


def start(service: Service, content: bool) -> TracerProvider:
    """Trace every question from now on; shut the result down at the end. Raises MissingDependency."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise MissingDependency(str(error.name), "telemetry", "the setting server.telemetry") from error
    provider = TracerProvider(resource=Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "gnothi")}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("gnothi")
    service.watching.append(lambda kind, setup, text: Spans(tracer, kind, setup, text if content else None))
    return provider


class Spans:
    """Those of one question, as a listener; ``text`` is None where contents stay out. A call is recorded when it is over, so
    its span is given the time at which it began."""

    def __init__(self, tracer: Tracer, kind: str, setup: SetUp, text: str | None) -> None:
        from opentelemetry import trace

        self._tracer, self._setup, self._content = tracer, setup, text is not None
        operation = _AGENT[kind]
        self._span = tracer.start_span(
            f"{operation} {setup.name}",
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": "gnothi",
                "gen_ai.agent.name": setup.id,
                "gen_ai.request.model": setup.id,
                "gnothi.method": setup.plan.methods[0].name,
                "gnothi.kind": kind,
            },
        )
        if text is not None:
            self._span.set_attribute("gen_ai.input.messages", _messages("user", text))
        self._context = trace.set_span_in_context(self._span)

    def __call__(self, event: Event) -> None:
        if isinstance(event, ModelCall):
            self._called(event)
        elif isinstance(event, Searched):
            self._searched(event)
        elif isinstance(event, Decided):
            self._decided(event)

    def end(self, outcome: Outcome) -> None:
        from opentelemetry.trace import StatusCode

        usage = Usage.of(outcome.events)
        self._span.set_attribute("gen_ai.usage.input_tokens", usage.prompt_tokens)
        self._span.set_attribute("gen_ai.usage.output_tokens", usage.generated_tokens)
        self._span.set_attribute("gnothi.retrieved", usage.retrievals > 0)
        if outcome.answered is not None:
            result = outcome.answered.result
            self._span.set_attribute("gen_ai.response.id", outcome.answered.id)
            if result.uncertainty is not None:
                self._span.set_attribute("gnothi.uncertainty", result.uncertainty)
            if self._content:
                self._span.set_attribute("gen_ai.output.messages", _messages("assistant", result.text))
        if outcome.failure is not None:
            self._span.set_attribute("error.type", type(origin(outcome.failure)).__name__)
            self._span.set_status(StatusCode.ERROR)
        self._span.end()

    def _called(self, event: ModelCall) -> None:
        operation = "chat" if event.operation in _CHAT else event.operation
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": "openai" if is_remote(event.model) else "gnothi",
            "gen_ai.request.model": event.model.rpartition("/")[2],
            "gen_ai.usage.input_tokens": event.prompt_tokens,
            "gen_ai.usage.output_tokens": event.generated_tokens,
            "gnothi.task": event.task,
            "gnothi.cached": event.cached,
        }
        if self._content:
            attributes["gen_ai.output.messages"] = json.dumps([_message("assistant", text) for text in event.texts])
        self._child(operation, attributes["gen_ai.request.model"], event.seconds, attributes)

    def _searched(self, event: Searched) -> None:
        index = name_of(self._setup.plan.sources.index).rpartition("/")[2]
        attributes = {"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": index, "gnothi.found": len(event.passages)}
        if self._content:
            documents = [{"id": one.passage.id, "score": one.score, "content": one.passage.text} for one in event.passages]
            attributes |= {"gen_ai.retrieval.query.text": event.query, "gen_ai.retrieval.documents": json.dumps(documents)}
        self._child("retrieval", index, event.seconds, attributes)

    def _decided(self, event: Decided) -> None:
        attributes = {"kind": event.kind, "signal": event.signal, "verdict": event.verdict}
        numbers = {"score": event.score, "threshold": event.threshold, "samples": event.samples}
        attributes |= {key: one for key, one in numbers.items() if one is not None}  # type: ignore[misc]
        attributes |= {"subject": event.subject} if self._content else {}
        self._span.add_event("gnothi.decided", {f"gnothi.{key}": one for key, one in attributes.items()})

    def _child(self, operation: str, name: str, seconds: float, attributes: dict[str, Any]) -> None:
        from opentelemetry.trace import SpanKind

        now = time.time_ns()
        span = self._tracer.start_span(
            f"{operation} {name}", self._context, SpanKind.CLIENT, attributes, start_time=now - int(seconds * BILLION)
        )
        span.end(now)


class Carried:
    """The spans of a request are children of the client's, where it sends ``traceparent``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from opentelemetry import context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        token = context.attach(TraceContextTextMapPropagator().extract(dict(Headers(scope=scope).items())))
        try:
            await self._app(scope, receive, send)
        finally:
            context.detach(token)


def _messages(role: str, text: str) -> str:
    return json.dumps([_message(role, text)])


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}
