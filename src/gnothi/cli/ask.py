"""``gnothi ask``: one question, every decision shown as it is taken."""

from __future__ import annotations

import asyncio
from functools import partial

import click

from gnothi.cli import options
from gnothi.errors import InvalidInput
from gnothi.naming import on_the_command_line
from gnothi.types import Question

QUESTION_ID = "ask"


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="QUESTION")
@click.option("--method", default="seakr", show_default=True, metavar="NAME", help="How to answer; see `gnothi methods`.")
@options.sources(options.model, options.index, options.graph)
@options.calibration
@click.option("--choice", "choices", multiple=True, metavar="TEXT", help="A choice to pick the answer from (repeat).")
@options.seed
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of the steps.")
@click.option("--trace", is_flag=True, help="Show every model call and all that was found, too.")
def ask(
    words: tuple[str, ...],
    method: str,
    sources: options.Sources,
    thresholds: options.Thresholds,
    choices: tuple[str, ...],
    seed: int,
    as_json: bool,
    trace: bool,
) -> None:
    """Answer QUESTION and show every decision on the way.

    \b
    gnothi ask "Who directed The Amber Harbour?"
    gnothi ask "..." --method rag --set k=5
    gnothi ask "..." --model Qwen/Qwen3-1.7B --index my-index
    gnothi ask "..." --model openai:NAME --set signal=consistency --index my-index
    """
    from dataclasses import replace

    from gnothi.models.remote.budget import spending
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal.steps import Steps, show_answer
    from gnothi.session import asking
    from gnothi.session.execute import budget_of
    from gnothi.session.opened import opened
    from gnothi.session.plan import Execution, resolve
    from gnothi.session.thresholds import uncalibrated

    asked = Question(QUESTION_ID, _text(words), choices=choices)
    plan = replace(resolve(sources.request([method], thresholds)), execution=Execution(seed))
    for line in (*plan.told, *(f"warning: {warning}" for warning in plan.warnings)):
        click.echo(line, err=True)
    screen = terminal.console()
    listeners = [] if as_json else [Steps(screen, trace)]
    budget = budget_of(plan)
    doubtful: list[str | None] = []

    async def answer() -> asking.Result:
        async with opened([plan]) as sources:
            run = sources.method(plan.methods[0])
            doubtful.append(uncalibrated(plan, sources))
            ready()
            return await asking.ask_method(plan, sources, run, asked, listeners)

    # On a terminal the spinner runs below the steps; where they go to a file or a program, it says on stderr what is opened.
    below = screen if screen.is_terminal and not as_json else None
    with terminal.Waiting(f"opening model {sources.model} ...", below) as waiting:
        ready = waiting.stop if not (screen.is_terminal or as_json) else partial(waiting.say, "thinking ...")
        with spending(budget):
            result = asyncio.run(answer())
    if as_json:
        charged = {"charged": budget.as_dict()} if plan.remote else {}
        calibrated = {"probability_wrong": result.probability_wrong} if plan.calibration else {}
        terminal.print_json(result.as_dict(trace) | calibrated | charged)
    else:
        charges = budget.describe() if plan.remote else ""
        show_answer(screen, result.answer, result.cost, result.seconds, charges, result.probability_wrong)
    for warning in filter(None, doubtful):
        click.echo(on_the_command_line(f"warning: {warning}"), err=True)


def _text(words: tuple[str, ...]) -> str:
    if len(words) > 1:
        raise InvalidInput(
            f'got {len(words)} arguments, expected one question. Put it in quotes: gnothi ask "{words[0]} {words[1]} ..."'
        )
    if not words[0].strip():
        raise InvalidInput('got an empty question, expected text, as in: gnothi ask "Who wrote ...?"')
    return words[0].strip()
