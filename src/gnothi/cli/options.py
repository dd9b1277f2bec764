"""Options that several commands share, so that a flag means and reads the same everywhere."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from gnothi.config import Settings, read_settings

model = click.option(
    "--model",
    default="lab",
    show_default=True,
    metavar="lab|PATH|HUB-ID",
    help="The model: built in, a folder or a hub id; run by vLLM with vllm: before it.",
)
index = click.option(
    "--index",
    metavar="lab|PATH",
    help="Where evidence is looked up: an index built with `gnothi index build`. [default: lab, with the lab model]",
)
method = click.option("--method", default="seakr", show_default=True, metavar="NAME", help="See `gnothi methods`.")


def settings(command: click.decorators.FC) -> click.decorators.FC:
    """Adds ``--config`` and ``--set``; the command gets ``config`` and ``overrides`` and hands them to ``read``."""
    add_set = click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of the method, or of the model with model.KEY (repeat). Stronger than environment and --config.",
    )
    add_config = click.option(
        "--config", type=click.Path(path_type=Path), envvar="GNOTHI_CONFIG", metavar="FILE", help="Settings as a TOML file."
    )
    return add_config(add_set(command))


def read(config: Path | None, overrides: Iterable[str]) -> Settings:
    """The settings of all layers: file < environment < --set."""
    return read_settings(config, os.environ, overrides)
