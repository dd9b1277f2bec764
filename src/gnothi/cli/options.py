"""Options that several commands share, so that a flag means and reads the same everywhere."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.cli.repeat import as_settings, take_flags
from gnothi.config import Settings, read_settings
from gnothi.errors import InvalidSetting

if TYPE_CHECKING:
    from gnothi.models.remote.budget import Budget


class Number(click.FloatRange):
    """A finite number within a range: of click's own ranges, "nan" is in every one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"got {value}, expected a finite number.", param, ctx)
        return number


def thresholds(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> dict[str, float]:
    """``SIGNAL=VALUE`` each, as a click callback. An infinite value is a gate that always or never fires; "nan" is none."""
    found = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not name.strip() or math.isnan(number):
            raise click.BadParameter(
                f"got {text!r:.60}, expected SIGNAL=VALUE with a number, as in --threshold perplexity=1.3.", ctx, param
            )
        found[name.strip()] = number
    return found


PRICE = Number(min=0)
"""What a retrieval costs, as a share of right answers: more than 1 is dear, but means something."""
PROBABILITY = Number(0, 1, min_open=True, max_open=True)

model = click.option(
    "--model",
    default="lab",
    show_default=True,
    metavar="lab|PATH|HUB-ID|openai:NAME",
    help="The model: built in, a folder or a hub id (run by vLLM with vllm: before it), or one behind an API.",
)
index = click.option(
    "--index",
    metavar="lab|PATH",
    help="Where evidence is looked up: an index built with `gnothi index build`. [default: lab, with the lab model]",
)
graph = click.option(
    "--graph",
    metavar="lab|PATH",
    help="Where facts are looked up: a graph built with `gnothi index build --graph`. [default: lab, with the lab model]",
)
method = click.option(
    "--method", default="seakr", show_default=True, metavar="NAME", help="How to answer; see `gnothi methods`."
)


def collecting(command: click.decorators.FC) -> click.decorators.FC:
    """Adds ``--limit``, ``--format``, ``--concurrency`` and ``--max-failures``, for work on every question."""
    add_limit = click.option("--limit", type=click.IntRange(min=1), help="Only the first questions.")
    add_format = click.option(
        "--format", "format", metavar="FORMAT", help="Format of the file, where it cannot be recognised; see `gnothi datasets`."
    )
    add_concurrency = click.option(
        "--concurrency", type=click.IntRange(min=1), default=256, show_default=True, help="Questions under way at a time."
    )
    add_failures = click.option(
        "--max-failures", type=click.IntRange(min=0), help="Stop when more questions than this have failed. [default: never]"
    )
    return add_limit(add_format(add_concurrency(add_failures(command))))


def asking(command: click.decorators.FC) -> click.decorators.FC:
    """As ``collecting``, and adds ``--seed`` and ``--workers``, for runs of methods."""
    add_seed = click.option("--seed", default=0, show_default=True, help="Seed of everything that is sampled.")
    add_workers = click.option(
        "--workers",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Processes, each with a copy of the model: for a small one on several cores, as many as there are cores.",
    )
    return add_seed(collecting(add_workers(command)))


def settings(command: click.decorators.FC) -> click.decorators.FC:
    """Adds ``--config`` and ``--set``; the command gets ``config`` and ``overrides`` and hands them to ``read``. The file may
    be a run's ``config.toml``: then flags that are not given are those of the run, too."""
    add_set = click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of the method, or of the model with model.KEY (repeat). Stronger than environment and --config.",
    )
    add_config = click.option(
        "--config",
        type=click.Path(path_type=Path),
        envvar="GNOTHI_CONFIG",
        metavar="FILE",
        is_eager=True,
        callback=take_flags,
        help="Settings as a TOML file, or the config.toml of a run to be asked again.",
    )
    return add_config(add_set(command))


def spending(command: click.decorators.FC) -> click.decorators.FC:
    """Adds ``--cache``, ``--max-cost`` and ``--max-tokens``; the command gets ``cache``, ``max_cost`` and ``max_tokens`` and
    hands them to ``read`` and ``budget``."""
    add_cache = click.option(
        "--cache/--no-cache",
        default=None,
        help="Keep the model's replies and reuse them for the same requests. [default: for models behind an API]",
    )
    add_cost = click.option(
        "--max-cost",
        type=Number(min=0),
        metavar="COST",
        help="Stop before a model behind an API has cost more than this, at model.price_in and model.price_out.",
    )
    add_tokens = click.option(
        "--max-tokens",
        type=click.IntRange(min=0),
        metavar="N",
        help="Stop before a model behind an API has read and written more tokens than this.",
    )
    return add_cache(add_cost(add_tokens(command)))


def budget(models: Sequence[str], max_cost: float | None, max_tokens: int | None) -> Budget:
    """What the command may spend on its models. Raises InvalidSetting where none of them costs anything."""
    from gnothi.models import is_remote
    from gnothi.models.remote.budget import Budget

    limits = {"--max-cost": max_cost, "--max-tokens": max_tokens}
    given = [flag for flag, limit in limits.items() if limit is not None]
    if given and not any(map(is_remote, models)):
        raise InvalidSetting(
            f"{given[0]} limits what a model behind an API may cost: got model {models[0]!r}, which runs here and is free; "
            "expected openai:NAME. (The length of replies is the setting max_tokens: --set max_tokens=...)"
        )
    return Budget(max_cost, max_tokens)


def read(config: Path | None, overrides: Iterable[str], cache: bool | None = None) -> Settings:
    """The settings of all layers: file < environment < --set < --cache."""
    if cache is not None:
        overrides = [*overrides, f"model.cache={'on' if cache else 'off'}"]
    return read_settings(config, os.environ, overrides, as_settings)
