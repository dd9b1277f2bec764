"""The server's log: one JSON object a line. No question, answer, key or link is in it, unless ``log_content`` asks for it."""

from __future__ import annotations

import datetime
import json
import logging
import re
import sys
import traceback
from typing import Any

from starlette.types import Scope

from gnothi.errors import origin
from gnothi.serving.failures import Refusal
from gnothi.serving.rendered_answer import RenderedAnswer

LOG = logging.getLogger("gnothi.serving")
NOTES = "gnothi.notes"
"""Where a request keeps what its line of the log is to say."""
_STEERING = re.compile(r"[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Letters that JSON lets through, and that steer a terminal or turn the order of what is read."""


class Lines(logging.Handler):
    """Writes them to stderr; those of uvicorn, too."""

    def emit(self, record: logging.LogRecord) -> None:
        fields = record.args if isinstance(record.args, dict) and record.name == LOG.name else {"message": record.getMessage()}
        time = datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": time, "level": record.levelname.lower(), **fields}, ensure_ascii=False)
        sys.stderr.write(_STEERING.sub(lambda letter: f"\\u{ord(letter[0]):04x}", line) + "\n")


def install() -> None:
    """Send what the server has to say to stderr. uvicorn's own line for each request, which holds whole links, stays out."""
    for name, level in ((LOG.name, logging.INFO), ("uvicorn", logging.WARNING)):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [Lines()], False
        log.setLevel(level)


def write(event: str, level: int = logging.INFO, **fields: Any) -> None:
    LOG.log(level, "%s", {"event": event, **fields})


def note(scope: Scope, **fields: Any) -> None:
    """Add to the line of this request."""
    scope.setdefault(NOTES, {}).update(fields)


def note_answer(scope: Scope, rendered: RenderedAnswer, content: bool) -> None:
    full = rendered.full
    note(
        scope,
        id=full["id"],
        setup=full["setup"],
        retrieved=full["retrieved"],
        prompt_tokens=rendered.usage.prompt_tokens,
        generated_tokens=rendered.usage.generated_tokens,
        **({"question": full["question"], "answer": full["answer"]} if content else {}),
    )


def request(scope: Scope, status: int, seconds: float, failure: Exception | None, content: bool) -> None:
    """One line; of an error of ours where it came from, its text only with the ``content``. Checks of health are left out."""
    route = _route(scope)
    if route in ("/healthz", "/readyz", "/metrics") and status == 200:
        return
    fields = {"method": scope["method"], "route": route, "status": status, "ms": round(seconds * 1000, 1)}
    if (account := scope.get("gnothi.account")) is not None:
        fields["key"] = account.name
    if isinstance(failure, Refusal):
        fields["refused"] = failure.code or failure.kind
    elif failure is not None:
        fields |= described(failure, content)
    write("request", logging.ERROR if status >= 500 else logging.INFO, **fields, **scope.get(NOTES, {}))


def _route(scope: Scope) -> str:
    """The path with names in place of what a client chose; a path that leads nowhere may hold anything."""
    path = str(scope["path"]) if "endpoint" in scope else "-"
    for name, value in scope.get("path_params", {}).items():
        path = path.replace(str(value), f"{{{name}}}") if str(value) else path
    return path


def described(failure: BaseException, content: bool) -> dict[str, Any]:
    """An error by type and place."""
    failure = origin(failure)
    frames = traceback.extract_tb(failure.__traceback__)[-4:]
    where = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": type(failure).__name__, "at": where} | ({"why": str(failure)} if content else {})
