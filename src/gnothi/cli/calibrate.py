"""``gnothi calibrate``: a threshold for one model, by what it is worth or with a guarantee, and probabilities from scores."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnothi.calibration.feedback import check_choice, from_feedback
from gnothi.calibration.replay import Replay
from gnothi.calibration.source import PANEL, Source, from_replay, replay_of
from gnothi.cli import options
from gnothi.cli.running import SOME_FAILED
from gnothi.cli.saying import say
from gnothi.cli.spending import spending
from gnothi.errors import InvalidInput, InvalidSetting

if TYPE_CHECKING:
    from gnothi.models.remote.budget import Budget
    from gnothi.session.execute import Watch
    from gnothi.session.plan import Plan

_ASKING = "nothing is asked, and no model or index opened"
_UNUSED = {
    "limit": "all of it counts. Leave it out, or give a run or a file of fewer questions",
    "overrides": "its scores were made with settings of their own. Leave it out, or make a run with it (gnothi eval)",
    "config": "its scores were made with settings of their own. Leave it out, or make a run with it (gnothi eval)",
    "format": "it is recognised",
} | dict.fromkeys("index graph seed concurrency workers on gpus max_failures cache max_cost max_tokens".split(), _ASKING)
"""Parameters that a run or a file of recorded outcomes has no use for, and why."""
_JUDGED = dict.fromkeys(("metric", "never", "always"), "people said which answers are right")
"""Those that feedback has no use for, too."""


@click.command()
@click.argument("dataset", metavar="DATASET|RUN|FILE", required=False)
@click.option(
    "--method",
    default="seakr",
    show_default=True,
    metavar="NAME",
    help="The method whose gate is calibrated; see `gnothi methods`.",
)
@options.file("--out", "Where it is written (TOML). [default: METHOD-DATASET.toml, or RUN.toml]")
@click.option(
    "--target-error",
    type=options.PROBABILITY,
    metavar="R",
    help="Guarantee: at most this share of the answers given without retrieval is wrong.",
)
@click.option(
    "--epsilon",
    type=options.PROBABILITY,
    default=0.1,
    show_default=True,
    help="How probable it may be that the guarantee fails.",
)
@click.option(
    "--price",
    type=options.PRICE,
    metavar="P",
    help="Expected utility: what a retrieval costs, as a share of right answers. [default: 0 without --target-error]",
)
@click.option("--signal", metavar="NAME", help="Which of the signals of a run or a file, where there are several.")
@options.file(
    "--feedback", "In place of a data set: what people said of answers (kept by `gnothi serve`). Needs --target-error."
)
@click.option("--metric", metavar="NAME", help="When an answer is right. [default: em; contained for recorded outcomes]")
@click.option("--never", metavar="NAME", help="What stands for never retrieving, in a run or a file of outcomes.")
@click.option("--always", metavar="NAME", help="What stands for always retrieving, in a run or a file of outcomes.")
@options.sources(options.model, options.index, options.graph)
@options.asking
@options.file("--plot", "Draw the reliability diagram (PNG, SVG).")
@click.option("--json", "as_json", is_flag=True, help="Print the file's content as one JSON document.")
@click.pass_context
def calibrate(
    ctx: click.Context,
    dataset: str | None,
    method: str,
    out: Path | None,
    target_error: float | None,
    epsilon: float,
    price: float | None,
    signal: str | None,
    feedback: Path | None,
    metric: str | None,
    never: str | None,
    always: str | None,
    sources: options.Sources,
    asking: options.Asking,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Choose the threshold of a gate for one model, on questions with known answers.

    \b
    gnothi calibrate questions.jsonl --method seakr --model MODEL --index my-index
    gnothi calibrate questions.jsonl --method panel --model MODEL --index my-index
    gnothi calibrate lab-train --method seakr --target-error 0.1 --out lab.toml
    gnothi calibrate runs/lab --price 0.05 --out priced.toml
    gnothi calibrate trivia.test.jsonl --signal eigen_score --target-error 0.3 --out t.toml
    gnothi calibrate --feedback feedback.jsonl --target-error 0.1 --out judged.toml
    gnothi eval lab --method seakr --calibration lab.toml --out runs/calibrated

    A data set is asked with the gate shut (and, for --price, open); the answers are kept in FILE.runs, so that the same
    command goes on after an interruption. With --method panel every signal is measured, and the one that is worth most is
    taken. Where no threshold is worth more than always searching, it says so, and the file makes the gate search always.

    Feedback says whether answers from memory were right, and of those after a search nothing about memory. So it can confirm
    the threshold or lower it, never raise it, and the promise is about answers that people judge.

    A run of `gnothi eval` or a file of recorded outcomes needs no model: all of it counts, and flags about asking (--limit,
    --set, --index ...) are refused.

    Exit code 1: some questions failed, and the threshold and its guarantee come from the others. Exit code 2: nothing can
    be chosen or promised, and nothing is written.
    """
    from gnothi.calibration import file
    from gnothi.calibration.choose import choose
    from gnothi.report.terminal import calibration_table
    from gnothi.report.terminal import console as terminal
    from gnothi.runs.rows import jsonable
    from gnothi.session.calibrate import made

    typed = {
        option.name: option.opts[0]
        for option in ctx.command.params
        if option.name and ctx.get_parameter_source(option.name) is click.core.ParameterSource.COMMANDLINE
    }
    if (dataset is None) is (feedback is None):
        both = "both, and no promise holds for a mixture of questions and judged answers"
        raise InvalidSetting(f"expected either DATASET or --feedback FILE, got {'neither' if dataset is None else both}.")
    if feedback is not None:
        check_choice(target_error, price)
    dataset = dataset or str(feedback)
    replayed = None if feedback else replay_of(dataset, metric, never, always)
    recorded = replayed is not None or feedback is not None
    _check_used(dataset, method, typed, recorded)
    out = out or Path(f"{Path(dataset).stem}.toml" if recorded else f"{method}-{Path(dataset).stem}.toml".replace(":", "-"))
    weigh = price is not None or target_error is None
    if method == PANEL and not recorded:
        replayed = _ask_panel(dataset, sources, asking, metric, out, as_json, target_error, epsilon)
    if feedback is not None:
        one_of = {"method": method, "signal": signal, "model": sources.model}
        source = from_feedback(feedback, **{key: value for key, value in one_of.items() if key in typed})
    elif replayed is None:
        source = _ask(dataset, method, sources, asking, metric, out, weigh, as_json, target_error, epsilon)
    else:
        model = (sources.model or "") if recorded and "model" in typed else ""
        at = (price or 0.0) if weigh else None
        source = from_replay(replayed, method if "method" in typed else None, signal, model, at)
    for warning in source.warnings:
        say(f"warning: {warning}")
    if source.failed:
        say(f"warning: {source.left_out}")
    chosen = choose(source.sample, target_error, price, epsilon)
    found = made(source, chosen).save(out)
    if plot is not None:
        if chosen.probabilities is None:
            raise InvalidInput(
                "no reliability diagram: got (almost) only right or wrong answers, expected at least ten of each."
            )
        from gnothi.report.figures.reliability import save

        save(chosen.probabilities, f"{source.signal} on {source.dataset}", plot)
    if as_json:
        terminal.print_json(jsonable(file.as_dict(found)))
    else:
        calibration_table.show(terminal.console(), found, chosen, source.tried)
        click.echo(f"calibration: {out}" + (f" (diagram: {plot})" if plot else ""))
    return SOME_FAILED if source.failed else 0


def _ask(
    dataset: str,
    method: str,
    sources: options.Sources,
    asking: options.Asking,
    metric: str | None,
    out: Path,
    weigh: bool,
    as_json: bool,
    target_error: float | None,
    epsilon: float,
) -> Source:
    from gnothi.session.calibrate import METRIC, collect

    metric = metric or METRIC
    with _watched(dataset, [method], sources, asking, metric, out, 1 + weigh, as_json, target_error, epsilon) as (
        plan,
        folder,
        watch,
        budget,
    ):
        return asyncio.run(collect(plan, metric, folder, weigh, watch, budget=budget))


def _ask_panel(
    dataset: str,
    sources: options.Sources,
    asking: options.Asking,
    metric: str | None,
    out: Path,
    as_json: bool,
    target_error: float | None,
    epsilon: float,
) -> Replay:
    from gnothi.session.calibrate import METRIC, collect_panel

    metric = metric or METRIC
    with _watched(dataset, [PANEL, "rag"], sources, asking, metric, out, 2, as_json, target_error, epsilon) as (
        plan,
        folder,
        watch,
        budget,
    ):
        return asyncio.run(collect_panel(plan, metric, folder, watch, budget=budget))


@contextlib.contextmanager
def _watched(
    dataset: str,
    methods: Sequence[str],
    sources: options.Sources,
    asking: options.Asking,
    metric: str,
    out: Path,
    times: int,
    as_json: bool,
    target_error: float | None,
    epsilon: float,
) -> Iterator[tuple[Plan, Path, Watch, Budget]]:
    """What is to be asked, so many ``times``, where answers are kept, and who hears of it. What it cannot be asked for is
    refused before that."""
    from gnothi.cli.progress import watching
    from gnothi.session.calibrate import RUNS, announced, check_enough, check_metric, gate_to_place
    from gnothi.session.execute import budget_of
    from gnothi.session.plan import resolve, with_questions

    check_metric(metric)
    plan = resolve(sources.request(methods))
    if len(methods) == 1:
        gate_to_place(plan)
    plan = with_questions(plan, dataset, asking.format, asking.limit, asking.execution)
    check_enough(plan, target_error, epsilon)
    folder, budget = out.with_name(out.name + RUNS), budget_of(plan)
    if not as_json:
        say(announced(len(plan.questions.questions), times, folder))
    with spending(budget, plan.remote, folder, err=True), watching() as watch:
        yield plan, folder, watch, budget


def _check_used(dataset: str, method: str, typed: Mapping[str, str], recorded: bool) -> None:
    """Raises InvalidSetting for a flag that would count for nothing. ``typed`` are the given ones by name of the parameter;
    ``recorded``: the data set is a run or a file of outcomes."""
    if not recorded and "signal" in typed and method != PANEL:
        raise InvalidSetting(
            f"--signal names one of the signals of a run or a file of outcomes, got the data set {dataset!r}. It is asked with "
            "the signal of the method's gate: see `gnothi methods NAME` for the setting, as in --set gate=gram."
        )
    unused = _UNUSED | _JUDGED if "feedback" in typed else _UNUSED
    for name in (name for name in typed if recorded and name in unused):
        what = "a run" if Path(dataset).is_dir() else "feedback" if "feedback" in typed else "a file of recorded outcomes"
        raise InvalidSetting(f"{typed[name]}: got one with {what} ({dataset}), which has no use for it: {unused[name]}.")
