"""``gnothi methods``, ``models``, ``datasets``, ``plugins``: what there is, with each one's needs and settings, and who brings
it."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from gnothi.cli import options
from gnothi.cli.saying import say
from gnothi.config import Setting, as_text
from gnothi.errors import PluginWarning
from gnothi.registry import BUILT_IN
from gnothi.report.terminal import console as terminal

if TYPE_CHECKING:
    from gnothi.methods import Description
    from gnothi.registry import Registry

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@as_json
def methods(names: tuple[str, ...], as_json: bool) -> None:
    """Ways of answering, with what each needs and its settings.

    With NAMEs, only those, and each setting explained. Settings are given with --set KEY=VALUE.
    """
    from gnothi.methods import describe
    from gnothi.methods.registry import METHODS

    with _telling_of_plugins():
        found = [describe(name) for name in names or (entry.name for entry, _ in METHODS.items())]
    if as_json:
        terminal.print_json([_method(description) for description in found])
        return
    for number, description in enumerate(found):
        if number:
            click.echo()
        _heading(description.name, description.summary)
        origin = [] if description.origin == BUILT_IN else [("from  ", description.origin)]
        _lines([*origin, ("source", description.source), ("needs", ", ".join(_needs(description)))])
        if names:
            _settings(description.settings)
        else:
            _lines([("set   ", " ".join(_assignment(setting) for setting in description.settings))])
    if not names:
        click.echo("\nMore on the settings of one: gnothi methods NAME")


@click.command()
@click.argument("name", required=False)
@options.sources(spending=False)
@as_json
def models(name: str | None, sources: options.Sources, as_json: bool) -> None:
    """What --model takes, and the settings of a model.

    With the NAME of a model, that one is opened, and how it runs is shown: what a trial of it found, or which fields of
    requests a server does not take and why.
    """
    from gnothi.config import settings_of
    from gnothi.methods.planned import MODEL_SECTION
    from gnothi.models import listed, settings_listed

    if name is not None:
        told = _opened(name, sources)
        terminal.print_json(told) if as_json else _lines((key.replace("_", " "), value) for key, value in told.items())
        return
    with _telling_of_plugins():
        specs = listed()
        kinds = {kind: settings_of(cls, f"{MODEL_SECTION}.").values() for kind, cls in settings_listed().items()}
    if as_json:
        settings = [{**_setting(setting), "models": kind} for kind, found in kinds.items() for setting in found]
        terminal.print_json({"models": _documents("spec", specs), "settings": settings})
        return
    _lines(_with_origin(specs))
    for kind, found in kinds.items():
        click.echo(f"\nModels {kind}")
        _settings(found)


def _opened(name: str, sources: options.Sources) -> dict[str, str]:
    """What the model tells of itself, once opened."""
    from gnothi.models import load_model
    from gnothi.session.sources import model_settings

    model = load_model(name, model_settings([name], sources.settings)[name])
    can = [item.name.replace("_", " ") for item in fields(model.capabilities) if getattr(model.capabilities, item.name)]
    told = {**model.metadata, "offers": ", ".join(["text", *can])}
    asyncio.run(model.aclose())
    return told


@click.command()
@as_json
def datasets(as_json: bool) -> None:
    """Data sets and file formats that eval reads."""
    from gnothi.datasets import data_sets, formats_listed

    with _telling_of_plugins():
        named, formats = data_sets(), formats_listed()
    if as_json:
        terminal.print_json({"datasets": _documents("name", named), "formats": _documents("name", formats)})
        return
    click.echo("Data sets")
    _lines(_with_origin(named))
    click.echo("\nFormats of files (recognised, or named with --format)")
    _lines(_with_origin(formats))


@click.command()
@as_json
def plugins(as_json: bool) -> None:
    """What other installed packages add: methods, signals, indexes, models ..."""
    from gnothi.datasets import DATASETS, FORMATS
    from gnothi.graph.registry import GRAPHS
    from gnothi.methods.registry import METHODS
    from gnothi.models import MODELS
    from gnothi.retrieval.dense.encoders import ENCODERS
    from gnothi.retrieval.registry import RERANKERS, RETRIEVERS
    from gnothi.signals.registry import SIGNALS

    retrieval: tuple[Registry[Any], ...] = (RETRIEVERS, ENCODERS, RERANKERS, GRAPHS)
    registries: tuple[Registry[Any], ...] = (METHODS, SIGNALS, *retrieval, MODELS, DATASETS, FORMATS)
    with _telling_of_plugins():
        found = [(one.kind, entry) for one in registries for entry, _ in one.items() if entry.origin != BUILT_IN]
    if as_json:
        keys = ("kind", "name", "origin", "target")
        terminal.print_json(
            [dict(zip(keys, (kind, entry.name, entry.origin, entry.target), strict=True)) for kind, entry in found]
        )
        return
    _lines((f"{kind} {entry.name}", f"{entry.origin} ({entry.target})") for kind, entry in found)
    if not found:
        click.echo("no other package adds anything")


@contextlib.contextmanager
def _telling_of_plugins() -> Iterator[None]:
    """What other packages offer and cannot deliver is told in a line each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PluginWarning)
        yield
    for message in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, PluginWarning)):
        say(f"warning: {message}")


def _documents(key: str, found: Mapping[str, tuple[str, str]]) -> list[dict[str, str]]:
    return [{key: name, "summary": summary, "origin": origin} for name, (summary, origin) in found.items()]


def _with_origin(found: Mapping[str, tuple[str, str]]) -> Iterable[tuple[str, str]]:
    for name, (summary, origin) in found.items():
        yield name, summary if origin == BUILT_IN else f"{summary} (from {origin})"


def _method(description: Description) -> dict[str, Any]:
    return {
        "name": description.name,
        "summary": description.summary,
        "source": description.source,
        "origin": description.origin,
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
    click.echo("\n".join(f"  {line}" for line in terminal.wrap(summary, terminal.width() - 2)))


def _lines(rows: Iterable[tuple[str, str]]) -> None:
    click.echo("\n".join(terminal.definitions(rows)))
