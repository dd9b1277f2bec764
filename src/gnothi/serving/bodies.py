"""The JSON of a request, up to a size."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from gnothi.serving.failures import Refusal

DRAINED = 16
"""So many times the limit is read and dropped, so that a client that is still sending hears why."""


async def json_object(request: Request, longest: int) -> dict[str, Any]:
    """Raises Refusal: 413 for a body that is too long, 400 for one that is no JSON object."""
    declared = request.headers.get("content-length", "")
    digits = declared.isascii() and declared.isdigit()
    if digits and (len(declared) > 20 or int(declared) > DRAINED * longest):
        raise _too_long(longest)
    pieces, read = [], 0
    async for piece in request.stream():
        read += len(piece)
        if read <= longest:
            pieces.append(piece)
        elif read > DRAINED * longest:
            break
    if read > longest:
        raise _too_long(longest)
    try:
        found = json.loads(b"".join(pieces))
    except (ValueError, RecursionError):
        raise Refusal(400, "The body is not valid JSON.", code="invalid_json") from None
    if not isinstance(found, dict):
        raise Refusal(400, "The body: expected a JSON object.", code="invalid_json")
    return found


def _too_long(longest: int) -> Refusal:
    return Refusal(413, f"The body is too long: expected at most {longest:,} bytes.", code="request_too_large")
