"""``gnothi.calibrate``: a threshold for a method's gate, on questions with known answers."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi import methods
from gnothi.api import given
from gnothi.api.evaluate import evaluate
from gnothi.api.given import refuse_running_loop
from gnothi.api.rag import Rag, _data
from gnothi.api.rag import open as open_rag
from gnothi.calibration.choose import Chosen, choose
from gnothi.calibration.compare import read
from gnothi.calibration.feedback import check_choice, from_feedback
from gnothi.calibration.file import Calibration
from gnothi.calibration.replay import Replay
from gnothi.calibration.source import PANEL, Source, from_replay, replay_of
from gnothi.errors import InvalidSetting
from gnothi.session.calibrate import METRIC, RUNS, check_enough, collect, made
from gnothi.session.plan import Execution, with_questions
from gnothi.stats.guarantee import EPSILON
from gnothi.types import Question

if TYPE_CHECKING:
    from gnothi.protocols import Method


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
    concurrency: int | None = None,
    max_failures: int | None = None,
    **opening: Any,
) -> Calibration:
    """Choose the threshold of a method's gate, for one model.

    ``method``: what ``gnothi.open`` returned, or a name (then ``opening`` are arguments of ``gnothi.open``); with ``"panel"``
    every signal is measured, and the one that is worth most is taken, or the ``signal`` that is named. ``data``:
    questions with known answers, as for ``gnothi.evaluate``; or the folder of a run, or a file of recorded outcomes,
    which need no model (then ``method`` may be None, and ``signal``, ``never`` and ``always`` say which of what it holds).
    ``feedback``, in place of data: a file of judged answers that ``gnothi serve`` kept; it needs ``target_error``, and can only
    confirm a threshold or lower it (``gnothi.calibration.feedback``).
    ``target_error``: with probability 1 - ``epsilon`` over the draw of the questions, at most this share of the answers given
    without retrieval is wrong. ``search_cost``: what a retrieval costs, as a share of right answers. ``out``: a TOML file;
    answers are kept beside it, so that the same call goes on.

    Raises PromiseRefused where the questions are too few for the guarantee, InvalidInput, InvalidSetting, and as
    ``gnothi.open``.
    """
    refuse_running_loop("calibrate()", "gnothi.acalibrate(...)")
    file = None if out is None else given.as_path(out, "out")
    if (data is None) is (feedback is None):
        raise InvalidSetting(
            f"calibrate(): got {'neither' if data is None else 'both'} data and feedback, expected one of them."
        )
    source_of = None if data is None else _data(data)
    replay = replay_of(source_of, metric, never, always) if isinstance(source_of, str) else None
    choice = Choice(target_error, search_cost, epsilon)
    name = method.method if isinstance(method, Rag) else methods.spec(method).name if callable(method) else method

    def ask() -> Source | Replay:
        if name == PANEL:
            with contextlib.ExitStack() as stack:
                folder, reading = _folder(file, stack), (limit, format, concurrency, max_failures)
                _measure_all(method, source_of, folder, reading, opening)
                return read(folder, metric or METRIC, None, None)
        if signal is not None:
            raise InvalidSetting(
                f"signal: got {signal!r} with questions to be asked, expected none: the gate has its own. Set it where the "
                "method is opened, and give that: gnothi.open(METHOD, signal=...)."
            )
        execution = Execution(opening.get("seed", 0), concurrency, 1, max_failures)
        return _ask(method, source_of, (format, limit), execution, metric or METRIC, file, choice, opening)

    judged = None if feedback is None else given.as_path(feedback, "feedback")
    found = choice.of(source_from(replay, judged, choice, ask, name, signal)).calibration
    return found if file is None else found.save(file)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a threshold is chosen by, as for ``calibrate``."""

    target_error: float | None
    search_cost: float | None
    epsilon: float = EPSILON

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
    replay: Replay | None,
    feedback: Path | None,
    choice: Choice,
    ask: Callable[[], Source | Replay],
    method: str | None,
    signal: str | None,
    model: str | None = None,
) -> Source:
    """What a threshold is chosen on: judged answers, what was recorded, or else what it takes to ``ask``, which for the panel
    is a replay of all signals. ``method``, ``signal`` and ``model`` where they were named. Raises InvalidSetting, InvalidInput,
    and as ``ask``."""
    if feedback is not None:
        check_choice(choice.target_error, choice.search_cost)
        return from_feedback(feedback, method, signal, model)
    asked = ask() if replay is None else replay
    if isinstance(asked, Source):
        return asked
    at = (choice.search_cost or 0.0) if choice.weighs else None
    return from_replay(asked, method, signal, model or "", at)


async def acalibrate(method: Any, data: Any, **keywords: Any) -> Calibration:
    """As ``calibrate``, awaited."""
    return await asyncio.to_thread(calibrate, method, data, **keywords)


def _ask(
    method: Any,
    data: Any,
    reading: tuple[str | None, int | None],
    execution: Execution,
    metric: str,
    file: Path | None,
    choice: Choice,
    opening: dict[str, Any],
) -> Source:
    with contextlib.ExitStack() as stack:
        rag = _opened(method, opening, stack)
        plan = with_questions(rag.plan, data, *reading, replace(execution, seed=rag.plan.execution.seed))
        check_enough(plan, choice.target_error, choice.epsilon)
        folder = _folder(file, stack)
        return rag.loop.run(collect(plan, metric, folder, choice.weighs, None, dict(rag.opened.others), rag.budget))


def _measure_all(
    method: Any,
    data: Any,
    folder: Path,
    reading: tuple[int | None, str | None, int | None, int | None],
    opening: dict[str, Any],
) -> None:
    """Every signal beside the answers from memory, and the answers of always retrieving, as a run in ``folder``."""
    said: dict[str, Any] = dict(zip(("limit", "format", "concurrency", "max_failures"), reading, strict=True))
    if isinstance(method, Rag):
        rag = _opened(method, opening, contextlib.ExitStack())
        evaluate(data, [rag, "rag"], folder, seed=rag.plan.execution.seed, **said)
        return
    named = inspect.signature(evaluate).parameters
    settings = {key: value for key, value in opening.items() if key not in named}
    said |= {key: value for key, value in opening.items() if key in named}
    evaluate(data, [PANEL, "rag"], folder, settings=settings, **said)


def _opened(method: Any, opening: dict[str, Any], stack: contextlib.ExitStack) -> Rag:
    if isinstance(method, Rag) and opening:
        raise InvalidSetting(f"got {next(iter(opening))!r} with a gnothi.Rag, which is open: give it to gnothi.open.")
    rag = method if isinstance(method, Rag) else stack.enter_context(open_rag(method or "seakr", **opening))
    rag.check_open()
    return rag


def _folder(file: Path | None, stack: contextlib.ExitStack) -> Path:
    """Where answers are kept: beside the file, or for as long as the stack is open."""
    if file is not None:
        return file.with_name(file.name + RUNS)
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gnothi-")))
