"""``POST /v1/chat/completions``, whole and streamed."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from gnothi.events import Decided, Listener, Searched, Usage
from gnothi.serving import logs
from gnothi.serving.answering import Work, streamed, whole
from gnothi.serving.context import Context, json_object
from gnothi.serving.conversation import AnswerRequest, chat_request
from gnothi.serving.failures import Refusal
from gnothi.serving.rendered_answer import EventLines, RenderedAnswer, render
from gnothi.serving.service import Answered, SetUp

END = "data: [DONE]\n\n"
Show = Callable[[Answered], RenderedAnswer]


def routes(context: Context) -> Sequence[BaseRoute]:
    async def chat(request: Request) -> Response:
        body = await json_object(request, context.settings.max_body)
        parsed = await asyncio.to_thread(chat_request, body, context.settings.max_question)
        setup = context.service.find(parsed.model)
        name = f"chatcmpl-{uuid.uuid4().hex}"
        work, show = question(context, setup, parsed), showing(context, request)
        if parsed.stream:
            return await streamed(context, request, work, _Chunks(name, setup, show, parsed.usage))
        rendered = show(await whole(context, request, work))
        return JSONResponse(_completion(name, setup, rendered))

    return [Route("/v1/chat/completions", chat, methods=["POST"])]


def question(context: Context, setup: SetUp, parsed: AnswerRequest) -> Work[Answered]:
    """What is to be done about it."""
    conversation = parsed.conversation

    def work(listeners: Sequence[Listener]) -> Awaitable[Answered]:
        if conversation.helper:
            return context.service.help(setup, conversation.question, listeners=listeners)
        return context.service.ask(
            setup,
            conversation.question,
            conversation.history,
            conversation.attached,
            filters=parsed.filters,
            listeners=listeners,
        )

    return work


def showing(context: Context, request: Request) -> Show:
    """How an answer is shown to this client; it is noted for the log, too."""
    base = context.base(request)

    def show(answered: Answered) -> RenderedAnswer:
        rendered = render(answered, lambda passage: base + context.links.passage(passage))
        logs.note_answer(request.scope, rendered, context.settings.log_content)
        return rendered

    return show


def _completion(name: str, setup: SetUp, rendered: RenderedAnswer) -> dict[str, Any]:
    message = {
        "role": "assistant",
        "content": rendered.text,
        "refusal": None,
        "annotations": _annotations(rendered),
        "reasoning": rendered.reasoning,
        "reasoning_content": rendered.reasoning,
    }
    return {
        "id": name,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": setup.id,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": _usage(rendered.usage),
        **_extras(rendered),
    }


def _annotations(rendered: RenderedAnswer) -> list[dict[str, Any]]:
    return [
        {"type": "url_citation", "url_citation": {key: one for key, one in mark.as_dict().items() if key != "type"}}
        for mark in rendered.marks
    ]


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.generated_tokens,
        "total_tokens": usage.prompt_tokens + usage.generated_tokens,
    }


def _extras(rendered: RenderedAnswer) -> dict[str, Any]:
    return {
        "citations": [one["url"] for one in rendered.sources],
        "search_results": rendered.search_results,
        "gnothi": rendered.full,
    }


class _Chunks:
    """The stream of one answer. What is ours stands in keys of its own on standard chunks: other types of chunk make OpenAI's
    clients fail. ``event`` is what Open WebUI shows as a status."""

    def __init__(self, name: str, setup: SetUp, show: Show, usage: bool) -> None:
        self._common = {"id": name, "object": "chat.completion.chunk", "created": int(time.time()), "model": setup.id}
        self._show, self._usage = show, usage

    def begin(self) -> Iterator[str]:
        yield self._chunk({"role": "assistant", "content": ""})

    def event(self, narrated: EventLines) -> Iterator[str]:
        more: dict[str, Any] = {"gnothi": narrated.as_dict()}
        if isinstance(narrated.event, Searched | Decided) and narrated.lines:
            more["event"] = {"type": "status", "data": {"description": narrated.text.partition("\n")[0], "done": False}}
        yield self._chunk({"reasoning": narrated.text, "reasoning_content": narrated.text}, **more)

    def end(self, answered: Answered) -> Iterator[str]:
        rendered = self._show(answered)
        yield self._chunk({"content": rendered.text})
        if rendered.marks:
            yield self._chunk({"annotations": _annotations(rendered)})
        status = {"event": {"type": "status", "data": {"description": "Done", "done": True}}}
        yield self._chunk({}, "stop", **_extras(rendered), **status)
        if self._usage:
            yield _data({**self._common, "choices": [], "usage": _usage(rendered.usage)})
        yield END

    def failed(self, failure: Refusal) -> Iterator[str]:
        yield _data(failure.as_dict())
        yield END

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data({**self._common, "choices": [choice], **more})


def _data(content: Any) -> str:
    return f"data: {json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(',', ':'))}\n\n"
