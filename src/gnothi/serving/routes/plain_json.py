"""``POST /v1/search``, ``/v1/know`` and ``/v1/feedback``, as plain JSON: what the index holds, what the model knows, and
whether an answer was right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from gnothi.events import Event, UnknownKeys
from gnothi.retrieval.filtering import unknown_keys
from gnothi.runs.rows import jsonable
from gnothi.serving.answering import whole
from gnothi.serving.context import Context, json_object
from gnothi.serving.conversation import filters, question
from gnothi.serving.failures import Refusal
from gnothi.serving.service import SetUp

MOST = 100


def routes(context: Context) -> Sequence[BaseRoute]:
    longest = context.settings.max_question

    def setup_of(body: Mapping[str, Any], fits: Callable[[SetUp], bool]) -> SetUp:
        """Where none is named, the first that can do it."""
        if body.get("model") is not None:
            return context.service.find(body["model"])
        every = list(context.service.setups.values())
        return next(filter(fits, every), every[0])

    async def search(request: Request) -> Response:
        body = await json_object(request, context.settings.max_body)
        setup, query, k = setup_of(body, _has_index), question(body.get("query"), "query", longest), body.get("k", 5)
        if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MOST:
            raise Refusal(400, f"k: got {k!r:.40}, expected a whole number from 1 to {MOST}.", param="k")
        narrowing = filters(body)
        unknown: list[UnknownKeys] = []

        def note_unknown(event: Event) -> None:
            if isinstance(event, UnknownKeys):
                unknown.append(event)

        scored = await whole(
            context,
            request,
            lambda listening: context.service.search(setup, query, k, filters=narrowing, listeners=(*listening, note_unknown)),
        )
        base = context.base(request)
        passages = [
            asdict(one.passage) | {"score": one.score, "url": base + context.links.passage(one.passage)} for one in scored
        ]
        warnings = [f"filter: {unknown_keys(one)}" for one in unknown]
        content = {"object": "list", "model": setup.id, "query": query, "data": passages}
        return JSONResponse(jsonable(content | ({"warnings": warnings} if warnings else {})))

    async def know(request: Request) -> Response:
        body = await json_object(request, context.settings.max_body)
        setup, text = setup_of(body, _has_gate), question(body.get("question"), "question", longest)
        knowledge = await whole(context, request, lambda listening: context.service.know(setup, text, listeners=listening))
        return JSONResponse(jsonable({"object": "knowledge", "model": setup.id} | knowledge.as_dict()))

    async def feedback(request: Request) -> Response:
        body = await json_object(request, context.settings.max_body)
        if context.feedback is None:
            raise Refusal(404, "This server takes no feedback: it was started without the setting server.feedback.")
        answer_id, right = body.get("id"), body.get("right")
        if not isinstance(answer_id, str) or not answer_id:
            raise Refusal(400, "id: expected the id of an answer (gnothi.id).", param="id")
        if not isinstance(right, bool):
            raise Refusal(400, "right: expected true or false.", param="right")
        judged = await context.feedback.judge(answer_id, right)
        return JSONResponse({"object": "feedback", "id": judged.answer_id, "model": judged.setup, "right": judged.right})

    parts = {"/v1/search": search, "/v1/know": know, "/v1/feedback": feedback}
    return [Route(path, part, methods=["POST"]) for path, part in parts.items()]


def _has_index(setup: SetUp) -> bool:
    return setup.opened.retriever is not None


def _has_gate(setup: SetUp) -> bool:
    gate = setup.plan.methods[0].gate
    return gate is not None and gate.signal is not None
