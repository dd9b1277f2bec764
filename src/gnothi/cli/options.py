"""Options that several commands share, so that a flag means and reads the same everywhere.

A group of options reaches its command as one frozen object, by the name of the decorator: ``@options.sources`` hands over
``sources``.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gnothi.config import Given, Settings, load_toml, read_settings
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.files import nearest
from gnothi.roles import ALWAYS, AT_ONCE, GATED

if TYPE_CHECKING:  # a command that opens no model needs none of it
    from gnothi.session.plan import Execution


class Number(click.FloatRange):
    """A finite number within a range: of click's own ranges, "nan" is in every one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"got {value}, expected a finite number.", param, ctx)
        return number


class Name(click.ParamType):  # type: ignore[type-arg]  # generic only from click 8.4 on
    """One of some names of a kind; else the nearest is told."""

    name = "name"

    def __init__(self, kind: str, known: Collection[str]) -> None:
        self._kind, self._known = kind, known

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        if value not in self._known:
            raise UnknownName(self._kind, value, self._known)
        return value


class Existing(click.Path):
    """A path that is there; else the nearest name is told."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = nearest(value)
            raise click.BadParameter(f"{error.message} {near}".rstrip(), ctx, param) if near else error from None


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
json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")

Decorator = Callable[[Any], Any]


def or_of_config(context: click.Context, _: click.Parameter, data: tuple[str, ...]) -> tuple[str, ...]:
    """Callback of an argument that takes several data sets: none given, that of the run that ``--config`` repeats."""
    repeated = (context.default_map or {}).get("dataset")
    return data or ((repeated,) if repeated else ())


def names(given: Sequence[str]) -> list[str]:
    """Method names from repeated and comma-separated options, each once; none where no option was given. Raises InvalidSetting
    for options without a name."""
    found = list(dict.fromkeys(name.strip() for option in given for name in option.split(",") if name.strip()))
    if given and not found:
        example = f"--method {AT_ONCE},{GATED}"
        raise InvalidSetting(f"--method: got {', '.join(given)!r}, expected the name of a method, as in {example}.")
    return found


def file(flag: str, help: str, name: str | None = None, **more: Any) -> Decorator:
    """An option that takes a file."""
    names = (flag, name) if name else (flag,)
    return click.option(*names, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help=help, **more)


def packed(name: str, kind: type, *options: Decorator) -> Decorator:
    """Adds the options and hands what they say to the command as one object of the dataclass ``kind``, called ``name``."""

    def decorate(command: Any) -> Any:
        @functools.wraps(command)
        def packing(**given: Any) -> Any:
            own = {item.name: given.pop(item.name) for item in fields(kind) if item.name in given}
            return command(**given, **{name: kind(**own)})

        for option in reversed(options):
            packing = option(packing)
        return packing

    return decorate


# --- what answers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sources:
    """Model, index and graph, settings of all layers, a calibration, and what may be spent. ``ignore_mismatch`` None: the
    command takes no calibration."""

    model: str | None = None
    index: str | None = None
    graph: str | None = None
    config: Path | None = None
    overrides: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    cache: bool | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    calibration: Path | None = None
    ignore_mismatch: bool | None = None

    @property
    def settings(self) -> Settings:
        """file < environment < --set < --cache and --filter."""
        from gnothi.methods.planned import INDEX_SECTION
        from gnothi.session.record import as_settings

        cache = () if self.cache is None else (f"model.cache={'on' if self.cache else 'off'}",)
        found = read_settings(self.config, os.environ, (*self.overrides, *cache), as_settings)
        if not self.filters:
            return found
        return Settings({**found.given, f"{INDEX_SECTION}.filters": Given([*self.filters], "<--filter>")})

    def arguments(self) -> dict[str, Any]:
        """Keywords that ``gnothi.evaluate``, ``calibrate`` and ``serve`` share."""
        from gnothi.models.remote.budget import Budget

        for key in ("model", "index", "graph"):
            if getattr(self, key) == "":
                raise InvalidSetting(f"--{key}: got an empty text, expected a name or a folder. Name one, or leave it out.")
        return {
            "model": self.model if _is_named("model") else None,
            "index": self.index,
            "graph": self.graph,
            "settings": self.settings,
            "calibration": self.calibration,
            "ignore_mismatch": self.ignore_mismatch,
            "budget": Budget(self.max_cost, self.max_tokens),
        }


def _is_named(parameter: str) -> bool:
    """Whether somebody said it: on the command line, by the environment or a file."""
    context = click.get_current_context(silent=True)
    return context is None or context.get_parameter_source(parameter) is not ParameterSource.DEFAULT


def take_flags(context: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Callback of an eager ``--config``: flags that are not given are those of the run. Raises InvalidInput."""
    if path is not None:
        from gnothi.session.record import as_arguments

        context.default_map = {**(context.default_map or {}), **as_arguments(load_toml(path))}
    return path


model = click.option(
    "--model",
    default="lab",
    show_default=True,
    metavar="lab|PATH|HUB-ID|openai:NAME",
    help="The model: lab (built in), smollm2, a folder, a GGUF file, a hub id; vllm:NAME (one of these under vLLM); or, behind "
    "an API, openai:NAME, ollama:NAME, lmstudio:NAME or azure:NAME. See `gnothi list models`.",
)
method = click.option(
    "--method",
    metavar="NAME",
    help="How to answer; see `gnothi list methods`. [default: that of --calibration; "
    f"{GATED} if the model has a threshold, else {ALWAYS}]",
)
index = click.option(
    "--index",
    metavar="lab|PATH",
    help="The index to search, built with `gnothi index build`; or KIND:PATH, such as dense:PATH. [default: lab, with the lab "
    "model]",
)
filters = click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help="Search only passages with this metadata: source=a.pdf, 'date>=2025-01' (= != > >= < <=). Repeat: all must match.",
)
graph = click.option(
    "--graph",
    metavar="lab|PATH",
    help="The knowledge graph to search, built with `gnothi index build --graph`. [default: lab, with the lab model]",
)
SETTINGS = "KEY of all methods, METHOD.KEY of one method, signal.KEY, model.KEY or index.KEY"
OF_RUNS = "A TOML file of settings, or the config.toml of a run to repeat."
_spending = (
    click.option(
        "--cache/--no-cache",
        default=None,
        help="Cache the model's replies. [default: only for models behind an API]",
    ),
    click.option(
        "--max-cost",
        type=Number(min=0),
        metavar="COST",
        help="Highest cost of models behind an API, by the settings model.price_in and model.price_out (per million tokens); "
        "stops before it is exceeded.",
    ),
    click.option(
        "--max-tokens",
        type=click.IntRange(min=0),
        metavar="N",
        help="Most tokens that models behind an API read and write; stops before it is exceeded.",
    ),
)


_calibration = (
    file(
        "--calibration",
        "Use the gate in FILE, written by `gnothi calibrate`; its method and model, too, unless you name others.",
    ),
    click.option(
        "--ignore-mismatch",
        is_flag=True,
        help="Use a calibration or probe even if it was made for another model or other settings.",
    ),
)


def sources(
    *options: Decorator, spending: bool = True, calibration: bool = False, sets: str = SETTINGS, config: str = OF_RUNS
) -> Decorator:
    """``options`` name models and indexes; filters where there is an index, settings always, limits of spending unless told
    otherwise. ``sets`` says which settings the command has, ``config`` which files."""
    searching = (filters,) if index in options else ()
    text = f"A setting: {sets} (repeat). Overrides the environment and --config."
    setting = click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help=text)
    file_of_settings = click.option(
        "--config",
        type=click.Path(path_type=Path),
        envvar="GNOTHI_CONFIG",
        metavar="FILE",
        is_eager=True,
        callback=take_flags,
        help=config,
    )
    further = (*(_spending if spending else ()), *(_calibration if calibration else ()))
    return packed("sources", Sources, *options, *searching, file_of_settings, setting, *further)


# --- which questions, and how they are asked ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asking:
    """Which questions of a data set, and how they are asked."""

    limit: int | None = None
    format: str | None = None
    concurrency: int | None = None
    max_failures: int | None = None
    seed: int = 0
    workers: int = 1
    on: str | None = None
    gpus: float | None = None

    @property
    def execution(self) -> Execution:
        from gnothi.session.plan import Execution

        return Execution(self.seed, self.concurrency, self.workers, self.max_failures, self.on, self.gpus)


seed = click.option("--seed", default=0, show_default=True, help="Seed of all sampling.")


def _limit(text: str = "Use only the first N questions.") -> Decorator:
    return click.option("--limit", type=click.IntRange(min=1), help=text, metavar="N")


_collecting = (
    click.option(
        "--format",
        "format",
        metavar="FORMAT",
        help="Format of the file, if Gnothi does not recognise it; see `gnothi list datasets`.",
    ),
    click.option(
        "--concurrency",
        type=click.IntRange(min=1),
        metavar="N",
        help="Questions in flight. [default: chosen for the model; 16 for a larger model on a CPU]",
    ),
    click.option(
        "--max-failures",
        type=click.IntRange(min=0),
        metavar="N",
        help="Stop after more failed questions than this. [default: never]",
    ),
)
_elsewhere = (
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="N",
        help="Number of processes, each with a copy of the model. For a small model, use the number of cores.",
    ),
    click.option("--on", metavar="ray[:ADDRESS]", help="Run the workers on a Ray cluster (local or HOST:PORT)."),
    click.option(
        "--gpus",
        type=Number(min=0),
        metavar="N",
        help="GPUs per worker on Ray; with 0.5, two workers share a GPU. [default: 1 if the cluster has any, else 0]",
    ),
)
collecting = packed(
    "asking", Asking, _limit("Use only the first N questions. [default: all; reranker: 500]"), *_collecting, *_elsewhere
)
"""For work on every training question."""
asking = packed("asking", Asking, seed, _limit(), *_collecting, *_elsewhere)
"""For runs of methods."""
drawing = packed(
    "asking",
    Asking,
    seed,
    _limit("Use only N questions: drawn at random from each data set of a paper, the first N in an ablation."),
    *_collecting,
    *_elsewhere,
)
"""For recipes."""
