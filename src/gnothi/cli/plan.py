"""``gnothi plan``: what a large evaluation would take, measured on a sample."""

from __future__ import annotations

import asyncio
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnothi.cli import options
from gnothi.cli.progress import watching
from gnothi.cli.spending import spending

if TYPE_CHECKING:
    from gnothi.session.forecast import Amount, Forecast


@click.command()
@click.argument("dataset")
@click.option(
    "--questions", type=options.Number(min=1), required=True, metavar="N", help="How many it would be: 1e6 is a million."
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME[,NAME...]",
    help="One or several; see `gnothi methods`. [default: seakr]",
)
@click.option(
    "--sample", type=click.IntRange(min=2), default=100, show_default=True, help="Questions that are asked to measure."
)
@click.option(
    "--copies",
    type=click.IntRange(min=1),
    metavar="N",
    help="Copies of the model that the run would have, taken to be so many times as fast. [default: --workers, as measured]",
)
@click.option(
    "--price-hour",
    type=options.Number(min=0),
    metavar="PRICE",
    help="What an hour of the machine of one copy costs, or its GPUs.",
)
@options.sources(options.model, options.index, options.graph)
@options.calibration
@options.asking
@options.json
def plan(
    dataset: str,
    questions: float,
    methods: tuple[str, ...],
    sample: int,
    copies: int | None,
    price_hour: float | None,
    sources: options.Sources,
    thresholds: options.Thresholds,
    asking: options.Asking,
    as_json: bool,
) -> None:
    """What it would take to evaluate N questions like those of DATASET: tokens, hours, money, and how sure that is.

    \b
    gnothi plan questions.jsonl --questions 1e6 --method seakr --model PATH --index my-index
    gnothi plan questions.jsonl --questions 1e6 --model PATH --on ray --gpus 1 --copies 8 --price-hour 3
    gnothi plan questions.jsonl --questions 50000 --method cot --model openai:NAME --no-cache

    A sample, drawn at random, is asked with the options of `gnothi eval`, on the machine where the run would be, and forgotten.
    A model behind an API is paid for it; what the run costs is reckoned with model.price_in and model.price_out.
    """
    from gnothi.models.remote.budget import Prices
    from gnothi.report.terminal import console as terminal
    from gnothi.session.execute import budget_of, claimed, done, execute
    from gnothi.session.forecast import Stopwatch, drawn, forecast
    from gnothi.session.plan import resolve, with_questions

    resolved = resolve(sources.request(options.names(methods, "seakr"), thresholds))
    resolved = drawn(with_questions(resolved, dataset, asking.format, asking.limit, asking.execution), sample)
    for warning in resolved.warnings:
        click.echo(f"warning: {warning}", err=True)
    main = resolved.models.get(resolved.sources.model)
    prices = Prices(getattr(main, "price_in", None), getattr(main, "price_out", None))
    budget = budget_of(resolved)
    with (
        tempfile.TemporaryDirectory(prefix="gnothi-plan-") as folder,
        claimed(resolved, Path(folder) / "run") as run,
        spending(budget, resolved.remote, Path(folder), partial(done, [run]), err=as_json),
        watching() as watch,
    ):
        measured = Stopwatch(watch)
        (rows,) = asyncio.run(execute([run], measured, budget=budget))
    found = forecast(rows, measured.seconds, round(questions), prices, (asking.workers, copies or asking.workers), price_hour)
    if as_json:
        terminal.print_json(found)
    else:
        click.echo("\n".join(_shown(found, copies or asking.workers)))
    if found.cached:
        click.echo(
            f"warning: the cache answered {found.cached:,} calls of the sample, so times are too short: add --no-cache",
            err=True,
        )


def _shown(found: Forecast, copies: int) -> list[str]:
    from gnothi.report.numbers import counted, lasting, money

    def line(name: str, amount: Amount, how: object) -> str:
        value, low, high = (how(one) for one in (amount.value, *amount.between))  # type: ignore[operator]
        return f"{name:8} {value} ({low} to {high})"

    sample = f"{counted(found.sample, 'answer')} in {lasting(found.seconds)}"
    shown = [
        f"{counted(found.answers, 'answer')}, by a sample of {sample}; {counted(copies, 'copy', 'copies')} of the model",
        line("time", found.hours, lambda hours: lasting(hours * 3600)),
        line("tokens", found.tokens, lambda tokens: f"{tokens:,.0f}"),
        f"{'calls':8} {found.calls:,.0f}",
    ]
    if found.money is not None:
        shown.append(line("money", found.money, money))
    if found.failed:
        shown.append(
            f"{counted(found.failed, 'question')} of the sample failed and {'is' if found.failed == 1 else 'are'} not counted"
        )
    return shown
