"""``gnothi calibrate``: a threshold for one model, by what it is worth or with a guarantee, and probabilities from scores."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.calibration.source import Source, check_used, from_replay, replay_of
from gnothi.cli import options
from gnothi.cli.evaluate import SOME_FAILED, Job, check_workers, run_one
from gnothi.cli.spending import spending
from gnothi.config import Given
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName

if TYPE_CHECKING:
    from gnothi.calibration.choose import Chosen
    from gnothi.calibration.file import Calibration
    from gnothi.runs.rows import Row


@click.command()
@click.argument("dataset", metavar="DATASET|RUN|FILE")
@click.option(
    "--method",
    default="seakr",
    show_default=True,
    metavar="NAME",
    help="The method whose gate is calibrated; see `gnothi methods`.",
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Where it is written (TOML)."
)
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
@click.option("--metric", metavar="NAME", help="When an answer is right. [default: em; contained for recorded outcomes]")
@click.option("--never", metavar="NAME", help="What stands for never retrieving, in a run or a file of outcomes.")
@click.option("--always", metavar="NAME", help="What stands for always retrieving, in a run or a file of outcomes.")
@options.model
@options.index
@options.graph
@options.settings
@options.spending
@options.asking
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Draw the reliability diagram (PNG, SVG)."
)
@click.option("--json", "as_json", is_flag=True, help="Print the file's content as one JSON document.")
@click.pass_context
def calibrate(
    ctx: click.Context,
    dataset: str,
    method: str,
    out: Path,
    target_error: float | None,
    epsilon: float,
    price: float | None,
    signal: str | None,
    metric: str | None,
    never: str | None,
    always: str | None,
    model: str,
    index: str | None,
    graph: str | None,
    config: Path | None,
    overrides: tuple[str, ...],
    cache: bool | None,
    max_cost: float | None,
    max_tokens: int | None,
    limit: int | None,
    seed: int,
    format: str | None,
    concurrency: int,
    workers: int,
    max_failures: int | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Choose the threshold of a gate for one model, on questions with known answers.

    \b
    gnothi calibrate lab-train --method seakr --target-error 0.1 --out lab.toml
    gnothi calibrate runs/lab --price 0.05 --out priced.toml
    gnothi calibrate trivia.test.jsonl --signal eigen_score --target-error 0.3 --out t.toml
    gnothi eval lab --method seakr --calibration lab.toml --out runs/calibrated

    A data set is asked with the gate shut (and, for --price, open); the answers are kept in FILE.runs, so that the same command
    goes on after an interruption. A run of `gnothi eval` or a file of recorded outcomes needs no model: all of it counts, and
    flags about asking (--limit, --set, --index ...) are refused. Exit code 1: some questions failed, and the threshold and its
    guarantee come from the others.
    """
    from gnothi.calibration import file as calibration_file
    from gnothi.calibration.choose import choose
    from gnothi.calibration.probes import calibrating_warning, check_probes, learnt_from
    from gnothi.report.terminal import calibration_table
    from gnothi.report.terminal import console as terminal
    from gnothi.runs.rows import jsonable
    from gnothi.runs.runner import fingerprint
    from gnothi.session.resources import load_questions, model_specs

    settings = options.read(config, overrides, cache)
    typed = {
        option.name: option.opts[0]
        for option in ctx.command.params
        if option.name and ctx.get_parameter_source(option.name) is click.core.ParameterSource.COMMANDLINE
    }
    replayed = replay_of(dataset, metric, never, always)
    check_used(dataset, typed, replayed is not None)
    if replayed is not None:
        source = from_replay(replayed, method if "method" in typed else None, signal, model if "model" in typed else "")
        for warning in source.warnings:
            click.echo(warning, err=True)
    else:
        weigh = price is not None or target_error is None
        check_probes(None, model, [method], settings)
        questions = load_questions(dataset, format, limit)
        for spec in learnt_from(dataset, [method], settings, fingerprint(questions)):
            click.echo(calibrating_warning(spec, dataset), err=True)
        models = model_specs(model, [method], settings)
        budget = options.budget(models, max_cost, max_tokens)
        check_workers(workers, models)
        job = Job(
            dataset=dataset,
            questions=questions,
            methods=[method],
            model=model,
            index=index,
            graph=graph,
            settings=settings,
            limit=limit,
            format=format,
            seed=seed,
            concurrency=concurrency,
            workers=workers,
            max_failures=max_failures,
        )
        folder = out.with_name(out.name + ".runs")
        with spending(budget, models, folder, err=True):
            source = _ask(job, metric or "em", folder, weigh)
    if source.failed:
        click.echo(_left_out(source), err=True)
    chosen = choose(source.sample, target_error, price, epsilon)
    made = _calibration(source, chosen)
    calibration_file.write(made, out)
    if plot is not None:
        if chosen.probabilities is None:
            raise InvalidInput(
                "no reliability diagram: got (almost) only right or wrong answers, expected at least ten of each."
            )
        from gnothi.report.figures.reliability import save

        save(chosen.probabilities, f"{source.signal} on {source.dataset}", plot)
    if as_json:
        terminal.print_json(jsonable(calibration_file.as_dict(made)))
    else:
        calibration_table.show(terminal.console(), made, chosen)
        click.echo(f"calibration: {out}" + (f" (diagram: {plot})" if plot else ""))
    return SOME_FAILED if source.failed else 0


def _left_out(source: Source) -> str:
    error = source.failed[0].error or {}
    return (
        f"warning: {source.failures} questions of {source.dataset} failed and are left out (the first with "
        f"{error.get('type')}: {error.get('message')}). The threshold and any guarantee come from the other "
        f"{len(source.sample.scores)} and hold for questions like these; of questions like those that failed they say nothing. "
        "Remove the cause and try them again."
    )


def _calibration(source: Source, chosen: Chosen) -> Calibration:
    from gnothi.calibration.file import Calibration, details_of
    from gnothi.models.identity import Identity, identify

    return Calibration(
        method=source.method,
        signal=source.signal,
        threshold=source.sign * chosen.threshold,
        model=identify(source.model) if source.model else Identity(""),
        dataset=source.dataset,
        questions=chosen.n,
        failures=source.failures,
        answers_of=source.answers_of,
        metric=source.metric,
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        fires="above" if source.sign > 0 else "below",
        data_fingerprint=source.fingerprint,
        settings=source.settings,
        details=details_of(chosen, source.sign),
    )


# --- where scores and outcomes come from ----------------------------------------------------------------------------


def _ask(job: Job, metric: str, folder: Path, weigh: bool) -> Source:
    """With the gate shut: whether the method's own answers from memory are right, and the scores on the way to them. To
    ``weigh`` retrievals, with the gate open, too."""
    import numpy as np

    from gnothi.calibration.apply import gate_of, speaker_of
    from gnothi.calibration.choose import Sample
    from gnothi.methods import gating_of
    from gnothi.metrics import METRICS
    from gnothi.runs.runner import fingerprint

    if metric not in METRICS:
        raise UnknownName("metric", metric, METRICS)
    (method,) = job.methods
    gate = gate_of(method, job.settings)
    if gate is None or gate.signal is None:
        expected = "Expected a method whose gate holds a signal against a threshold, as seakr, or the folder of a run."
        if gating := gating_of(method):
            what, expected = "asks no signal before it retrieves", f"Name one: --set {gating.signal}=perplexity, say."
        elif method == "keqa":
            what = "asks nothing before it retrieves with assess=false: every quiz is looked up"
        else:
            what = "has no gate with a threshold"
        raise InvalidSetting(f"--method: got {method!r}, which {what}. {expected}")
    shut = _run(job, folder / "shut", gate.key, gate.at(float("inf")) | gate.measured())
    open_ = _run(job, folder / "open", gate.key, gate.at(float("-inf"))) if weigh else None
    scores, never, always = _paired(shut, open_, metric)
    return Source(
        sample=Sample(np.array(scores), np.array(never), None if always is None else np.array(always)),
        method=method,
        signal=gate.signal,
        answers_of=method,
        dataset=job.dataset,
        metric=metric,
        model=speaker_of(method, job.model, job.settings),
        fingerprint=fingerprint(job.questions),
        settings=gate.settings,
        failed=[row for row in [*shut, *(open_ or ())] if row.failed],
    )


def _run(job: Job, folder: Path, key: str, changed: Mapping[str, Any]) -> list[Row]:
    """The rows of the job with its gate's threshold, called ``key``, replaced by what is ``changed``."""
    (method,) = job.methods
    given = {name: one for name, one in job.settings.given.items() if name != key}
    given |= {f"{method}.{name}": Given(value, "gnothi calibrate") for name, value in changed.items()}
    return run_one(replace(job, settings=replace(job.settings, given=given)), folder)


def _paired(
    shut: Sequence[Row], open_: Sequence[Row] | None, metric: str
) -> tuple[list[float], list[float], list[float] | None]:
    """Scores, quality with the gate shut and open, of the questions that have all of them."""
    from gnothi.calibration.from_run import replay_scores
    from gnothi.runs.rows import scored

    scores, never = replay_scores(shut, trusts_all=True), scored(shut)
    always = None if open_ is None else scored(open_)
    common = [question for question in never if question in scores and (always is None or question in always)]
    return (
        [scores[question] for question in common],
        [never[question].metrics[metric] for question in common],
        None if always is None else [always[question].metrics[metric] for question in common],
    )
