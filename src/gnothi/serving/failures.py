"""What goes wrong, as OpenAI's clients expect it: a status and an error object. Paths, prompts and traces are never sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from gnothi.errors import BudgetSpent, InvalidInput, InvalidSetting, PromptTooLong, ResourceUnavailable, UnknownName
from gnothi.naming import in_python

INVALID = "invalid_request_error"
CLIENT_CLOSED = 499
"""What a log says of a client that left; no client sees it."""


class Refusal(Exception):
    """An answer with an HTTP status of 400 or more."""

    def __init__(
        self,
        status: int,
        message: str,
        kind: str = INVALID,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.kind, self.code, self.param = status, message, kind, code, param
        self.headers = dict(headers or {})

    def as_dict(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}

    def response(self) -> JSONResponse:
        return JSONResponse(self.as_dict(), self.status, self.headers)


class ClientLeft(Exception):
    """The client has gone: nobody reads an answer any more."""


def busy(message: str, wait: float, code: str = "rate_limit_exceeded") -> Refusal:
    """Clients try again by themselves after ``wait`` seconds."""
    return Refusal(429, message, "rate_limit_error", code, headers={"Retry-After": str(max(1, round(wait)))})


def refusal(error: BaseException) -> Refusal:
    """Any error. What is not the client's fault is sent without its text, which may name folders, servers or contents."""
    match error:
        case Refusal():
            return error
        case UnknownName():
            return Refusal(404, in_python(error.message), code="model_not_found", param="model")
        case PromptTooLong():
            return Refusal(
                400, "The question with its passages is too long for the model. Shorten it.", code="context_length_exceeded"
            )
        case InvalidInput() | InvalidSetting():
            return Refusal(400, in_python(error.message))
        case BudgetSpent():
            return Refusal(429, "The budget of this server or key is spent.", "insufficient_quota", "insufficient_quota")
        case TimeoutError():
            return Refusal(504, "The question took longer than this server allows.", "timeout_error", "timeout")
        case asyncio.CancelledError():
            return Refusal(
                503, "The server is stopping. Ask again.", "server_error", "shutting_down", headers={"Retry-After": "5"}
            )
        case ResourceUnavailable():
            return Refusal(503, "The model or the index cannot be reached at present.", "server_error", "unavailable")
        case _:
            return Refusal(500, "The question could not be answered. The server's log says why.", "server_error", "failed")
