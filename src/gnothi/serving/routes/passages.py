"""``GET /passages/{id}``: a passage as a page, by a signed link."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gnothi.retrieval.terms import as_text
from gnothi.serving.context import Context
from gnothi.serving.html import page


def routes(context: Context) -> Sequence[BaseRoute]:
    async def passage(request: Request) -> Response:
        if not signed(context, request):
            return page("No such link", "This link is not valid, or not any more. Ask again for a new one.", 403)
        found = context.links.find(request.path_params["name"])
        if found is None:
            return page("Forgotten", "The server does not remember this passage any more. Ask again for a new link.", 404)
        known = [f"{key}: {as_text(one)}" for key, one in found.metadata.items()]
        return page(found.title or found.id, "\n".join([found.text, *([""] if known else []), *known]))

    return [Route("/passages/{name}", passage)]


def signed(context: Context, request: Request) -> bool:
    """Whether the request's link is ours and not too old."""
    given = request.query_params
    return context.links.valid(request.url.path, given.get("expires", ""), given.get("signature", ""))
