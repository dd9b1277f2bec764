"""``gnothi.calibrate``: a threshold for a method's gate, on questions with known answers."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi import methods
from gnothi.api import given
from gnothi.api.evaluate import evaluate, planned
from gnothi.api.given import refuse_running_loop
from gnothi.api.rag import Rag
from gnothi.calibration.choose import Chosen, choose
from gnothi.calibration.feedback import check_choice, from_feedback
from gnothi.calibration.file import Calibration
from gnothi.calibration.replay import Replay
from gnothi.calibration.source import Source, from_replay, replay_of
from gnothi.errors import InvalidSetting
from gnothi.methods.planned import name_of
from gnothi.roles import ALWAYS, EVERY_SIGNAL, GATED
from gnothi.session.calibrate import (
    METRIC,
    RUNS,
    announced,
    check_enough,
    check_metric,
    collect,
    collect_panel,
    gate_to_place,
    made,
)
from gnothi.session.watch import Watch
from gnothi.stats.guarantee import EPSILON
from gnothi.types import Question

if TYPE_CHECKING:
    from gnothi.protocols import Method

_READING = {"limit", "format", "concurrency", "max_failures"}
"""How questions are read and asked, also of what is open."""


def calibrate(
    method: str | Rag | type[Method] | Callable[..., Any] | None,
    data: str | os.PathLike[str] | Sequence[Question] | None = None,
    *,
    feedback: str | os.PathLike[str] | None = None,
    target_error: float | None = None,
    search_cost: float | None = None,
    epsilon: float = EPSILON,
    metric: str | None = None,
    out: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    format: str | None = None,
    signal: str | None = None,
    never: str | None = None,
    always: str | None = None,
    stop_early: bool = False,
    concurrency: int | None = None,
    max_failures: int | None = None,
    watch: Watch | None = None,
    **opening: Any,
) -> Calibration:
    """Choose the threshold of a method's gate, for one model.

    ``method``: what ``gnothi.open`` returned, or a name (then ``opening`` are arguments of ``gnothi.open``); with ``"panel"``
    every signal is measured, and the one that is worth most is taken, or the ``signal`` that is named (a ``target_error``
    needs one). ``data``:
    questions with known answers, as for ``gnothi.evaluate``; or the folder of a run, or a file of recorded outcomes,
    which need no model (then ``method`` may be None, and ``signal``, ``never`` and ``always`` say which of what it holds).
    ``feedback``, in place of data: a file of judged answers that ``gnothi serve`` kept; it needs ``target_error``, and can only
    confirm a threshold or lower it (``gnothi.calibration.feedback``).
    ``target_error``: with probability 1 - ``epsilon`` over the draw of the questions, at most this share of the answers given
    without retrieval is wrong. ``search_cost``: what a retrieval costs, as a share of right answers. ``stop_early``: choose a
    rule, too, by which samples are drawn only until the side of the threshold is decided. ``out``: a TOML file;
    answers are kept beside it, so that the same call goes on. ``watch`` hears of everything on the way, as for
    ``gnothi.evaluate``.

    Raises PromiseRefused where the questions are too few for the guarantee, InvalidInput, InvalidSetting, and as
    ``gnothi.open``.
    """
    refuse_running_loop("calibrate()", "gnothi.acalibrate(...)")
    file = None if out is None else given.as_path(out, "out")
    if (data is None) is (feedback is None):
        raise InvalidSetting(
            f"calibrate(): got {'neither' if data is None else 'both'} data and feedback, expected one of them."
        )
    named = None if data is None else given.as_data(data)
    replay = replay_of(named, metric, never, always) if isinstance(named, str) else None
    if signal is not None and replay is None and feedback is None and _name(method) != EVERY_SIGNAL:
        raise InvalidSetting(
            f"signal: got {signal!r} with questions to be asked, expected none: the gate has its own. Set it where the "
            "method is opened, and give that: gnothi.open(METHOD, signal=...)."
        )
    args = {"limit": limit, "format": format, "concurrency": concurrency, "max_failures": max_failures, **opening}
    judged = None if feedback is None else given.as_path(feedback, "feedback")
    choice = Choice(target_error, search_cost, epsilon, stop_early)
    found = choice.of(source_from(method, named, replay, judged, choice, metric, signal, file, watch or Watch(), args))
    return found.calibration if file is None else found.calibration.save(file)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a threshold is chosen by, as for ``calibrate``."""

    target_error: float | None
    search_cost: float | None
    epsilon: float = EPSILON
    stop_early: bool = False

    @property
    def weighs(self) -> bool:
        """Whether what a retrieval brings counts, for which the answers with one have to be known."""
        return self.search_cost is not None or self.target_error is None

    def of(self, source: Source) -> Calibrated:
        """Raises InvalidInput or PromiseRefused where none can be chosen."""
        chosen = choose(source.sample, self.target_error, self.search_cost, self.epsilon)
        return Calibrated(made(source, chosen), chosen)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration, and how its threshold was chosen."""

    calibration: Calibration
    chosen: Chosen


def source_from(
    method: Any,
    data: Any,
    replay: Replay | None,
    feedback: Path | None,
    choice: Choice,
    metric: str | None,
    signal: str | None,
    file: Path | None,
    watch: Watch,
    args: Mapping[str, Any],
) -> Source:
    """What a threshold is chosen on: judged answers, what was recorded, or else what ``data`` comes to when it is asked, which
    for the panel is a replay of all signals. ``method`` and ``signal`` are None where nobody named them. ``args``: arguments
    of ``evaluate`` for what is asked, and settings of the method by name; of what was recorded, the model's name alone
    counts. ``watch`` is warned of what may mislead. Raises as ``calibrate``."""
    model = None if (given_model := args.get("model")) is None else name_of(given_model)
    recorded = feedback is not None or replay is not None
    if choice.stop_early and (recorded or _name(method) == EVERY_SIGNAL):
        got = "the signals of the panel" if _name(method) == EVERY_SIGNAL else "recorded answers"
        raise InvalidSetting(
            f"<--stop-early>: got {got}, which lack the scores of fewer samples and of a second draw. Give questions to ask, "
            f"and a method with one signal, such as {GATED}."
        )
    if not recorded and _name(method) == EVERY_SIGNAL and signal is None and choice.target_error is not None:
        raise InvalidSetting(
            "<--signal>: got none, expected the signal that <--target-error> is to hold for. Let <--search-cost> alone choose "
            "one on other questions, and name it."
        )
    if feedback is not None:
        check_choice(choice.target_error, choice.search_cost)
        found: Source | Replay = from_feedback(feedback, _name(method), signal, model)
    else:
        found = replay or _asked(method, data, choice, metric or METRIC, file, watch, args)
    if not isinstance(found, Source):
        # A guarantee does not hold for a signal that was chosen on the same questions.
        at = (choice.search_cost or 0.0) if choice.target_error is None else None
        found = from_replay(found, _name(method), signal, (replay and model) or "", at)
    for warning in (*found.warnings, *([found.left_out] if found.failed else ())):
        watch.warn(warning)
    return found


async def acalibrate(method: Any, data: Any, **keywords: Any) -> Calibration:
    """As ``calibrate``, awaited."""
    return await asyncio.to_thread(calibrate, method, data, **keywords)


def _name(method: Any) -> str | None:
    return method.method if isinstance(method, Rag) else methods.spec(method).name if callable(method) else method


def _asked(
    method: Any, data: Any, choice: Choice, metric: str, file: Path | None, watch: Watch, args: Mapping[str, Any]
) -> Source | Replay:
    """What the gate's decisions come to on the questions; of the panel a replay of all signals, beside the answers of always
    retrieving. What it cannot be asked for is refused before anything is opened."""
    check_metric(metric)
    parameters, method = inspect.signature(evaluate).parameters, method or GATED
    settings = {key: value for key, value in args.items() if key not in parameters}
    args = {key: value for key, value in args.items() if key in parameters}
    if isinstance(method, Rag):
        if extra := [*settings, *(args.keys() - _READING)]:
            raise InvalidSetting(f"got {extra[0]!r} with a gnothi.Rag, which is open: give it to gnothi.open.")
        args["seed"] = method.plan.execution.seed
    elif settings:
        given.check_keywords(settings, str(_name(method)), parameters)
        args["settings"] = settings
    panel = _name(method) == EVERY_SIGNAL
    bound = inspect.signature(evaluate).bind(data, [method, ALWAYS] if panel else [method], "", **args)
    bound.apply_defaults()
    plan, rag = planned(bound.arguments)
    if not panel:
        gate_to_place(plan, choice.stop_early)
    check_enough(plan, choice.target_error, choice.epsilon)
    have, budget = (dict(rag.opened.others), rag.budget) if rag else (None, args.get("budget"))
    with contextlib.ExitStack() as stack:
        folder = file and file.with_name(file.name + RUNS)
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gnothi-")))
        watch.info(announced(len(plan.questions.questions), 2 if panel else 1 + choice.weighs, folder))
        work: Coroutine[Any, Any, Source | Replay] = (
            collect_panel(plan, metric, folder, watch, have, budget)
            if panel
            else collect(plan, metric, folder, choice.weighs, watch, have, budget, choice.stop_early)
        )
        return rag.loop.run(work) if rag else asyncio.run(work)
