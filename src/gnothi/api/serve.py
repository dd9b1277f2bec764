"""``gnothi.serve``: methods that answer questions over HTTP, as ``gnothi serve`` does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gnothi import methods as known
from gnothi.api import given
from gnothi.config import Given, Settings
from gnothi.errors import MissingDependency
from gnothi.models import LAB
from gnothi.roles import SERVED
from gnothi.session.default_method import default_method
from gnothi.session.watch import Watch

if TYPE_CHECKING:
    from gnothi.calibration.file import Calibration
    from gnothi.models.remote.budget import Budget
    from gnothi.protocols import KnowledgeGraph, LanguageModel, Method
    from gnothi.retrieval.foreign import Searches
    from gnothi.serving.service import Service


def serve(
    methods: str | type[Method] | Callable[..., Any] | Sequence[str | type[Method] | Callable[..., Any]] | None = None,
    model: str | LanguageModel | Callable[[str], Any] | None = None,
    index: str | os.PathLike[str] | Searches | Callable[[str, int], Any] | None = None,
    graph: str | os.PathLike[str] | KnowledgeGraph | None = None,
    *,
    calibration: str | os.PathLike[str] | Calibration | None = None,
    ignore_mismatch: bool = False,
    settings: Mapping[str, Any] | Settings | None = None,
    config: str | os.PathLike[str] | None = None,
    budget: Budget | None = None,
    watch: Watch | None = None,
    stdio: bool = False,
    **server: Any,
) -> None:
    """Answer questions over HTTP, as OpenAI's API does, until a signal ends it (Ctrl-C, SIGTERM).

    ``methods``: each is offered as the model ``gnothi/NAME``; None: seakr, rag and direct, first the one that ``gnothi.open``
    would take. ``server``: settings of the server (``docs/reference/http.md``), such as ``host``, ``port`` and ``keys``.
    ``config``: a TOML file, which may hold several set-ups. ``watch`` is told of the address and of what may mislead.
    ``stdio``: speak MCP over stdin and stdout in place of HTTP, until stdin ends; ``methods`` None is then as for
    ``gnothi.open``. The rest as for ``gnothi.evaluate``.

    Raises as ``gnothi.open``, UnknownName or InvalidSetting for settings of the server, ResourceUnavailable where the address
    cannot be had.
    """
    args = dict(locals())
    given.refuse_running_loop("serve()", "asyncio.to_thread(gnothi.serve, ...)")
    needed, extra = (("mcp", "pydantic"), "mcp") if stdio else (("starlette", "uvicorn", "prometheus_client"), "serving")
    if missing := [name for name in needed if find_spec(name) is None]:
        raise MissingDependency(missing[0], extra, "the server")
    from gnothi.serving.setups import SECTION, SETUPS, plans, server_settings

    watch = watch or Watch()
    of_flags = {f"{SECTION}.{key}": Given(value, f"<--{key}>") for key, value in server.items()}
    args["settings"] = Settings({**given.settings_of(args).given, **of_flags})
    named = [methods] if isinstance(methods, str) or callable(methods) else methods
    names = None if named is None else [known.spec(one).name for one in named]
    request = given.request_of(args, names)
    of_server = server_settings(request.settings)
    if not stdio:
        of_server.check_exposure()
    if named is None and not stdio and not request.settings.section(SETUPS):
        suits, _ = default_method(request.model or LAB, request.settings, request.calibration)
        request = replace(request, methods=tuple(dict.fromkeys((suits, *SERVED))))
    setups = plans(request)
    for line in dict.fromkeys(line for plan in setups.values() for line in plan.notes):
        watch.info(line)

    def warn(service: Service) -> None:
        for warning in dict.fromkeys(warning for one in service.setups.values() for warning in one.warnings):
            watch.warn(warning)

    def ready(service: Service, address: str) -> None:
        warn(service)
        watch.info(f"{address}/v1 answers as {', '.join(one.id for one in service.setups.values())}. Ctrl-C ends it.")

    watch.opening("models")
    if stdio:
        from gnothi.serving.tools import serve_stdio

        asyncio.run(serve_stdio(setups, warn))
    else:
        from gnothi.serving.server import serve as run

        asyncio.run(run(setups, of_server, ready))
