"""A learnt gate for the method ``cascade``, of runs in which it went to the end beside a method that answers from memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gnothi.calibration.from_run import read_run
from gnothi.calibration.learned import gate_of, learn, promise_of
from gnothi.calibration.learned_records import Learned, Prices
from gnothi.calibration.replay import Mask, Replay
from gnothi.errors import InvalidInput
from gnothi.filtering.learned import write_gate
from gnothi.methods.cascade import LearnedCascade
from gnothi.runs.rows import OPTIONAL, jsonable
from gnothi.session.data import refuse_test_run
from gnothi.stats.guarantee import EPSILON, Guarantee
from gnothi.training.outcomes import model_of


@dataclass(frozen=True, slots=True)
class Targets:
    """What is to be promised, with 1 - ``epsilon``: at most this share of wrong answers among those given, and of harm among
    those taken from evidence; None: nothing."""

    error: float | None = None
    harm: float | None = None
    epsilon: float = EPSILON

    @property
    def requested(self) -> bool:
        return self.error is not None or self.harm is not None


@dataclass(frozen=True, slots=True)
class Trained:
    """What the gate comes to on ``other`` questions than it was learnt on, run by run, and what it promises."""

    other: tuple[Learned, ...]
    harm: Guarantee | None = field(default=None, metadata=OPTIONAL)
    errors: Guarantee | None = field(default=None, metadata=OPTIONAL)


def train(
    runs: Sequence[Path],
    out: Path,
    prices: Prices,
    metric: str = "em",
    never: str | None = None,
    targets: Targets | None = None,
) -> Trained:
    """Write the gate learnt of all ``runs`` together. What it comes to on other questions: of one run, each question judged by
    what the others taught; of several, each run by what the others taught. With ``targets`` a random half of the questions is
    learnt of, and the promise tested on the other half.

    Raises InvalidInput where a run recorded nothing, InvalidSetting where its questions are the laboratory's for testing,
    PromiseRefused where there are too few questions for the promise, or too many wrong."""
    replays, targets = [recorded(run, metric, never) for run in runs], targets or Targets()
    halves = _halves(replays) if targets.requested else []
    learnt = [replay.only(chosen) for replay, chosen in zip(replays, halves, strict=True)] if halves else replays
    gate, promised = gate_of(learnt, prices), None
    if halves:
        tested = [replay.only(~chosen) for replay, chosen in zip(replays, halves, strict=True)]
        gate, promised = promise_of(gate, tested, targets.error, targets.harm, targets.epsilon)
    origin = {
        "model": _model_of(runs),
        "runs": [str(run) for run in runs],
        "questions": sum(replay.n for replay in learnt),
        "metric": metric,
        "prices": jsonable(prices),
        "promised": None if promised is None else jsonable({"harm": promised.harm, "errors": promised.errors}),
    }
    write_gate(out, gate, origin)
    harm, errors = (promised.harm, promised.errors) if promised else (None, None)
    return Trained(tuple(_judged(replays, prices)), harm, errors)


def _model_of(runs: Sequence[Path]) -> dict[str, str]:
    """Raises InvalidInput where the runs are of several models."""
    models = [model_of(run) for run in runs]
    for run, model in zip(runs, models, strict=True):
        if model != models[0]:
            raise InvalidInput(
                f"got runs of several models: {runs[0]} is of {models[0].get('name')!r}, {run} of {model.get('name')!r}. "
                "Expected runs of one model: learn a gate for each."
            )
    return models[0]


def _judged(replays: Sequence[Replay], prices: Prices) -> list[Learned]:
    if len(replays) == 1:
        return learn(replays, [], prices)
    return [one for replay in replays for one in learn([other for other in replays if other is not replay], [replay], prices)]


def _halves(replays: Sequence[Replay]) -> list[Mask]:
    random = np.random.default_rng(0)
    return [random.permutation(replay.n) < replay.n // 2 for replay in replays]


def recorded(run: Path, metric: str, never: str | None = None) -> Replay:
    """What the method recorded at each stage. Raises as ``train``."""
    refuse_test_run(run)
    replay = read_run(run, metric, never, LearnedCascade.name)
    if not replay.known:
        raise InvalidInput(
            f"{run}: got answers by {LearnedCascade.name} with a gate, expected it without one, which records what is known at "
            f"each stage. Make a run with `gnothi eval TRAINING-QUESTIONS --method cot,{LearnedCascade.name} --out {run}-all`."
        )
    return replace(replay, signals=())  # the method measures none of them
