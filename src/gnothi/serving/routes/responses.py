"""``POST /v1/responses``, whole and streamed: searches are ``file_search_call`` items, decisions a reasoning summary."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from gnothi.events import Searched, Usage
from gnothi.runs.rows import jsonable
from gnothi.serving.answering import streamed, whole
from gnothi.serving.context import Context, json_object
from gnothi.serving.conversation import response_request
from gnothi.serving.failures import Refusal
from gnothi.serving.rendered_answer import EventLines, RenderedAnswer
from gnothi.serving.routes.chat import Show, question, showing
from gnothi.serving.service import Answered, SetUp

Item = dict[str, Any]


def routes(context: Context) -> Sequence[BaseRoute]:
    async def respond(request: Request) -> Response:
        body = await json_object(request, context.settings.max_body)
        parsed = await asyncio.to_thread(response_request, body, context.settings.max_question)
        setup = context.service.find(parsed.model)
        work, show, frame = question(context, setup, parsed), showing(context, request), _Frame(setup)
        if parsed.stream:
            return await streamed(context, request, work, _Events(frame, show))
        answered = await whole(context, request, work)
        rendered = show(answered)
        searches = [_search(event) for event in answered.result.searches]
        return JSONResponse(frame.completed([_reasoning(rendered.reasoning), *searches, _message(rendered)], rendered))

    return [Route("/v1/responses", respond, methods=["POST"])]


class _Frame:
    """The response around its items."""

    def __init__(self, setup: SetUp) -> None:
        self._common = {
            "id": f"resp_{uuid.uuid4().hex}",
            "object": "response",
            "created_at": int(time.time()),
            "model": setup.id,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "instructions": None,
            "metadata": {},
            "temperature": None,
            "top_p": None,
            "incomplete_details": None,
            "previous_response_id": None,
            "store": False,
            "text": {"format": {"type": "text"}},
        }

    def begun(self) -> Item:
        return {**self._common, "status": "in_progress", "error": None, "output": [], "usage": None}

    def completed(self, output: Sequence[Item], rendered: RenderedAnswer) -> Item:
        return {
            **self._common,
            "status": "completed",
            "error": None,
            "output": list(output),
            "usage": _usage(rendered.usage),
            "gnothi": rendered.full,
        }

    def failed(self, failure: Refusal) -> Item:
        error = {"code": "server_error", "message": failure.message}
        return {**self._common, "status": "failed", "error": error, "output": [], "usage": None}


class _Events:
    """The stream of one answer: standard events alone, with ``gnothi`` beside what the standard has."""

    def __init__(self, frame: _Frame, show: Show) -> None:
        self._frame, self._show = frame, show
        self._sent = 0
        self._thoughts, self._output = "", [_reasoning("")]

    def begin(self) -> Iterator[str]:
        yield self._event("response.created", response=self._frame.begun())
        yield self._event("response.in_progress", response=self._frame.begun())
        (thinking,) = self._output
        yield self._event("response.output_item.added", output_index=0, item=thinking)
        part = {"type": "summary_text", "text": ""}
        yield self._event("response.reasoning_summary_part.added", **self._of_summary, part=part)

    def event(self, narrated: EventLines) -> Iterator[str]:
        self._thoughts += narrated.text
        yield self._event(
            "response.reasoning_summary_text.delta", **self._of_summary, delta=narrated.text, gnothi=narrated.as_dict()
        )
        if isinstance(narrated.event, Searched):
            item, place = _search(narrated.event), len(self._output)
            self._output.append(item)
            of = {"output_index": place, "item_id": item["id"]}
            begun = {**item, "status": "in_progress", "results": None}
            yield self._event("response.output_item.added", output_index=place, item=begun)
            for step in ("in_progress", "searching", "completed"):
                yield self._event(f"response.file_search_call.{step}", **of)
            yield self._event("response.output_item.done", output_index=place, item=item)

    def end(self, answered: Answered) -> Iterator[str]:
        rendered = self._show(answered)
        thoughts = {"type": "summary_text", "text": self._thoughts}
        yield self._event("response.reasoning_summary_text.done", **self._of_summary, text=self._thoughts)
        yield self._event("response.reasoning_summary_part.done", **self._of_summary, part=thoughts)
        self._output[0] = {**self._output[0], "summary": [thoughts] if self._thoughts else []}
        yield self._event("response.output_item.done", output_index=0, item=self._output[0])
        yield from self._message_events(rendered)
        yield self._event("response.completed", response=self._frame.completed(self._output, rendered))

    def failed(self, failure: Refusal) -> Iterator[str]:
        yield self._event("response.failed", response=self._frame.failed(failure))

    def _message_events(self, rendered: RenderedAnswer) -> Iterator[str]:
        item, place = _message(rendered), len(self._output)
        self._output.append(item)
        (text,) = item["content"]
        of = {"output_index": place, "item_id": item["id"], "content_index": 0}
        empty = {**item, "status": "in_progress", "content": []}
        yield self._event("response.output_item.added", output_index=place, item=empty)
        yield self._event("response.content_part.added", **of, part={**text, "text": "", "annotations": []})
        yield self._event("response.output_text.delta", **of, delta=rendered.text, logprobs=[])
        for number, one in enumerate(text["annotations"]):
            yield self._event("response.output_text.annotation.added", **of, annotation_index=number, annotation=one)
        yield self._event("response.output_text.done", **of, text=rendered.text, logprobs=[])
        yield self._event("response.content_part.done", **of, part=text)
        yield self._event("response.output_item.done", output_index=place, item=item)

    @property
    def _of_summary(self) -> dict[str, Any]:
        return {"item_id": self._output[0]["id"], "output_index": 0, "summary_index": 0}

    def _event(self, kind: str, **fields: Any) -> str:
        content = {"type": kind, "sequence_number": self._sent, **fields}
        self._sent += 1
        data = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return f"event: {kind}\ndata: {data}\n\n"


def _reasoning(text: str) -> Item:
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"id": f"rs_{uuid.uuid4().hex}", "type": "reasoning", "summary": summary}


def _search(event: Searched) -> Item:
    results = [
        {
            "file_id": one.passage.id,
            "filename": one.passage.title or one.passage.id,
            "score": one.score,
            "text": one.passage.text,
            "attributes": {},
        }
        for one in event.passages
    ]
    call = {"id": f"fs_{uuid.uuid4().hex}", "type": "file_search_call", "status": "completed"}
    return {**call, "queries": [event.query], "results": jsonable(results)}


def _message(rendered: RenderedAnswer) -> Item:
    annotations = [mark.as_dict() for mark in rendered.marks]
    text = {"type": "output_text", "text": rendered.text, "annotations": annotations, "logprobs": []}
    common = {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "status": "completed", "role": "assistant"}
    return {**common, "content": [text]}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.generated_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.generated_tokens,
    }
