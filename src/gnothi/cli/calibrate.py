"""``gnothi calibrate``: a threshold for one model, by what it is worth or with a guarantee, and probabilities from scores."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.cli import options
from gnothi.cli.evaluate import SOME_FAILED, Job, check_workers, run_one
from gnothi.cli.spending import spending
from gnothi.config import Given
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName

if TYPE_CHECKING:
    from gnothi.evaluation.calibrating import Chosen, Sample
    from gnothi.evaluation.calibration_file import Calibration
    from gnothi.evaluation.replay import Replay
    from gnothi.evaluation.rows import Row


@dataclass(frozen=True, slots=True)
class Source:
    """What is calibrated on, and what it is the calibration of. ``answers_of`` names what stands for never retrieving;
    ``failed`` are rows of questions left out of the sample."""

    sample: Sample
    method: str | None
    signal: str
    answers_of: str
    dataset: str
    metric: str
    model: str
    sign: int = 1
    fingerprint: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    failed: Sequence[Row] = ()

    @property
    def failures(self) -> int:
        return len({row.question_id for row in self.failed})


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
@click.option("--signal", metavar="NAME", help="Which of the recorded signals, where there are several.")
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
    gnothi calibrate runs/lab --price 0.05 --out lab.toml
    gnothi calibrate trivia.test.jsonl --signal eigen_score --target-error 0.3 --out t.toml
    gnothi eval lab --method seakr --calibration lab.toml --out runs/calibrated

    A data set is asked with the gate shut (and, for --price, open); the answers are kept in FILE.runs, so that the same command
    goes on after an interruption. A run of `gnothi eval` or a file of recorded outcomes needs no model. Exit code 1: some
    questions failed, and the threshold and its guarantee come from the others.
    """
    from gnothi.cli import calibration_table, terminal
    from gnothi.cli.probed import check_probes, learnt_from
    from gnothi.cli.resources import load_questions, model_specs
    from gnothi.evaluation import calibration_file
    from gnothi.evaluation.calibrating import choose
    from gnothi.evaluation.rows import jsonable
    from gnothi.evaluation.runner import fingerprint

    settings = options.read(config, overrides, cache)
    given_model, given_method = (
        value if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT else None
        for name, value in (("model", model), ("method", method))
    )
    replayed = _replay(dataset, metric, never, always)
    if replayed is not None:
        source = _from_replay(replayed, given_method, signal, given_model or "")
    else:
        weigh = price is not None or target_error is None
        check_probes(None, model, [method], settings)
        questions = load_questions(dataset, format, limit)
        for spec in learnt_from(dataset, [method], settings, fingerprint(questions)):
            click.echo(
                f"warning: the probe {spec} learnt from questions of {dataset}, so it does better on them than on others, "
                "and no guarantee holds. Calibrate on questions that it has not seen.",
                err=True,
            )
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
        from gnothi.evaluation.reliability_figure import save

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
    from gnothi.evaluation.calibration_file import Calibration, details_of
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


def _replay(dataset: str, metric: str | None, never: str | None, always: str | None) -> Replay | None:
    """What was recorded; None for a data set, whose questions are to be asked."""
    from gnothi.evaluation.gates import read
    from gnothi.evaluation.recorded import is_recorded

    path = Path(dataset)
    if path.is_dir() or (path.is_file() and (never or always or is_recorded(path))):
        return read(path, metric, never, always)
    if never or always:
        raise InvalidSetting(f"--never and --always name answers of a run or a file of outcomes, got the data set {dataset!r}.")
    return None


def _from_replay(replay: Replay, method: str | None, signal: str | None, model: str) -> Source:
    """``method`` and ``signal`` where they were given; where they were not, there has to be just one."""
    from gnothi.cli.calibrated import scores_depend_on
    from gnothi.evaluation.calibrating import Sample

    found = {one.name: one for one in replay.signals}
    if not found:
        raise InvalidInput(
            f"{replay.source} holds no scores: there is no gate to calibrate. Expected a run with a gated method."
        )
    if signal is not None and signal not in found:
        raise UnknownName(f"signal of {replay.source}", signal, found)
    methods = dict.fromkeys(one.method for one in found.values() if one.method)
    if method is not None and methods and method not in methods:
        raise UnknownName(f"method with a gate of {replay.source}", method, methods)
    fitting = [one for name, one in found.items() if signal in (None, name) and (not methods or method in (None, one.method))]
    if len(fitting) != 1:
        several = len(methods) > 1 and method is None
        flag, names = ("--method", methods) if several else ("--signal", [one.name for one in fitting] or found)
        raise InvalidSetting(f"{flag}: expected one of those that {replay.source} holds: {', '.join(names)}.")
    (scores,) = fitting
    prefix = f"method.{scores.method}."
    recorded = {key.removeprefix(prefix): value for key, value in replay.settings.items() if key.startswith(prefix)}
    if replay.settings.get(f"{prefix}schedule", "at_once") != "at_once":
        raise InvalidSetting(
            f"{scores.method} of {replay.source} stopped asking as soon as its own threshold was decided, so its scores say "
            f"little about others: expected a run with --set {scores.method}.schedule=at_once. Make one, or let gnothi "
            f"calibrate ask a data set itself (gnothi calibrate DATASET --method {scores.method})."
        )
    return Source(
        sample=Sample(scores.values, replay.never, replay.always),
        method=scores.method or None,
        signal=scores.signal or scores.name,
        answers_of=replay.names[0],
        dataset=replay.dataset,
        metric=replay.metric,
        model=model or _speaker_of(replay, scores.method),
        sign=scores.sign,
        fingerprint=str(replay.settings.get("dataset.fingerprint", "")),
        settings=scores_depend_on(recorded | dict(scores.settings)),
        failed=_failed_of(replay),
    )


def _speaker_of(replay: Replay, method: str) -> str:
    """The model that the method's gate listened to; empty where that is not known."""
    from gnothi import methods

    gating = methods.gating_of(method) if method in methods.names() else None
    named = replay.settings.get(f"method.{method}.{gating.speaker}", "none") if gating else "none"
    return str(replay.settings.get("model.name", "") if named == "none" else named)


def _failed_of(replay: Replay) -> list[Row]:
    """Rows of the run for whose sake questions are missing from the replay."""
    from gnothi.evaluation.run_folder import read_rows

    path = Path(replay.source)
    rows = read_rows(path) if path.is_dir() else []
    return [row for row in rows if row.failed and row.question_id not in replay.questions]


def _ask(job: Job, metric: str, folder: Path, weigh: bool) -> Source:
    """With the gate shut: whether the method's own answers from memory are right, and the scores on the way to them. To
    ``weigh`` retrievals, with the gate open, too."""
    import numpy as np

    from gnothi.cli.calibrated import gate_of, speaker_of
    from gnothi.evaluation.calibrating import Sample
    from gnothi.evaluation.metrics import METRICS
    from gnothi.evaluation.runner import fingerprint

    if metric not in METRICS:
        raise UnknownName("metric", metric, METRICS)
    (method,) = job.methods
    gate = gate_of(method, job.settings)
    if gate is None or gate.signal is None:
        what = "has no gate with a threshold" if gate is None else "asks no signal before it retrieves (--set gate=...)"
        if gate is None and method == "keqa":
            what = "asks nothing before it retrieves with assess=false: every quiz is looked up"
        raise InvalidSetting(
            f"--method: got {method!r}, which {what}; expected one that has, as seakr, or the folder of a run in place of the "
            "data set."
        )
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
    from gnothi.evaluation.comparison import scored
    from gnothi.evaluation.recorded_run import replay_scores

    scores, never = replay_scores(shut, trusts_all=True), scored(shut)
    always = None if open_ is None else scored(open_)
    common = [question for question in never if question in scores and (always is None or question in always)]
    return (
        [scores[question] for question in common],
        [never[question].metrics[metric] for question in common],
        None if always is None else [always[question].metrics[metric] for question in common],
    )
