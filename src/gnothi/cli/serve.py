"""``gnothi serve``: questions over HTTP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnothi.cli import options
from gnothi.cli.saying import say
from gnothi.config import Given, Settings
from gnothi.errors import MissingDependency

if TYPE_CHECKING:
    from gnothi.serving.service import Service

METHODS = ("seakr", "rag", "direct")


@click.command()
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME[,NAME...]",
    help=f"What is offered, each as the model gnothi/NAME; see `gnothi list methods`. [default: {','.join(METHODS)}, first the "
    "one that `gnothi ask` would take]",
)
@options.sources(options.model, options.index, options.graph)
@options.calibration
@click.option("--host", metavar="ADDRESS", help="Address to listen on. [default: 127.0.0.1, this machine alone]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on. [default: 8000]")
@options.file("--keys", "Require an API key from FILE, which `gnothi keys` writes.")
@click.option(
    "--runs", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER", help="Show the reports of its runs."
)
def serve(
    methods: tuple[str, ...],
    sources: options.Sources,
    thresholds: options.Thresholds,
    host: str | None,
    port: int | None,
    keys: Path | None,
    runs: Path | None,
) -> None:
    """Answer questions over HTTP, as OpenAI's API does.

    \b
    gnothi serve
    gnothi serve --model Qwen/Qwen3-1.7B --index my-index --calibration gate.toml
    gnothi serve --config server.toml
    gnothi serve --host 0.0.0.0 --keys keys.json

    Any client of OpenAI's API can ask: base URL http://127.0.0.1:8000/v1, a model gnothi/METHOD. --config names a file with
    [server] and [setups.NAME] for several set-ups. Settings of the server: --set server.KEY=VALUE.
    """
    import asyncio
    from importlib.util import find_spec

    if missing := [name for name in ("starlette", "uvicorn", "prometheus_client") if find_spec(name) is None]:
        raise MissingDependency(missing[0], "serving", "the server")
    from gnothi.calibration.file import read
    from gnothi.models import LAB
    from gnothi.report.terminal import console as terminal
    from gnothi.serving.setups import SETUPS, plans, server_settings
    from gnothi.session.default_method import default_method

    flags = {"host": host, "port": port, "keys": keys, "runs": runs}
    given = {f"server.{key}": Given(value, f"--{key}") for key, value in flags.items() if value is not None}
    request = sources.request(options.names(methods) or None, thresholds)
    request = replace(request, settings=Settings({**request.settings.given, **given}))
    settings = server_settings(request.settings)
    settings.check_exposure()
    if request.methods is None and not request.settings.section(SETUPS):
        chosen = read(request.calibration) if isinstance(request.calibration, Path) else None
        suits, _ = default_method(request.model or LAB, request.settings, chosen)
        request = replace(request, methods=tuple(dict.fromkeys((suits, *METHODS))))
    found = plans(request)
    from gnothi.serving.server import serve as run

    for line in dict.fromkeys(line for plan in found.values() for line in plan.told):
        say(line)

    def ready(service: Service, address: str) -> None:
        waiting.stop()
        for warning in dict.fromkeys(warning for one in service.setups.values() for warning in one.warnings):
            say(f"warning: {warning}")
        say(f"{address}/v1 answers as {', '.join(one.id for one in service.setups.values())}. Ctrl-C ends it.")

    with terminal.Waiting("opening models ...") as waiting:
        asyncio.run(run(found, settings, ready))
