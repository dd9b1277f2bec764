"""Who may come in: the host that is asked for, the page that asks, the key. And one line of the log for each request."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gnothi.serving import logs
from gnothi.serving.context import Context
from gnothi.serving.failures import CLIENT_CLOSED, ClientLeft, Refusal, refusal
from gnothi.serving.keys import Account

OPEN = ("/healthz", "/readyz", "/passages/", "/runs/", "/static/")
"""What needs no key: it tells nothing, or its links are signed. So does the page itself (``/``), whose script sends the key."""
_HEADERS = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}


class Access:
    """The outermost part of the server. Whatever goes wrong inside ends here, so that nothing of it is sent or logged by
    others."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app, self._context = app, context
        self._anyone = Account()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        failure: Exception | None = None
        try:
            self._admit(scope)
            await self._app(scope, receive, sending)
        except (ClientLeft, ClientDisconnect):  # after the body, or within it
            status = CLIENT_CLOSED
        except Exception as error:  # noqa: BLE001 - see above
            failure = error
            if not status:
                refused = refusal(error)
                self._context.metrics.refused(refused.code or refused.kind)
                await refused.response()(scope, receive, sending)
        finally:
            logs.request(scope, status, time.perf_counter() - began, failure, self._context.settings.log_content)

    def _admit(self, scope: Scope) -> None:
        """Raises Refusal."""
        headers, path = Headers(scope=scope), scope["path"]
        self._check_host(headers)
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            self._check_origin(headers)
        keys = self._context.keys
        if keys is None:
            scope["gnothi.account"] = self._anyone
        elif path != "/" and not path.startswith(OPEN):
            scope["gnothi.account"] = keys.account(headers.get("authorization"))

    def _check_host(self, headers: Headers) -> None:
        """A page elsewhere may give its own name this machine's address: nobody calls a private server by such a name."""
        settings = self._context.settings
        if self._context.keys is not None or not settings.loopback:
            return
        known = {"localhost", "127.0.0.1", "::1", settings.host, _parts(settings.public_url or "")[1]} - {""}
        if _parts(f"//{headers.get('host', '')}")[1] not in known:
            raise Refusal(403, "This server answers under the names of this machine alone.", "permission_error", "host")

    def _check_origin(self, headers: Headers) -> None:
        origin, settings = headers.get("origin"), self._context.settings
        if origin is None or origin in settings.origins or "*" in settings.origins:
            return
        own = {headers.get("host", ""), _parts(settings.public_url or "")[0]} - {""}
        if _parts(origin)[0] not in own:
            raise Refusal(
                403, "Pages of this origin may not ask here: see the setting server.origins.", "permission_error", "origin"
            )


def _parts(url: str) -> tuple[str, str]:
    """Host with port, and host alone; empty where there is none to be read."""
    try:
        parts = urlsplit(url)
        return parts.netloc, parts.hostname or ""
    except ValueError:
        return "", ""
