"""``gnothi ask``: one question, every decision shown as it is taken."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from gnothi.calibration.apply import calibration, with_calibration
from gnothi.calibration.probes import check_probes
from gnothi.cli import options
from gnothi.config import Settings
from gnothi.errors import InvalidInput
from gnothi.events import Decided, Event, Listener, Searched, Usage, listen
from gnothi.seeding import question_scope
from gnothi.types import Answer, Question

QUESTION_ID = "ask"


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="QUESTION")
@options.method
@options.model
@options.index
@options.graph
@options.settings
@options.spending
@calibration
@click.option("--choice", "choices", multiple=True, metavar="TEXT", help="A choice to pick the answer from (repeat).")
@click.option("--seed", default=0, show_default=True, help="Seed of everything that is sampled.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of the steps.")
@click.option("--trace", is_flag=True, help="Show every model call and all that was found, too.")
def ask(
    words: tuple[str, ...],
    method: str,
    model: str,
    index: str | None,
    graph: str | None,
    config: Path | None,
    overrides: tuple[str, ...],
    cache: bool | None,
    max_cost: float | None,
    max_tokens: int | None,
    calibration: Path | None,
    anyway: bool,
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
    from gnothi.models import is_remote
    from gnothi.models.remote.budget import spending
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal.steps import Steps, show_answer
    from gnothi.session.resources import model_specs

    if len(words) > 1:
        raise InvalidInput(
            f'got {len(words)} arguments, expected one question. Put it in quotes: gnothi ask "{words[0]} {words[1]} ..."'
        )
    (question,) = words
    if not question.strip():
        raise InvalidInput('got an empty question, expected text, as in: gnothi ask "Who wrote ...?"')
    asked = Question(QUESTION_ID, question.strip(), choices=choices)
    seen: list[Event] = []
    listeners: list[Listener] = [seen.append]
    screen = terminal.console()
    if not as_json:
        listeners.append(Steps(screen, trace))
    settings = options.read(config, overrides, cache)
    say = partial(click.echo, err=True)
    settings = with_calibration(calibration, anyway, model, [method], settings, say)
    check_probes(anyway, model, [method], settings)
    models = model_specs(model, [method], settings)
    budget = options.budget(models, max_cost, max_tokens)
    # On a terminal the spinner runs below the steps; where they go to a file or a program, it says on stderr what is opened.
    with terminal.Waiting(f"opening model {model} ...", screen if screen.is_terminal and not as_json else None) as waiting:
        ready = waiting.stop if not (screen.is_terminal or as_json) else partial(waiting.say, "thinking ...")
        with spending(budget):
            outcome = asyncio.run(answer(asked, method, model, index, settings, seed, listeners, ready, graph))
    remote = any(map(is_remote, models))
    doubt = probability_wrong(calibration, method, settings, seen) if calibration else None
    if as_json:
        charged = {"charged": budget.as_dict()} if remote else {}
        calibrated = {"probability_wrong": doubt} if calibration else {}
        terminal.print_json(document(asked, outcome, seen, trace) | calibrated | charged)
    else:
        show_answer(screen, outcome.answer, Usage.of(seen), outcome.seconds, budget.describe() if remote else "", doubt)


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer, who gave it and how long it took once everything was open."""

    answer: Answer
    method: str
    model: str
    index: str | None
    seconds: float
    graph: str | None = None


async def answer(
    question: Question,
    method: str,
    model: str,
    index: str | None,
    settings: Settings,
    seed: int,
    listeners: Sequence[Listener],
    ready: Callable[[], None],
    graph: str | None = None,
) -> Outcome:
    """Open what is needed, call ``ready``, and answer, with ``listeners`` hearing of everything the method does."""
    from gnothi.session.resources import open_resources

    async with open_resources(model, index, settings, [method], graph) as resources:
        run = resources.method(method)
        ready()
        with contextlib.ExitStack() as stack:
            for listener in listeners:
                stack.enter_context(listen(listener))
            stack.enter_context(question_scope(seed, question.id))
            started = time.perf_counter()
            result = await run(question)
            seconds = time.perf_counter() - started
        name, facts = [source.name if source else None for source in (resources.retriever, resources.graph)]
        return Outcome(result, method, resources.model.name, name, seconds, facts)


def document(question: Question, outcome: Outcome, seen: Sequence[Event], trace: bool = False) -> dict[str, Any]:
    """What ``--json`` prints. ``retrievals`` is their number; ``searches`` tells each one's query and what it found."""
    usage = Usage.of(seen)
    result = {
        "question": question.text,
        "method": outcome.method,
        "model": outcome.model,
        "index": outcome.index,
        "graph": outcome.graph,
        "answer": outcome.answer.text,
        "rationale": outcome.answer.rationale,
        "uncertainty": outcome.answer.uncertainty,
        "evidence": [asdict(passage) for passage in outcome.answer.evidence],
        "retrievals": usage.retrievals,
        "searches": [
            {"query": event.query, "passages": [found.passage.id for found in event.passages]}
            for event in seen
            if isinstance(event, Searched)
        ],
        "decisions": [without_tag(event) for event in seen if isinstance(event, Decided)],
        "usage": asdict(usage) | {"seconds": outcome.seconds},
    }
    return result | ({"events": [event.as_dict() for event in seen]} if trace else {})


def probability_wrong(file: Path, method: str, settings: Settings, seen: Sequence[Event]) -> float | None:
    """P(the answer from memory is wrong) by the calibration's curve. None where there is none, or it says nothing: of an answer
    after a retrieval, without a score of its signal, or with one that stopped as soon as the threshold was decided."""
    from gnothi.calibration.file import read
    from gnothi.cli.evaluate import resolved_settings

    found = read(file)
    decided = [event for event in seen if isinstance(event, Decided) and event.kind == "retrieve"]
    scores = [event.score for event in decided if event.signal == found.signal and event.score is not None]
    stops = resolved_settings([method], settings).get(f"method.{method}.schedule", "at_once") != "at_once"
    if Usage.of(seen).retrievals or stops or not scores or len(scores) < len(decided):
        return None
    return found.probability_wrong(max(scores))


def without_tag(event: Event) -> dict[str, Any]:
    return {key: value for key, value in event.as_dict().items() if key != "event"}
