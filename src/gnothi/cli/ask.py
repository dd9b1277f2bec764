"""``gnothi ask``: one question, every decision shown as it is taken; or many of a file, one line an answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gnothi.cli import options
from gnothi.cli.running import SOME_FAILED, say_charges, stoppable
from gnothi.cli.saying import say
from gnothi.errors import InvalidInput, reason

if TYPE_CHECKING:
    from gnothi.runs.rows import Row
    from gnothi.session.plan import Plan

_SHOWN = ("question", "answer", "rationale", "evidence", "uncertainty", "decisions", "cost")


@click.command()
@click.argument("words", nargs=-1, metavar="[QUESTION]")
@options.file("--file", "Answer the questions in FILE: one per line, or a format of `gnothi list datasets`.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="With --file: folder of the answers. If it is unfinished, the command resumes.",
)
@options.method
@options.sources(options.model, options.index, options.graph, calibration=True)
@click.option("--choice", "choices", multiple=True, metavar="TEXT", help="A possible answer, for multiple choice (repeat).")
@options.asking
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; with --file, one per line.")
@click.option("--trace", is_flag=True, help="Also show every model call and all passages found.")
@click.pass_context
def ask(
    context: click.Context,
    words: tuple[str, ...],
    file: Path | None,
    out: Path | None,
    method: str | None,
    sources: options.Sources,
    choices: tuple[str, ...],
    asking: options.Asking,
    as_json: bool,
    trace: bool,
) -> int:
    """Answer QUESTION and show every decision on the way; with --file, answer many questions.

    \b
    gnothi ask "Who directed The Amber Harbour?"
    gnothi ask "..." --method rag --set k=5
    gnothi ask "..." --model Qwen/Qwen3-1.7B --index my-index
    gnothi ask "..." --model openai:NAME --method seakr --set signal=consistency --index my-index
    gnothi ask --file questions.txt --out runs/answers

    Output with --file: one `id<TAB>answer` line per question. Run the same command again to resume; failed questions are tried
    again. Exit code 1: some questions failed.
    """
    named = None if method is None else [method]
    if file is None:
        _refuse(context, _OF_FILES, "needs --file")
        _one(_text(words), named, sources, choices, asking.seed, as_json, trace)
        return 0
    if words:
        raise InvalidInput(f"got the question {words[0]!r:.60} and --file {file}, expected one of them.")
    _refuse(context, _OF_ONE, "does not go with --file, only with a single QUESTION")
    if out is None:
        raise InvalidInput("--file needs --out RUN, a folder for the answers, as in --out runs/answers.")
    import gnothi
    from gnothi.cli.progress import ProgressWatch

    watch = ProgressWatch()
    given = {**sources.arguments(), "config": sources.config, **asdict(asking)}
    with stoppable(out, lambda: watch.kept), watch:
        rows = gnothi.evaluate(file, named, out, watch=watch, answered=False, **given).rows
    say_charges(watch.budget, err=True)
    return _show(rows, as_json)


_OF_FILES = ("out", "limit", "format", "concurrency", "max_failures", "workers", "on", "gpus")
_OF_ONE = ("choices", "trace")


def _refuse(context: click.Context, names: Sequence[str], why: str) -> None:
    """Raise InvalidInput for the first of the options that was given (one that a --config repeats was not)."""
    for option in context.command.params:
        if option.name in names and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            raise InvalidInput(f"{option.opts[0]} {why}.")


def _show(rows: Sequence[Row], as_json: bool) -> int:
    from gnothi.report.terminal import console as terminal

    for row in rows:
        if as_json:
            click.echo(terminal.json_text(_document(row)))
        else:
            click.echo(f"{terminal.clean(row.question_id)}\t{terminal.clean(row.answer or '')}")
    failed = [row for row in rows if row.error is not None]
    for row in failed if not as_json else ():
        say(terminal.clean(f"warning: question {row.question_id} failed: {reason(row.error or {}).partition(': ')[2]}"))
    return SOME_FAILED if failed else 0


def _document(row: Row) -> dict[str, Any]:
    """What a program wants of an answer; the run folder has the rest."""
    found = {"id": row.question_id, **{key: getattr(row, key) for key in _SHOWN}}
    return found | ({"error": row.error} if row.error is not None else {})


def _one(
    text: str,
    methods: list[str] | None,
    sources: options.Sources,
    choices: tuple[str, ...],
    seed: int,
    as_json: bool,
    trace: bool,
) -> None:
    from gnothi.api.given import as_question, request_of
    from gnothi.api.rag import ask_once, plan_of

    question, said = as_question(text, choices), sources.arguments()
    plan, budget = plan_of(request_of(said, methods), seed), said["budget"]
    if sys.stderr.isatty() and not as_json:  # what loads meanwhile takes seconds
        say(_described(plan))

    from gnothi.cli.building import unread
    from gnothi.models.remote.description import remarks, warnings
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal.answer import Steps, show_answer

    for line in (*plan.notes, *(f"warning: {warning}" for warning in plan.warnings)):
        say(line)
    screen = terminal.console()
    listeners = [] if as_json else [Steps(screen, trace)]

    # On a terminal the spinner runs below the steps; where they go to a file or a program, it says on stderr what is opened.
    below = screen if screen.is_interactive and not as_json else None
    with terminal.Waiting(f"opening model {plan.sources.model} ...", below) as waiting:
        ready = waiting.stop if not (below or as_json) else partial(waiting.say, "thinking ...")
        result, doubtful = asyncio.run(ask_once(plan, question, budget, listeners, ready))
    if as_json:
        charged = {"charged": budget.as_dict(), "asked": budget.models} if plan.remote else {}
        calibrated = {"probability_wrong": result.probability_wrong} if plan.calibration else {}
        terminal.print_json(result.as_dict(trace) | calibrated | charged)
    else:
        charges, asked = (budget.describe(), remarks(budget.models)) if plan.remote else ("", [])
        doubt, empty = result.probability_wrong, result.found_nothing
        show_answer(screen, result.answer, result.cost, result.seconds, charges, doubt, asked, empty)
    hint = unread(sources.index or "") if result.found_nothing else None
    for warning in filter(None, (doubtful, *warnings(budget.models), hint)):
        say(f"warning: {warning}")


def _described(plan: Plan) -> str:
    """What will answer: the method, and what it asks and searches."""
    from gnothi.report.terminal.console import clean

    sources = plan.sources
    parts = {"method": plan.methods[0].name, "model": sources.model, "index": sources.index, "graph": sources.graph}
    return clean(", ".join(f"{part} {name}" for part, name in parts.items() if name))


def _text(words: tuple[str, ...]) -> str:
    if not words:
        raise InvalidInput('got no question, expected one, as in: gnothi ask "Who wrote ...?"; or many, with --file QUESTIONS.')
    if len(words) > 1:
        raise InvalidInput(
            f'got {len(words)} arguments, expected one question. Put it in quotes: gnothi ask "{words[0]} {words[1]} ..."'
        )
    if not words[0].strip():
        raise InvalidInput('got an empty question, expected text, as in: gnothi ask "Who wrote ...?"')
    return words[0].strip()
