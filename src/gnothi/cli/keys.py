"""``gnothi keys``: who may ask a server, how often, and for how much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gnothi.cli import options
from gnothi.errors import InvalidSetting


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
@click.argument("name", required=False)
@click.option("--per-minute", type=options.Number(min=0, min_open=True), metavar="N", help="Questions a minute.")
@click.option("--max-tokens", type=click.IntRange(min=0), metavar="N", help="Tokens over the key's life.")
@click.option(
    "--max-cost",
    type=options.Number(min=0),
    metavar="COST",
    help="Cost of models behind an API over the key's life, at model.price_in and model.price_out.",
)
@click.option("--revoke", is_flag=True, help="Revoke the key, also where a server runs.")
@options.json
def keys(
    file: Path,
    name: str | None,
    per_minute: float | None,
    max_tokens: int | None,
    max_cost: float | None,
    revoke: bool,
    as_json: bool,
) -> None:
    """List the API keys of a server in FILE, which `gnothi serve --keys FILE` reads; with NAME, make a key and print it.

    \b
    gnothi keys keys.json
    gnothi keys keys.json anna --per-minute 20
    gnothi keys keys.json anna --revoke

    FILE holds only a digest of each key: a key is shown once, when it is made.
    """
    limited = {"per_minute": per_minute, "max_tokens": max_tokens, "max_cost": max_cost}
    if limits := [key for key, value in limited.items() if value is not None and (revoke or name is None)]:
        raise InvalidSetting(
            f"--{limits[0].replace('_', '-')}: it limits a new key. Give a NAME and no --revoke, or leave it out."
        )
    if revoke and name is None:
        raise InvalidSetting("--revoke: got no NAME, expected that of the key, as in: gnothi keys FILE NAME --revoke.")
    if name is None:
        _list(file, as_json)
    elif revoke:
        _revoke(file, name, as_json)
    else:
        _add(file, name, limited, as_json)


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
        said = [f"since {one['created'][:10]}"]
        said += [f"revoked {one['revoked'][:10]}"] if one["revoked"] else []
        said += [f"{one['per_minute']:g} questions a minute"] if one["per_minute"] is not None else []
        said += [f"{one['tokens']:,} tokens" + (f" of {one['max_tokens']:,}" if one["max_tokens"] is not None else "")]
        said += [f"cost {one['cost']:.4f} of {one['max_cost']:g}"] if one["max_cost"] is not None else []
        click.echo(terminal.clean(f"{one['name']}: {', '.join(said)}"))


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
