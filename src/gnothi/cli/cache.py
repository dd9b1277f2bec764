"""``gnothi cache``: the replies of models that are kept on disk, and what GGUF files were unpacked to."""

from __future__ import annotations

import time
from typing import Any

import click

from gnothi.cli.groups import Group
from gnothi.cli.saying import say
from gnothi.report.terminal import console as terminal

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(cls=Group)
def cache() -> None:
    """Kept replies of models, and models read from GGUF files: how many, where; forget them.

    Replies of models behind an API are kept unless told otherwise (--no-cache), others where asked for (--cache).
    """


@cache.command()
@as_json
def info(as_json: bool) -> None:
    """What is kept, where, and how much it is."""
    from gnothi.models import gguf
    from gnothi.models.store import FOLDER_VARIABLE

    found, models = _store().info(), gguf.listed()
    document: dict[str, Any] = {"path": str(found.path), "entries": found.entries, "bytes": found.bytes, "models": models}
    if as_json:
        terminal.print_json(document)
        return
    age = "" if found.oldest is None else f", the oldest not used for {_age(time.time() - found.oldest)}"
    click.echo(f"{found.path}: {_counted(found.entries)}, {found.bytes / 2**20:.1f} MB{age}")
    for name, size in models.items():
        click.echo("  " + terminal.clean(f"the model of {name}: {size / 2**20:.1f} MB"))
    click.echo(f"Another place: the environment variable {FOLDER_VARIABLE}. More or less room: --set model.calls_mb=...")


@cache.command()
@as_json
def clear(as_json: bool) -> None:
    """Forget all kept replies, what trials of servers have shown, and models read from GGUF files."""
    from gnothi.models import gguf

    before, models = _store().clear(), gguf.listed()
    gguf.forget()
    if as_json:
        terminal.print_json({"path": str(before.path), "entries": before.entries, "bytes": before.bytes, "models": models})
        return
    also = f"; {len(models)} models, {sum(models.values()) / 2**20:.1f} MB" if models else ""
    click.echo(f"{before.path}: forgot {_counted(before.entries)}, {before.bytes / 2**20:.1f} MB{also}")


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
