"""A threshold for one model, chosen on questions with known answers: asked for it, or recorded before."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gnothi.calibration.choose import FEWEST, Chosen, Sample
from gnothi.calibration.comparisons import Compared, Comparisons
from gnothi.calibration.file import Calibration, details_of, kept_scores
from gnothi.calibration.from_run import replay_scores
from gnothi.calibration.probes import calibrating_warning, learnt_from
from gnothi.calibration.replay import Replay
from gnothi.calibration.sentence_answers import check_exact_match
from gnothi.calibration.source import Source
from gnothi.calibration.stopping import Paths
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName, counted
from gnothi.filtering.learned import GateSource
from gnothi.methods.planned import PlannedMethod, name_of
from gnothi.methods.steps.gating import GateSpec
from gnothi.metrics import METRICS
from gnothi.models.identity import Identity, identify
from gnothi.models.remote.budget import Budget
from gnothi.roles import GATED
from gnothi.runs.rows import Row, scored
from gnothi.session.execute import claimed, execute
from gnothi.session.plan import Plan, form_of
from gnothi.session.resources import Key
from gnothi.session.watch import Watch
from gnothi.signals.drawing import KIND
from gnothi.signals.registry import SECTION
from gnothi.signals.stopping import COLLECTING, groups
from gnothi.signals.stopping import KEY as STOPPING
from gnothi.stats import guarantee
from gnothi.stats.arrays import Floats
from gnothi.stats.guarantee import EPSILON

METRIC = "em"
RUNS = ".runs"
"""Behind the name of the calibration: the folder of the answers that it was chosen on."""


async def collect(
    plan: Plan,
    metric: str,
    folder: Path,
    weigh: bool,
    watch: Watch | None = None,
    have: dict[Key, Any] | None = None,
    budget: Budget | None = None,
    stop_early: bool = False,
) -> Source:
    """With the gate shut: whether the method's own answers from memory are right, and the scores on the way to them. To
    ``weigh`` retrievals, with the gate open, too; with ``stop_early`` also the scores of fewer samples, and of a second draw.
    Answers are kept in ``folder``, so that the same call goes on.

    Raises UnknownName for a metric, InvalidSetting for a method without a threshold, and what running raises."""
    check_metric(metric)
    check_enough(plan)
    (method,) = plan.methods
    gate, signal = gate_to_place(plan, stop_early)
    asked, told = plan.questions, "gnothi calibrate"
    watch = watch or Watch()
    for spec in learnt_from(plan.methods, asked.dataset, asked.fingerprint):
        watch.warn(calibrating_warning(spec, asked.dataset))
    drawing = {STOPPING: COLLECTING if stop_early else None} if gate.stops else {}
    shut_plan = plan.changed(gate.collecting() | drawing, told)
    with claimed(shut_plan, folder / ("twice" if stop_early else "shut"), "gate shut", held=True) as shut_run:
        if weigh:
            open_plan = plan.changed(gate.at(float("-inf")) | drawing, told)
            with claimed(open_plan, folder / ("open_twice" if stop_early else "open"), "gate open", held=True) as open_run:
                shut, open_ = await execute([shut_run, open_run], watch, have, budget)
        else:
            (shut,) = await execute([shut_run], watch, have, budget)
            open_ = []
    check_exact_match([*shut, *open_], metric)
    scores, never, always = _paired(shut, open_ if weigh else None, metric)
    drawn = gate.values[f"{SECTION}.samples"] if stop_early else 0
    paths = _paths(shut, scores, drawn) if stop_early else None
    compared = _compared(shut, open_, scores, drawn, metric) if stop_early else None
    values = np.array([*scores.values()])
    return Source(
        sample=Sample(values, np.array(never), None if always is None else np.array(always), paths, compared),
        method=method.name,
        signal=signal,
        answers_of=method.name,
        dataset=asked.dataset,
        metric=metric,
        model=name_of(method.speaker(plan.sources.model)),
        fingerprint=asked.fingerprint,
        settings=gate.settings,
        precision=shut_run.folder.precision,
        form=form_of(plan.sources.model, plan.models),
        failed=[row for row in [*shut, *open_] if row.failed],
    )


def check_metric(metric: str) -> None:
    """Raises UnknownName."""
    if metric not in METRICS:
        raise UnknownName("metric", metric, METRICS)


def check_enough(plan: Plan, target_error: float | None = None, epsilon: float = EPSILON) -> None:
    """Raises InvalidInput for so few questions with a gold answer that nothing could be chosen, PromiseRefused that nothing
    could be promised: before any is asked."""
    known = sum(bool(question.answers) for question in plan.questions.questions)
    if known < FEWEST:
        raise InvalidInput(
            f"cannot calibrate on {plan.questions.dataset}: got {counted(known, 'question')} with a known answer, expected at "
            f"least {FEWEST}, better a few hundred. Nothing was asked."
        )
    if target_error is not None:
        guarantee.check_enough(known, target_error, epsilon)


def gate_to_place(plan: Plan, stop_early: bool = False) -> tuple[GateSpec, str]:
    """That of the plan's only method, and its signal. Raises InvalidSetting where it holds no signal against a threshold, or
    one that draws no samples is to ``stop_early``."""
    (method,) = plan.methods
    gate = method.gate
    if gate is None or gate.signal is None:
        raise InvalidSetting(_no_gate(method))
    if stop_early and not gate.stops:
        why = f"signal {gate.signal!r} draws no samples" if gate.tries is None else "tries stop as soon as they are decided"
        raise InvalidSetting(
            f"<--stop-early>: got it with {method.name}, whose {why}: there is nothing to choose. Leave it out."
        )
    return gate, gate.signal


async def collect_panel(
    plan: Plan,
    metric: str,
    folder: Path,
    watch: Watch | None = None,
    have: dict[Key, Any] | None = None,
    budget: Budget | None = None,
) -> Replay:
    """The scores of all signals beside the answers from memory, and the answers of always retrieving, from a ``plan`` of both
    methods. Raises UnknownName for a metric."""
    from gnothi.calibration.compare import read

    check_metric(metric)
    check_enough(plan)
    with claimed(plan, folder) as run:
        await execute([run], watch, have, budget)
    return read(folder, metric, None, None)


def announced(questions: int, times: int, folder: Path) -> str:
    """What is about to be asked, for who waits."""
    how = "from memory, then with a search" if times > 1 else "from memory"
    return (
        f"{questions} questions are asked {how}; an estimate follows after the first answers. They are kept in {folder}: run "
        "the same command again to resume."
    )


def made(source: Source, chosen: Chosen) -> Calibration:
    """What is written: the threshold with everything that it depends on."""
    return Calibration(
        method=source.method,
        signal=source.signal,
        threshold=source.sign * chosen.threshold,
        model=source.identity or (identify(source.model) if source.model else Identity("")),
        dataset=source.dataset,
        questions=chosen.n,
        failures=source.failures,
        answers_of=source.answers_of,
        metric=source.metric,
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        fires="above" if source.sign > 0 else "below",
        data_fingerprint=source.fingerprint,
        settings=source.settings,
        precision=source.precision,
        form=source.form,
        details=details_of(chosen, source.sign),
        scores=() if source.judged else kept_scores(source.sign * chosen.scores),
        stopping=None if chosen.stopping is None else str(chosen.stopping),
    )


def _no_gate(method: PlannedMethod) -> str:
    expected = (
        f"Expected a method whose gate compares a signal with a threshold, such as {GATED}; or give the folder of a run in "
        "place of the questions."
    )
    what = "has no gate with a threshold"
    if GateSource in method.spec.resources.values() and (not method.spec.gate or "learned" in method.named):
        what = "decides by a gate that is learnt, not by one signal"
        expected = "Give costs and guarantees when you learn the gate: `gnothi calibrate --learn RUN --target-error 0.1`."
    elif method.spec.gate:
        what, instead = method.spec.gate.undecided
        expected = instead or expected
    return f"<--method>: got {method.name!r}, which {what}. {expected}"


def _paired(
    shut: Sequence[Row], open_: Sequence[Row] | None, metric: str
) -> tuple[dict[str, float], list[float], list[float] | None]:
    """Scores by question, quality with the gate shut and open, of the questions that have all of them."""
    scores, never = replay_scores(shut, trusts_all=True), scored(shut)
    always = None if open_ is None else scored(open_)
    common = [question for question in never if question in scores and (always is None or question in always)]
    return (
        {question: scores[question] for question in common},
        [never[question].metrics[metric] for question in common],
        None if always is None else [always[question].metrics[metric] for question in common],
    )


def _paths(shut: Sequence[Row], asked: Mapping[str, float], samples: int) -> Paths:
    """What fewer samples, and a second draw, say in each decision of the questions ``asked``, in their order."""
    number = {question: place for place, question in enumerate(asked)}
    found = [(number[row.question_id], one) for row in shut if row.question_id in number for one in row.gate()]
    # The gate is shut: where it fires, that is whatever the score.
    scores = [
        [[np.inf if score is None or one["verdict"] == "retrieve" else score for score in draw] for draw in one["draws"]]
        for _, one in found
    ]
    return Paths(groups(samples), np.array(scores, dtype=np.float64), np.array([place for place, _ in found]))


def _compared(shut: Sequence[Row], open_: Sequence[Row], asked: Mapping[str, float], samples: int, metric: str) -> Compared:
    """What fewer samples, and a second draw, say of all that is compared with the gate open, and of what is compared with
    nothing while it is shut, about the questions ``asked``, in their order."""
    number = {question: place for place, question in enumerate(asked)}
    together = [(number[row.question_id], one) for row in open_ if row.question_id in number for one in _draws(row, samples)]
    together = [(question, one) for question, one in together if len(one) > 1]
    lone = [(row.metrics[metric] < 1, one) for row in shut if row.metrics for one in _draws(row, samples) if len(one) == 1]
    made = Comparisons.among(groups(samples), [one for _, one in together], [question for question, _ in together])
    scores = np.array([one[0] for _, one in lone]).reshape(-1, 2, len(groups(samples)))
    return Compared(made, scores, np.array([wrong for wrong, _ in lone], dtype=bool))


def _draws(row: Row, samples: int) -> Iterator[Floats]:
    """The scores of each of its comparisons, shape (prompts, 2, groups)."""
    for one in row.decisions:
        if one["kind"] == KIND and one.get("draws"):
            scores = [[np.inf if score is None else score for score in draw] for draw in one["draws"]]
            yield np.array(scores, dtype=np.float64).reshape(-1, 2, len(groups(samples)))
