"""``gnothi serve``: questions over HTTP. ``gnothi mcp``: tools for one program, over stdin and stdout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gnothi.cli import options
from gnothi.roles import SERVED
from gnothi.serving.settings import ServerSettings

_DEFAULT = ServerSettings()
_CONFIG = "A TOML file of settings, also with [server] and [setups.NAME]."


@click.command()
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME[,NAME...]",
    help="Methods to offer, each as the model gnothi/NAME; see `gnothi list methods`. "
    f"[default: {','.join(SERVED)}, with the default of `gnothi ask` first]",
)
@options.sources(
    options.model,
    options.index,
    options.graph,
    calibration=True,
    sets=f"{options.SETTINGS}; or server.KEY",
    config=_CONFIG,
)
@click.option("--host", metavar="ADDRESS", help=f"Address to listen on. [default: {_DEFAULT.host}, this machine alone]")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help=f"Port to listen on. [default: {_DEFAULT.port}]")
@options.file("--keys", "Require an API key from FILE, which `gnothi keys` writes.")
@click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Show the reports of the runs in this folder.",
)
def serve(
    methods: tuple[str, ...],
    sources: options.Sources,
    host: str | None,
    port: int | None,
    keys: Path | None,
    runs: Path | None,
) -> None:
    """Answer questions over HTTP, with OpenAI's API.

    \b
    gnothi serve
    gnothi serve --model Qwen/Qwen3-1.7B --index my-index --calibration gate.toml
    gnothi serve --config server.toml
    gnothi serve --host 0.0.0.0 --keys keys.json

    Any client of OpenAI's API can ask: base URL http://ADDRESS:PORT/v1, model gnothi/METHOD. --config names a file with
    [server] and [setups.NAME] for several set-ups.
    """
    import gnothi
    from gnothi.cli.progress import ProgressWatch

    flags = {"host": host, "port": port, "keys": keys, "runs": runs}
    server: dict[str, Any] = {key: value for key, value in flags.items() if value is not None}
    named = options.names(methods) or None
    with ProgressWatch() as watch:
        gnothi.serve(named, **sources.arguments(), watch=watch, **server)


@click.command()
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME[,NAME...]",
    help="Methods to offer; the first is used if the program names none. [default: as for `gnothi ask`]",
)
@options.sources(options.model, options.index, options.graph, calibration=True, config=_CONFIG)
def mcp(methods: tuple[str, ...], sources: options.Sources) -> None:
    """Offer ask, know and search to a program that speaks MCP (Model Context Protocol), over stdin and stdout.

    \b
    gnothi mcp
    gnothi mcp --model Qwen/Qwen3-1.7B --index my-index --calibration gate.toml
    gnothi mcp --config server.toml

    The program starts this command itself: name it in the program's settings. For several programs at a time, `gnothi serve`
    offers the same at /mcp.
    """
    import gnothi
    from gnothi.cli.progress import ProgressWatch

    with ProgressWatch() as watch:
        gnothi.serve(options.names(methods) or None, **sources.arguments(), watch=watch, stdio=True)
