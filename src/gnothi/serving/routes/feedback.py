"""``POST /v1/feedback``: an answer was right, or wrong."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from gnothi.serving.bodies import json_object
from gnothi.serving.context import Context
from gnothi.serving.failures import Refusal


def routes(context: Context) -> Sequence[BaseRoute]:
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

    return [Route("/v1/feedback", feedback, methods=["POST"])]
