"""``gnothi mcp``: tools for one program, over stdin and stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gnothi.cli import options
from gnothi.cli.saying import say
from gnothi.errors import MissingDependency

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gnothi.session.plan import Plan


@click.command()
@click.option(
    "--method",
    "methods",
    default="",
    metavar="NAME[,NAME...]",
    help="What answers; the first where the program names none. [default: as for `gnothi ask`]",
)
@options.sources(options.model, options.index, options.graph)
@options.calibration
def mcp(methods: str, sources: options.Sources, thresholds: options.Thresholds) -> None:
    """Offer ask, know and search to a program that speaks MCP, over stdin and stdout.

    \b
    gnothi mcp
    gnothi mcp --model Qwen/Qwen3-1.7B --index my-index --calibration gate.toml
    gnothi mcp --config server.toml

    Programs start it themselves: name this command in their settings. `gnothi serve` offers the same at /mcp, for many at
    a time.
    """
    import asyncio

    try:
        import gnothi.serving.tools  # noqa: F401
    except ImportError as error:
        raise MissingDependency(str(error.name), "mcp", "gnothi mcp") from error
    from gnothi.serving.setups import plans

    names = [name.strip() for name in methods.split(",") if name.strip()]
    found = plans(sources.request(names or None, thresholds))
    for line in dict.fromkeys(line for plan in found.values() for line in (*plan.told, *plan.warnings)):
        say(line)
    asyncio.run(_run(found))


async def _run(found: Mapping[str, Plan]) -> None:
    from gnothi.serving.service import open_service
    from gnothi.serving.tools import Tools

    async with open_service(found) as service:
        await Tools(service).server.run_stdio_async()
