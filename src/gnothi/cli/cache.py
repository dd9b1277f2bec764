"""``gnothi cache``: the replies of models that are kept on disk, and what GGUF files were unpacked to."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import click

from gnothi.cli import options
from gnothi.cli.saying import say
from gnothi.report.terminal import console as terminal


@click.command()
@click.option("--clear", is_flag=True, help="Delete everything in the cache.")
@options.json
def cache(clear: bool, as_json: bool) -> None:
    """Show what is cached, with folders and sizes: replies of models, results of short tests of servers, models
    unpacked from GGUF files.

    \b
    gnothi cache
    gnothi cache --clear

    Replies of models behind an API are cached unless you give --no-cache. Those of other models are cached only with --cache.
    """
    (_clear if clear else _info)(as_json)


def _info(as_json: bool) -> None:
    from gnothi.models import gguf
    from gnothi.models.store import FOLDER_VARIABLE

    with closing(_store()) as store:
        found, models = store.info(), gguf.listed()
    document: dict[str, Any] = {"path": str(found.path), "entries": found.entries, "bytes": found.bytes, "models": models}
    if as_json:
        terminal.print_json(document)
        return
    age = "" if found.oldest is None else f", the oldest not used for {_age(time.time() - found.oldest)}"
    click.echo(f"{found.path}: {_counted(found.entries)}, {found.bytes / 1e6:.1f} MB{age}")
    for name, size in models.items():
        click.echo("  " + terminal.clean(f"the model of {name}: {size / 1e6:.1f} MB"))
    click.echo(f"Another place: the environment variable {FOLDER_VARIABLE}. More or less room: --set model.calls_mb=...")


def _clear(as_json: bool) -> None:
    from gnothi.models import gguf

    with closing(_store()) as store:
        before, models = store.clear(), gguf.listed()
    gguf.forget()
    if as_json:
        terminal.print_json({"path": str(before.path), "entries": before.entries, "bytes": before.bytes, "models": models})
        return
    also = f"; {len(models)} models, {sum(models.values()) / 1e6:.1f} MB" if models else ""
    click.echo(f"{before.path}: deleted {_counted(before.entries)}, {before.bytes / 1e6:.1f} MB{also}")


def _store() -> Any:
    from gnothi.models.store import Store, folder

    return Store(folder(), 2**62, lambda text: say(f"gnothi: {text}"))


def _counted(entries: int) -> str:
    return "1 entry" if entries == 1 else f"{entries:,} entries"


def _age(seconds: float) -> str:
    for unit, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(0.0, seconds):.0f} seconds"
