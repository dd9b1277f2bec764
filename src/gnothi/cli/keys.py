"""``gnothi keys``: who may ask a server, how often, and for how much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gnothi.cli import options
from gnothi.errors import InvalidSetting


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
@click.option("--add", metavar="NAME", help="Make a key and print it.")
@click.option("--per-minute", type=options.Number(min=0, min_open=True), metavar="N", help="Most questions per minute.")
@click.option("--max-tokens", type=click.IntRange(min=0), metavar="N", help="Most tokens over the key's life.")
@click.option(
    "--max-cost",
    type=options.Number(min=0),
    metavar="COST",
    help="Highest cost of models behind an API over the key's life, by the server's settings model.price_in and "
    "model.price_out (per million tokens).",
)
@click.option("--revoke", metavar="NAME", help="Revoke a key; a running server also refuses it at once.")
@options.json
def keys(
    file: Path,
    add: str | None,
    per_minute: float | None,
    max_tokens: int | None,
    max_cost: float | None,
    revoke: str | None,
    as_json: bool,
) -> None:
    """List the API keys of a server in FILE, which `gnothi serve --keys FILE` reads; or make or revoke one.

    \b
    gnothi keys keys.json
    gnothi keys keys.json --add anna --per-minute 20
    gnothi keys keys.json --revoke anna

    FILE holds only a digest of each key: a key is shown once, when it is made.
    """
    limited = {"per_minute": per_minute, "max_tokens": max_tokens, "max_cost": max_cost}
    if limits := [key for key, value in limited.items() if value is not None and add is None]:
        raise InvalidSetting(f"--{limits[0].replace('_', '-')}: it limits a new key. Give --add NAME, or leave it out.")
    if add is not None and revoke is not None:
        raise InvalidSetting(f"got --add {add} and --revoke {revoke}, expected one of them.")
    if add is not None:
        _add(file, add, limited, as_json)
    elif revoke is not None:
        _revoke(file, revoke, as_json)
    else:
        _list(file, as_json)


def _add(file: Path, name: str, limits: dict[str, Any], as_json: bool) -> None:
    from gnothi.report.terminal import console as terminal
    from gnothi.serving import keys

    secret = keys.add(file, name, **limits)
    if as_json:
        terminal.print_json({"name": name, "key": secret})
    else:
        click.echo(secret)


def _list(file: Path, as_json: bool) -> None:
    from gnothi.report.terminal import console as terminal
    from gnothi.serving import keys

    found, spent = keys.read(file), keys.spent(file)
    documents = [_document(one, spent.get(one.name, {})) for one in found]
    if as_json:
        terminal.print_json(documents)
        return
    for one in documents:
        facts = [f"since {one['created'][:10]}"]
        facts += [f"revoked {one['revoked'][:10]}"] if one["revoked"] else []
        facts += [f"{one['per_minute']:g} questions a minute"] if one["per_minute"] is not None else []
        facts += [f"{one['tokens']:,} tokens" + (f" of {one['max_tokens']:,}" if one["max_tokens"] is not None else "")]
        facts += [f"cost {one['cost']:.4f} of {one['max_cost']:g}"] if one["max_cost"] is not None else []
        click.echo(terminal.clean(f"{one['name']}: {', '.join(facts)}"))


def _revoke(file: Path, name: str, as_json: bool) -> None:
    from gnothi.report.terminal import console as terminal
    from gnothi.serving import keys

    keys.revoke(file, name)
    terminal.print_json({"name": name, "revoked": True}) if as_json else click.echo(f"{name} is revoked.")


def _document(key: Any, spent: dict[str, float]) -> dict[str, Any]:
    names = ("name", "created", "revoked", "per_minute", "max_tokens", "max_cost")
    return {name: getattr(key, name) for name in names} | {
        "tokens": int(spent.get("tokens", 0)),
        "cost": float(spent.get("cost", 0.0)),
    }
