"""What clients say of answers, right or wrong: kept line by line where that is asked for, for `gnothi calibrate --feedback`.

Answers are remembered for a while by their ids, without their text unless that is to be kept.
"""

from __future__ import annotations

import asyncio
import datetime
from collections import OrderedDict
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter

from gnothi.calibration.feedback import Judged
from gnothi.calibration.live import gated, trusted
from gnothi.calibration.mismatch import identity_of
from gnothi.errors import InvalidSetting
from gnothi.locks import hold
from gnothi.runs.journal import Journal
from gnothi.serving.failures import Refusal
from gnothi.serving.service import Answered, Outcome, Service, SetUp

MOST = 10_000
"""Answers that are remembered, the last ones."""


class Feedback:
    """An observer of a service. Raises InvalidSetting where another process writes to the ``file``."""

    def __init__(self, service: Service, file: Path, content: bool, registry: CollectorRegistry) -> None:
        self._content = content
        self._answers: OrderedDict[str, Judged] = OrderedDict()
        self._bases = {name: _base(setup) for name, setup in service.setups.items()}
        self._open = ExitStack()
        busy = f"setting 'server.feedback': another process writes to {file}. Choose another file."
        file.parent.mkdir(parents=True, exist_ok=True)
        self._open.enter_context(hold(file.with_name(f".{file.name}.lock"), InvalidSetting, busy))
        self._journal = Journal(file, sync=True)
        self._open.callback(self._journal.close)
        self._turn = asyncio.Lock()
        self._counted = Counter("gnothi_feedback", "Judgements of answers.", ("setup", "source", "judged"), registry=registry)
        service.observers.append(self)

    def __call__(self, outcome: Outcome) -> None:
        if outcome.kind == "ask" and outcome.answered is not None:
            self._answers[outcome.answered.id] = self._noted(outcome.answered)
            while len(self._answers) > MOST:
                self._answers.popitem(last=False)

    async def judge(self, answer_id: str, right: bool) -> Judged:
        """Kept when this returns; of several, the last word counts. Raises Refusal for an answer that is not remembered."""
        noted = self._answers.get(answer_id)
        if noted is None:
            raise Refusal(
                404, "The server does not remember this answer, or not any more.", code="answer_not_found", param="id"
            )
        if noted.time and noted.right is right:  # said before
            return noted
        judged = replace(noted, right=right, time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))
        async with self._turn:
            await asyncio.to_thread(self._journal.append, judged.as_dict())
        self._answers[answer_id] = judged
        self._counted.labels(judged.setup, "memory" if judged.trusted else "search", "right" if right else "wrong").inc()
        return judged

    def close(self) -> None:
        self._open.close()

    def _noted(self, answered: Answered) -> Judged:
        """As it will be written, but for the judgement."""
        result, base = answered.result, self._bases[answered.setup.name]
        noted = replace(base, answer_id=answered.id)
        if self._content:
            noted = replace(noted, question=result.question.text, answer=result.text)
        verdict = gated(result.events)
        if verdict is None or base.settings is None:
            return replace(noted, settings=None)
        return replace(
            noted,
            signal=verdict.signal,
            score=verdict.score,
            threshold=verdict.threshold,
            trusted=trusted(result.events),
        )


def _base(setup: SetUp) -> Judged:
    """What all answers of a set-up have in common; ``settings`` None where no signal decides."""
    (method,) = setup.plan.methods
    gate = method.gate
    return Judged(
        answer_id="",
        time="",
        setup=setup.id,
        method=method.name,
        model=identity_of(method.speaker(setup.plan.sources.model)),
        right=False,
        trusted=False,
        settings=None if gate is None or gate.signal is None else gate.settings | gate.early,
        precision=setup.opened.model.profile.precision or "",
    )
