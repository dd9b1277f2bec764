"""``gnothi list``: what there is of a kind, with each one's needs and settings, and the package that brings it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from gnothi.cli import options
from gnothi.cli.saying import say
from gnothi.config import Setting, as_text
from gnothi.errors import InvalidInput, InvalidSetting, PluginWarning
from gnothi.registry import BUILT_IN
from gnothi.report.terminal import console as terminal
from gnothi.types import Capabilities

if TYPE_CHECKING:
    from gnothi.methods import Description
    from gnothi.registry import Registry

KINDS = ("methods", "settings", "signals", "models", "datasets", "recipes", "plugins")


@click.command("list")
@click.argument("kind", type=options.Name("kind to list", KINDS), metavar="|".join(KINDS))
@click.argument("names", nargs=-1, metavar="[NAME]...")
@options.sources(spending=False, sets="model.KEY, with models NAME", config="A TOML file of settings.")
@options.json
def listing(kind: str, names: tuple[str, ...], sources: options.Sources, as_json: bool) -> None:
    """List the methods, settings, signals, models, data sets, recipes or plug-ins. With NAME, describe one.

    \b
    gnothi list methods
    gnothi list methods rag seakr
    gnothi list models Qwen/Qwen3-1.7B
    gnothi list datasets
    gnothi list recipes

    methods NAME and signals NAME explain each setting for --set KEY=VALUE. settings lists the settings that methods share.
    models NAME opens the model, with the --set model.KEY that you give, and shows how it runs. recipes lists the tables of
    papers that `gnothi reproduce` makes. plugins lists the parts that other installed packages add.
    """
    if names and kind in ("settings", "datasets", "plugins"):
        raise InvalidInput(f"list {kind}: got the name {names[0]!r}, expected none: all are listed, with all there is to say.")
    given = sources.settings.given
    if (kind != "models" or not names) and any(not one.shared for one in given.values()):
        raise InvalidSetting("--set: got it without a model. It goes with `gnothi list models NAME`.")
    for key, one in given.items():
        if not key.startswith("model.") and not one.shared:
            raise InvalidSetting(f"setting {key!r} (from {one.source}): expected model.KEY with list models. Leave it out.")
    if kind == "models":
        _models(names, sources, as_json)
    elif kind in ("methods", "signals", "recipes"):
        {"methods": _methods, "signals": _signals, "recipes": _recipes}[kind](names, as_json)
    else:
        {"settings": _shared_settings, "datasets": _datasets, "plugins": _plugins}[kind](as_json)


def _methods(names: tuple[str, ...], as_json: bool) -> None:
    from gnothi.methods import describe
    from gnothi.methods.registry import METHODS

    with _plugin_warnings():
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
        if names and description.settings:
            _settings(description.settings)
        elif description.settings:
            _lines([("set   ", " ".join(_assignment(setting) for setting in description.settings))])
        if names and description.shared:
            _lines([("shared", f"{', '.join(description.shared)}: see gnothi list settings")])
    if not names:
        click.echo("\nThe settings of one, explained: gnothi list methods NAME\nThose that methods share: gnothi list settings")


def _shared_settings(as_json: bool) -> None:
    """By group; then which settings each signal has."""
    from gnothi.methods import shared_settings
    from gnothi.signals import registry
    from gnothi.signals.registry import SECTION, settings_of

    groups, signals = shared_settings(), {name: settings_of(name) for name in registry.names()}
    if as_json:
        found = {group: [_setting(one) for one in settings] for group, settings in groups.items()}
        terminal.print_json({"groups": found, "signals": signals})
        return
    for group, settings in groups.items():
        click.secho(group, bold=True)
        _settings(settings)
    click.echo(f"\nOf these, as {SECTION}=NAME measures it:")
    _lines((name, ", ".join(key.removeprefix(f"{SECTION}.") for key in keys) or "none") for name, keys in signals.items())


def _models(names: tuple[str, ...], sources: options.Sources, as_json: bool) -> None:
    from gnothi.config import settings_of
    from gnothi.methods.planned import MODEL_SECTION
    from gnothi.models import listed, settings_listed

    if names:
        opened = [_opened(name, sources) for name in names]
        if as_json:
            terminal.print_json(opened if len(opened) > 1 else opened[0])
        for number, description in enumerate(opened if not as_json else ()):
            click.echo("\n" * bool(number), nl=False)
            _lines((key.replace("_", " "), value) for key, value in description.items())
        return
    with _plugin_warnings():
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
    """The metadata and capabilities of a model, which is opened for them."""
    from gnothi.models import load_model, model_settings

    model = load_model(name, model_settings([name], sources.settings.section("model"))[name])
    description = {**model.metadata, "offers": ", ".join(["text", *_named(model.capabilities)])}
    asyncio.run(model.aclose())
    return description


def _datasets(as_json: bool) -> None:
    from gnothi.datasets import data_sets, formats_listed

    with _plugin_warnings():
        named, formats = data_sets(), formats_listed()
    if as_json:
        terminal.print_json({"datasets": _documents("name", named), "formats": _documents("name", formats)})
        return
    click.echo("Data sets")
    _lines(_with_origin(named))
    click.echo("\nFormats of files (recognised, or named with --format)")
    _lines(_with_origin(formats))


def _signals(names: tuple[str, ...], as_json: bool) -> None:
    from gnothi.methods import spec
    from gnothi.signals.registry import SIGNALS, counts, find, name_of
    from gnothi.signals.registry import settings_of as keys_of

    for number, name in enumerate(names if not as_json else ()):
        signal, known = find(named := name_of(name)), spec("rag").settings
        click.echo("\n" * bool(number), nl=False)
        _heading(named, _first_line(signal))
        usual = signal.default_threshold
        needs = [*_named(signal.needs), *(["an index that counts"] if counts(named) else [])]
        _lines([("needs", ", ".join(needs) or "text alone"), ("threshold", "none is usual" if usual is None else f"{usual:g}")])
        if keys := keys_of(named):
            _settings(known[key] for key in keys)
    if names and not as_json:
        return
    with _plugin_warnings():
        entries = [(SIGNALS.entry(one := name_of(name)), find(one)) for name in names] or SIGNALS.items()
        found = {entry.name: (_first_line(signal), entry.origin) for entry, signal in entries}
    if as_json:
        settings = {name: {"settings": keys_of(name)} for name in found}
        terminal.print_json([one | settings[one["name"]] for one in _documents("name", found)])
    else:
        _lines(_with_origin(found))


def _recipes(names: tuple[str, ...], as_json: bool) -> None:
    from gnothi.reproduce import rendering
    from gnothi.reproduce.recipe import names as every
    from gnothi.reproduce.recipe import read

    found = [read(name) for name in names or every()]
    if as_json:
        terminal.print_json([rendering.listing(one) for one in found])
    elif names:
        click.echo("\n\n".join("\n".join(rendering.described(one, rendering.anywhere(one))) for one in found))
    else:
        click.echo("\n".join(rendering.listed(found)))
        click.echo("What one needs: gnothi list recipes NAME. Run it: gnothi reproduce NAME --data FOLDER --out FOLDER")


def _plugins(as_json: bool) -> None:
    from gnothi.datasets import DATASETS, FORMATS
    from gnothi.graph.registry import GRAPHS
    from gnothi.methods.registry import METHODS
    from gnothi.models import MODELS
    from gnothi.retrieval.dense.encoders import ENCODERS
    from gnothi.retrieval.registry import RERANKERS, RETRIEVERS
    from gnothi.signals.registry import SIGNALS

    retrieval: tuple[Registry[Any], ...] = (RETRIEVERS, ENCODERS, RERANKERS, GRAPHS)
    registries: tuple[Registry[Any], ...] = (METHODS, SIGNALS, *retrieval, MODELS, DATASETS, FORMATS)
    with _plugin_warnings():
        found = [(one.kind, entry) for one in registries for entry, _ in one.items() if entry.origin != BUILT_IN]
    if as_json:
        keys = ("kind", "name", "origin", "target")
        terminal.print_json(
            [dict(zip(keys, (kind, entry.name, entry.origin, entry.target), strict=True)) for kind, entry in found]
        )
        return
    if found:
        _lines((f"{kind} {entry.name}", f"{entry.origin} ({entry.target})") for kind, entry in found)
    else:
        click.echo("No other installed package adds anything.")


def _first_line(signal: Any) -> str:
    """The first paragraph on it: of its module, where that is one of ours; else of its class."""
    module = inspect.getmodule(signal)
    documented = module if module is not None and module.__name__.startswith("gnothi.") else signal
    return (inspect.getdoc(documented) or "").partition("\n\n")[0].replace("\n", " ")


@contextlib.contextmanager
def _plugin_warnings() -> Iterator[None]:
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
        "shared": list(description.shared),
    }


def _needs(description: Description) -> list[str]:
    """Resources, then what the model must be capable of with the default settings."""
    return [*description.resources, *_named(description.needs)]


def _named(capabilities: Capabilities) -> list[str]:
    return [name.replace("_", " ") for name in Capabilities().lacking(capabilities)]


def _setting(setting: Setting) -> Mapping[str, str]:
    described = {"type": setting.type_name, "default": as_text(setting.default), "help": setting.help, "range": setting.range}
    return {"key": setting.key, **described}


def _settings(settings: Iterable[Setting]) -> None:
    click.echo("  settings")
    rows = [(_assignment(setting), _explained(setting)) for setting in settings]
    click.echo("\n".join(terminal.definitions(rows, indent=4)))


def _assignment(setting: Setting) -> str:
    return f"{setting.key}={as_text(setting.default)}"


def _explained(setting: Setting) -> str:
    """The help text, with the range, and with the type where default and help do not tell it."""
    kind = setting.type_name if not setting.help or setting.type_name.startswith("one of") else ""
    more = ", ".join(filter(None, (kind, setting.range)))
    return f"{setting.help} ({more})".strip() if more else setting.help


def _heading(name: str, summary: str) -> None:
    click.secho(name, bold=True)
    click.echo("\n".join(f"  {line}" for line in terminal.wrap(summary, terminal.width() - 2)))


def _lines(rows: Iterable[tuple[str, str]]) -> None:
    click.echo("\n".join(terminal.definitions(rows)))
