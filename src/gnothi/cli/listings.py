"""``gnothi methods``, ``gnothi models``, ``gnothi datasets``: what there is, with each one's needs and settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from gnothi.config import Setting, as_text
from gnothi.report.terminal import console as terminal

if TYPE_CHECKING:
    from gnothi.methods import Description

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@as_json
def methods(names: tuple[str, ...], as_json: bool) -> None:
    """Ways of answering, with what each needs and its settings.

    With NAMEs, only those, and each setting explained. Settings are given with --set KEY=VALUE.
    """
    from gnothi.methods import describe
    from gnothi.methods import names as all_names

    found = [describe(name) for name in names or all_names()]
    if as_json:
        terminal.print_json([_method(description) for description in found])
        return
    for number, description in enumerate(found):
        if number:
            click.echo()
        _heading(description.name, description.summary)
        _lines([("source", description.source), ("needs", ", ".join(_needs(description)))])
        if names:
            _settings(description.settings)
        else:
            _lines([("set   ", " ".join(_assignment(setting) for setting in description.settings))])
    if not names:
        click.echo("\nMore on the settings of one: gnothi methods NAME")


@click.command()
@as_json
def models(as_json: bool) -> None:
    """What --model takes, and the settings of a model."""
    from gnothi.config import settings_of
    from gnothi.methods.planned import MODEL_SECTION
    from gnothi.models import SETTINGS
    from gnothi.session.sources import MODEL_SPECS

    kinds = {kind: settings_of(cls, f"{MODEL_SECTION}.").values() for kind, cls in SETTINGS.items()}
    if as_json:
        specs = [{"spec": spec, "summary": summary} for spec, summary in MODEL_SPECS.items()]
        settings = [{**_setting(setting), "models": kind} for kind, found in kinds.items() for setting in found]
        terminal.print_json({"models": specs, "settings": settings})
        return
    _lines(MODEL_SPECS.items())
    for kind, found in kinds.items():
        click.echo(f"\nModels {kind}")
        _settings(found)


@click.command()
@as_json
def datasets(as_json: bool) -> None:
    """Data sets and file formats that eval reads."""
    from gnothi.datasets import FORMATS
    from gnothi.session.data import dataset_summaries

    named = dataset_summaries()
    if as_json:
        documents = [{"name": name, "summary": summary} for name, summary in named.items()]
        formats = [{"name": format.name, "summary": format.summary} for format in FORMATS.values()]
        terminal.print_json({"datasets": documents, "formats": formats})
        return
    click.echo("Data sets")
    _lines(named.items())
    click.echo("\nFormats of files (recognised, or named with --format)")
    _lines((format.name, format.summary) for format in FORMATS.values())


def _method(description: Description) -> dict[str, Any]:
    return {
        "name": description.name,
        "summary": description.summary,
        "source": description.source,
        "needs": _needs(description),
        "settings": [_setting(setting) for setting in description.settings],
    }


def _needs(description: Description) -> list[str]:
    """Resources, then what the model must be capable of with the default settings."""
    capabilities = [item.name for item in fields(description.needs) if getattr(description.needs, item.name)]
    return [*description.resources, *(name.replace("_", " ") for name in capabilities)]


def _setting(setting: Setting) -> Mapping[str, str]:
    return {"key": setting.key, "type": setting.type_name, "default": as_text(setting.default), "help": setting.help}


def _settings(settings: Iterable[Setting]) -> None:
    click.echo("  settings")
    rows = [(_assignment(setting), _explained(setting)) for setting in settings]
    click.echo("\n".join(terminal.definitions(rows, indent=4)))


def _assignment(setting: Setting) -> str:
    return f"{setting.key}={as_text(setting.default)}"


def _explained(setting: Setting) -> str:
    """The help text, with the type where default and help do not tell it."""
    if setting.help and not setting.type_name.startswith("one of"):
        return setting.help
    return f"{setting.help} ({setting.type_name})".strip()


def _heading(name: str, summary: str) -> None:
    click.secho(name, bold=True)
    click.echo("\n".join(f"  {line}" for line in terminal.wrap(summary, terminal.PIPED_WIDTH - 2)))


def _lines(rows: Iterable[tuple[str, str]]) -> None:
    click.echo("\n".join(terminal.definitions(rows)))
