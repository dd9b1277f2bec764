"""``gnothi serve keys``: who may ask a server, how often, and for how much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gnothi.cli import options
from gnothi.cli.groups import Group

_file = options.file("--file", "The file of keys that the server is given with --keys.", required=True)


@click.group(cls=Group)
def keys() -> None:
    """Make, list and revoke the keys of a server."""


@keys.command()
@click.argument("name")
@_file
@click.option("--per-minute", type=options.Number(min=0, min_open=True), metavar="N", help="Questions a minute.")
@click.option("--max-tokens", type=click.IntRange(min=0), metavar="N", help="Tokens over the key's life.")
@click.option(
    "--max-cost",
    type=options.Number(min=0),
    metavar="COST",
    help="What models behind an API may cost over its life, at model.price_in and model.price_out.",
)
@options.json
def add(name: str, file: Path, per_minute: float | None, max_tokens: int | None, max_cost: float | None, as_json: bool) -> None:
    """Make a key called NAME and print it. The file keeps its digest alone: it is never shown again."""
    from gnothi.report.terminal import console as terminal
    from gnothi.serving import keys

    secret = keys.add(file, name, per_minute=per_minute, max_tokens=max_tokens, max_cost=max_cost)
    if as_json:
        terminal.print_json({"name": name, "key": secret})
    else:
        click.echo(secret)


@keys.command("list")
@_file
@options.json
def listed(file: Path, as_json: bool) -> None:
    """Each key: since when, its limits, what it has spent."""
    from gnothi.report.terminal import console as terminal
    from gnothi.serving import keys

    found, spent = keys.read(file), keys.spent(file)
    documents = [_document(one, spent.get(one.name, {})) for one in found]
    if as_json:
        terminal.print_json(documents)
        return
    for one in documents:
        said = [f"since {one['created'][:10]}"]
        said += [f"revoked {one['revoked'][:10]}"] if one["revoked"] else []
        said += [f"{one['per_minute']:g} questions a minute"] if one["per_minute"] is not None else []
        said += [f"{one['tokens']:,} tokens" + (f" of {one['max_tokens']:,}" if one["max_tokens"] is not None else "")]
        said += [f"cost {one['cost']:.4f} of {one['max_cost']:g}"] if one["max_cost"] is not None else []
        click.echo(terminal.clean(f"{one['name']}: {', '.join(said)}"))


@keys.command()
@click.argument("name")
@_file
def revoke(name: str, file: Path) -> None:
    """Refuse the key from now on, also where a server runs."""
    from gnothi.serving import keys

    keys.revoke(file, name)
    click.echo(f"{name} is revoked.")


def _document(key: Any, spent: dict[str, float]) -> dict[str, Any]:
    names = ("name", "created", "revoked", "per_minute", "max_tokens", "max_cost")
    return {name: getattr(key, name) for name in names} | {
        "tokens": int(spent.get("tokens", 0)),
        "cost": float(spent.get("cost", 0.0)),
    }
