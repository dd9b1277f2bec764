"""Spans, decoded by a real receiver of OTLP over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.command_line import covered_fact
from tests.patience import PATIENCE
from tests.serving.served import Slow, served

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Every span that was sent, in order of its end."""
    spans: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
            spans.extend(span for one in message.resource_spans for scope in one.scope_spans for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", f"{PATIENCE:g}")
    yield spans
    server.shutdown()
    server.server_close()
    thread.join()


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


async def test_spans_have_the_right_parents_and_no_content(received: list[Any]) -> None:
    _, true, question = covered_fact()
    async with served(methods=("seakr",), telemetry=True) as server:
        server.http.headers["traceparent"] = f"00-{TRACE}-{PARENT}-01"
        await server.chat(question)
        await server.chat(question, stream=True)
    agents = [span for span in received if span.name == "invoke_agent seakr"]
    assert len(agents) == 2
    for agent in agents:
        assert (agent.trace_id.hex(), agent.parent_span_id.hex()) == (TRACE, PARENT)
        children = [span for span in received if span.parent_span_id == agent.span_id]
        assert {span.name for span in children} == {"chat lab", "retrieval lab"}
        for span in children:
            assert span.trace_id == agent.trace_id
            assert (
                agent.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano <= agent.end_time_unix_nano
            )
        (decided,) = [event for event in agent.events if event.name == "gnothi.decided"]
        assert attributes(decided)["gnothi.verdict"] == "retrieve"
        told = attributes(agent)
        assert told["gen_ai.usage.input_tokens"] == sum(
            attributes(span)["gen_ai.usage.input_tokens"] for span in children if span.name == "chat lab"
        )
        assert told["gnothi.retrieved"] is True
    sent = "".join(map(str, received))
    assert question not in sent
    assert true not in sent


async def test_content_where_asked_for(received: list[Any]) -> None:
    _, true, question = covered_fact()
    async with served(methods=("seakr",), telemetry=True, telemetry_content=True) as server:
        await server.chat(question)
    (agent,) = [span for span in received if span.name == "invoke_agent seakr"]
    told = attributes(agent)
    assert question in told["gen_ai.input.messages"]
    assert true in told["gen_ai.output.messages"]
    (search,) = [attributes(span) for span in received if span.name == "retrieval lab"]
    assert search.keys() >= {"gen_ai.retrieval.query.text", "gen_ai.retrieval.documents", "gen_ai.data_source.id"}


async def test_a_failure_is_one_by_type(received: list[Any]) -> None:
    model = Slow(RuntimeError("the text of it"))
    model.go.set()
    async with served(model, ("direct",), telemetry=True) as server:
        await server.chat("Who?", "direct")
    (agent,) = [span for span in received if span.name == "invoke_agent direct"]
    assert attributes(agent)["error.type"] == "RuntimeError"
    assert agent.status.code == 2
    assert "the text of it" not in str(agent)
