"""``--config RUN/config.toml``: what a run was made with, as settings and flags of another command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from gnothi.config import load_toml

_METHOD, _MODEL, _SEARCHES = "method.", "model.settings.", "searches."
_FLAGS = {
    "dataset": "dataset.name",
    "limit": "dataset.limit",
    "format": "dataset.format",
    "model": "model.name",
    "index": "index",
    "graph": "graph",
    "seed": "seed",
}
"""Parameters of commands, and where a run's configuration holds them. How a run was carried out is not repeated."""


def is_run(values: Mapping[str, Any]) -> bool:
    """Whether these dotted keys are the configuration that ``gnothi eval`` writes into a run."""
    return "dataset.fingerprint" in values and "methods" in values


def as_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a file of settings would say: a run's settings of methods, models and searches under the names they are given by.
    A file that is no run's stays as it is."""
    from gnothi.runs.journal import EXECUTION

    if not is_run(values):
        return dict(values)
    found: dict[str, Any] = {}
    for key, value in values.items():
        key = key.removeprefix(EXECUTION)
        if key.startswith(_METHOD):
            found[key.removeprefix(_METHOD)] = value
        elif key.startswith(_MODEL):
            found[f"model.{key.removeprefix(_MODEL)}"] = value
        elif key.startswith(_SEARCHES):
            found[f"index.{key.removeprefix(_SEARCHES)}"] = value
    return found


def as_flags(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a run's configuration says instead of flags that are not given, by name of the parameter."""
    if not is_run(values):
        return {}
    found = {flag: values[key] for flag, key in _FLAGS.items() if values.get(key, "none") != "none"}
    methods = values["methods"]
    return found | {"methods": methods} | ({"method": methods[0]} if len(methods) == 1 else {})


def take_flags(context: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Callback of an eager ``--config``: flags that are not given are those of the run. Raises InvalidInput."""
    if path is not None and (flags := as_flags(load_toml(path))):
        context.default_map = {**(context.default_map or {}), **flags}
    return path


def compare(path: Path | None, about: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """``say`` where a run is repeated that had other questions, or another model or index, under the same name; ``about`` is
    the new run's configuration."""
    from gnothi.runs.journal import FINGERPRINTS, resource

    before = load_toml(path) if path is not None else {}
    if not is_run(before):
        return
    same_limit = before.get("dataset.limit") == (about["dataset.limit"] or "none")
    told = {"dataset.fingerprint": ("data set", "dataset.name")} if same_limit else {}
    told |= {key: (resource(key), key.removeprefix(FINGERPRINTS)) for key in sorted(before) if key.startswith(FINGERPRINTS)}
    for key, (what, named) in told.items():
        if before.get(named) == about.get(named) and key in about and before[key] != about[key]:
            say(f"warning: the {what} {about[named]} is not what it was for {path}: its content has changed.")
