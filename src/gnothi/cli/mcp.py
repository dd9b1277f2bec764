"""``gnothi mcp``: tools for one program, over stdin and stdout."""

from __future__ import annotations

import click

from gnothi.cli import options


@click.command()
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME[,NAME...]",
    help="What answers; the first where the program names none. [default: as for `gnothi ask`]",
)
@options.sources(options.model, options.index, options.graph)
@options.calibration
def mcp(methods: tuple[str, ...], sources: options.Sources, thresholds: options.Thresholds) -> None:
    """Offer ask, know and search to a program that speaks MCP, over stdin and stdout.

    \b
    gnothi mcp
    gnothi mcp --model Qwen/Qwen3-1.7B --index my-index --calibration gate.toml
    gnothi mcp --config server.toml

    Programs start it themselves: name this command in their settings. `gnothi serve` offers the same at /mcp, for many at
    a time.
    """
    import gnothi
    from gnothi.cli.progress import ProgressWatch

    with ProgressWatch() as watch:
        gnothi.serve(
            options.names(methods) or None, **sources.arguments(thresholds), budget=sources.budget, watch=watch, stdio=True
        )
