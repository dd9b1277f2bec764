"""What is said of a learnt gate: what it comes to, what it looks at, and why it did what it did with one question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gnothi.calibration.replay import Floats, Replay
from gnothi.runs.rows import MERGED, OPTIONAL
from gnothi.stats.cascade import Cascade, Step
from gnothi.stats.intervals import Interval

REASONS = 8
"""Reasons for a decision that are shown, the strongest."""


@dataclass(frozen=True, slots=True)
class Prices:
    """In right answers: of a search, of a wrong answer beside one that is not given, and of a thousand tokens."""

    search: float = 0.0
    wrong: float = 0.0
    tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class Judged:
    """Questions that nothing was learnt of. ``accuracy``: right answers; ``searches`` and ``not_known``: shares of all;
    ``tokens``: per question, 0 where none were recorded; ``worth``: accuracy less what searches, tokens and wrong answers cost;
    ``gain``: of worth, over the better of never and always."""

    accuracy: float
    interval: Interval | None
    searches: float
    tokens: float
    not_known: float
    worth: float
    gain: float
    gain_interval: Interval | None
    gap_closed: float | None
    gap_closed_interval: Interval | None


@dataclass(frozen=True, slots=True)
class Weight:
    """Per standard deviation of the feature, in log-odds: ``differ`` that the two answers differ in being right, ``evidence``
    that it is the one with evidence then; ``both`` that both are right where they do not differ."""

    feature: str
    stage: str
    differ: float
    evidence: float
    both: float


@dataclass(frozen=True, slots=True)
class Shown:
    """A step: it goes on where the gain is above ``needed``; ``weights``, the largest first."""

    stage: str
    needed: float
    weights: tuple[Weight, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """``pull``: what the feature adds to the log-odds that evidence is the better one, beside an average question."""

    feature: str
    value: float
    pull: float


@dataclass(frozen=True, slots=True)
class Reached:
    """A step on the way of one question."""

    stage: str
    helped: float
    harmed: float
    needed: float
    goes_on: bool
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """One question's way through the cascade, and what came of it."""

    question: str
    memory: str | None
    evidence: str | None
    steps: tuple[Reached, ...]
    takes: str
    memory_right: bool
    evidence_right: bool


@dataclass(frozen=True, slots=True)
class BestSignal:
    """The single signal with the most right answers; its threshold was chosen on other questions of the same file."""

    signal: str
    accuracy: float
    interval: Interval | None
    searches: float


@dataclass(frozen=True, slots=True)
class Ends:
    never: float
    always: float
    oracle: float
    helped: float
    harmed: float


@dataclass(frozen=True, slots=True)
class Learned:
    """What ``gnothi calibrate --learn FILE --json`` prints for one file. ``learnt_on`` is empty where the file's own questions
    were learnt of, each judged by what the others taught. ``tokens``: what each stage took, where that was recorded."""

    file: str
    dataset: str
    metric: str
    n: int
    learnt_on: tuple[str, ...]
    questions_learnt: int
    prices: Prices
    ends: Ends = field(metadata=MERGED)
    ways: Mapping[str, Judged]
    steps: tuple[Shown, ...]
    tokens: Mapping[str, float]
    best_signal: BestSignal | None = field(default=None, metadata=OPTIONAL)
    example: Example | None = field(default=None, metadata=OPTIONAL)


def shown(cascade: Cascade, names: Sequence[str], stages: Sequence[str]) -> tuple[Shown, ...]:
    def described(step: Step) -> Shown:
        regressions = step.benefit.differ, step.benefit.second, step.benefit.both
        weights = [
            Weight(names[column], stages[column], *(float(regression.weights[place]) for regression in regressions))
            for place, column in enumerate(step.columns)
        ]
        return Shown(
            step.name, step.needed, tuple(sorted(weights, key=lambda weight: -abs(weight.differ) - abs(weight.evidence)))
        )

    return tuple(map(described, cascade.steps))


def example(cascade: Cascade, features: Floats, replay: Replay, names: Sequence[str]) -> Example | None:
    """Of the question that it is surest to search for, if it searches for any and the texts are there."""
    if not replay.texts or replay.texts[0].question is None:
        return None
    decided = cascade(features)
    places = np.flatnonzero(decided.second)
    if not len(places):
        return None
    gains = cascade.steps[-1].chances(features[places]).gain
    return explain(cascade, features, replay, names, int(places[np.argmax(gains)]))


def explain(cascade: Cascade, features: Floats, replay: Replay, names: Sequence[str], place: int) -> Example:
    """Why the cascade did what it did with the question at ``place``."""
    decided = cascade(features[[place]])
    texts = replay.texts[place]
    steps = tuple(_reached(step, features[[place]], names) for step in cascade.steps[: decided.last[0] + 1])
    takes = "evidence" if decided.second[0] else "memory"
    return Example(
        question=texts.question or "",
        memory=texts.memory,
        evidence=texts.evidence,
        steps=steps,
        takes=takes if decided.answered[0] else "not known",
        memory_right=bool(replay.never[place] >= 1),
        evidence_right=bool(replay.always[place] >= 1),
    )


def _reached(step: Step, features: Floats, names: Sequence[str]) -> Reached:
    chances, second = step.chances(features), step.benefit.second
    values = features[0, step.columns]
    pulls = (values - second.centre) / second.scale * second.weights
    largest = np.argsort(-np.abs(pulls), kind="stable")[:REASONS]
    return Reached(
        stage=step.name,
        helped=float(chances.helped[0]),
        harmed=float(chances.harmed[0]),
        needed=step.needed,
        goes_on=bool(chances.gain[0] > step.needed),
        reasons=tuple(
            Reason(names[step.columns[place]], float(values[place]), float(pulls[place])) for place in largest if pulls[place]
        ),
    )
