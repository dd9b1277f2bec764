"""A gate learnt from recorded outcomes: is a search worth its price, and is what it brought to be believed?

Never, always and oracle on questions that it was not learnt on, and beside them the same features used before the search only,
after it only, and as a cascade.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gnothi.calibration.compare import FEWEST
from gnothi.calibration.replay import Floats, Mask, Replay
from gnothi.calibration.traits import READING, SAMPLES, SEARCH, STAGES, traits
from gnothi.errors import InvalidInput
from gnothi.runs.rows import MERGED, OPTIONAL, rounded
from gnothi.stats.cascade import Cascade, Step, fit_cascade
from gnothi.stats.crossfit import FOLDS, folds_of
from gnothi.stats.frontier import crossvalidate, gap_closed, oracle
from gnothi.stats.intervals import Interval, mean_interval

BEFORE, AFTER, CASCADE = "before the search", "after the search", "cascade"
WAYS = (BEFORE, AFTER, CASCADE)
REPEATS = 3
SHOWN = 8
"""Weights of a step, and reasons for a decision, that are shown."""


@dataclass(frozen=True, slots=True)
class Prices:
    """In right answers: of a search, and of a wrong answer beside one that is not given."""

    search: float = 0.0
    wrong: float = 0.0


@dataclass(frozen=True, slots=True)
class Judged:
    """Questions that nothing was learnt of. ``accuracy``: right answers; ``searches`` and ``not_known``: shares of all;
    ``worth``: accuracy less what searches and wrong answers cost; ``gain``: of worth, over the better of never and always."""

    accuracy: float
    interval: Interval | None
    searches: float
    not_known: float
    worth: float
    gain: float
    gain_interval: Interval | None
    gap_closed: float | None
    gap_closed_interval: Interval | None


@dataclass(frozen=True, slots=True)
class Weight:
    """Per standard deviation of the feature, in log-odds: ``differ`` that the two answers differ in being right, ``evidence``
    that it is the one with evidence then."""

    feature: str
    stage: str
    differ: float
    evidence: float


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
    """What ``gnothi gates FILE --learn --json`` prints for one file. ``learnt_on`` is empty where the file's own questions were
    learnt of, each judged by what the others taught."""

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
    best_signal: BestSignal | None = field(default=None, metadata=OPTIONAL)
    example: Example | None = field(default=None, metadata=OPTIONAL)


# --- features -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    """``values`` of ``names``, shape (n, d), not a number where nothing was measured; ``stages`` says when each is known."""

    names: tuple[str, ...]
    stages: tuple[str, ...]
    values: Floats

    def of(self, names: Sequence[str]) -> Floats:
        """The columns of these ``names``."""
        return self.values[:, [self.names.index(name) for name in names]]


def table(replay: Replay) -> Table:
    """Traits of the texts, and every signal: SAMPLES, for the record does not say what it took; none looks at an outcome."""
    rows = [traits(texts) for texts in replay.texts]
    found = {
        name: (stage, np.array([row[name][1] if name in row else np.nan for row in rows]))
        for name, stage in {name: stage for row in rows for name, (stage, _) in row.items()}.items()
    }
    for signal in replay.signals:
        values = np.where(np.isfinite(signal.values), signal.values, np.nan)
        found[signal.name] = SAMPLES, np.sign(values) * np.log1p(np.abs(values))  # perplexities spread over magnitudes
    names = tuple(sorted(found, key=lambda name: STAGES.index(found[name][0])))
    columns = [found[name][1] for name in names]
    values = np.column_stack(columns) if columns else np.empty((replay.n, 0))
    return Table(names, tuple(found[name][0] for name in names), values)


def _filled(learnt: Floats, values: Floats) -> Floats:
    """What was not measured counts as the highest value that was learnt of: the least certain."""
    highest = np.where(np.isfinite(learnt), learnt, -np.inf).max(axis=0, initial=-np.inf)
    return np.where(np.isfinite(values), values, np.where(np.isfinite(highest), highest, 0.0))


# --- learning and judging -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Of each question, shape (n,)."""

    quality: Floats
    searched: Floats
    given: Floats


def learn(learnt: Sequence[Replay], judged: Sequence[Replay], prices: Prices | None = None) -> list[Learned]:
    """Learnt on all of ``learnt`` together, and judged on each of ``judged``; where there are none, on each of ``learnt``, each
    question by what the others of its file taught. Only features that every file has are used.

    Raises InvalidInput for too few questions or no feature."""
    prices = prices or Prices()
    tables = {id(replay): table(replay) for replay in (*learnt, *judged)}
    if judged:
        return _judged_apart(learnt, judged, tables, prices)
    return [_judged_within(replay, tables[id(replay)], prices) for replay in learnt]


def _judged_apart(
    learnt: Sequence[Replay], judged: Sequence[Replay], tables: Mapping[int, Table], prices: Prices
) -> list[Learned]:
    names = _common([tables[id(replay)] for replay in (*learnt, *judged)])
    stages = _stages_of(tables[id(learnt[0])], names)
    raw = np.vstack([tables[id(replay)].of(names) for replay in learnt])
    never, always = (np.concatenate([getattr(replay, end) for replay in learnt]) for end in ("never", "always"))
    _require(names, len(raw), learnt)
    cascades = _fit(_filled(raw, raw), never, always, stages, prices)
    sources = tuple(replay.source for replay in learnt)
    found = []
    for replay in judged:
        features = _filled(raw, tables[id(replay)].of(names))
        outcomes = {way: _outcome(way, cascade, features, replay, stages) for way, cascade in cascades.items()}
        example = _example(cascades[CASCADE], features, replay, names)
        found.append(_document(replay, outcomes, cascades[CASCADE], names, stages, prices, sources, len(raw), example))
    return found


def _judged_within(replay: Replay, of: Table, prices: Prices) -> Learned:
    _require(of.names, replay.n, [replay])
    n = replay.n
    outcomes = {way: _Outcome(np.zeros(n), np.zeros(n), np.zeros(n)) for way in WAYS}
    for seed in range(REPEATS):
        fold = folds_of(replay.never != replay.always, seed=seed)
        for held_out in range(FOLDS):
            test = fold == held_out
            raw = of.values[~test]
            cascades = _fit(_filled(raw, raw), replay.never[~test], replay.always[~test], of.stages, prices)
            for way, cascade in cascades.items():
                one = _outcome(way, cascade, _filled(raw, of.values[test]), replay, of.stages, test)
                for name in ("quality", "searched", "given"):
                    getattr(outcomes[way], name)[test] += getattr(one, name) / REPEATS
    features = _filled(of.values, of.values)
    cascade = _fit(features, replay.never, replay.always, of.stages, prices)[CASCADE]
    example = _example(cascade, features, replay, of.names)
    return _document(replay, outcomes, cascade, of.names, of.stages, prices, (), n, example)


def _common(tables: Sequence[Table]) -> tuple[str, ...]:
    return tuple(name for name in tables[0].names if all(name in one.names for one in tables))


def _stages_of(one: Table, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(one.stages[one.names.index(name)] for name in names)


def _require(names: Sequence[str], questions: int, learnt: Sequence[Replay]) -> None:
    where = ", ".join(replay.source for replay in learnt)
    if questions < FEWEST:
        raise InvalidInput(f"cannot learn a gate from {where}: got {questions} questions, expected {FEWEST} at least.")
    if not names:
        raise InvalidInput(
            f"cannot learn a gate from {where}: got no features that all files have, expected texts of questions and answers, or "
            "signals. In a table, name the columns question, never_answer and always_answer."
        )


def _fit(features: Floats, never: Floats, always: Floats, stages: Sequence[str], prices: Prices) -> dict[str, Cascade]:
    first, second = never >= 1, always >= 1

    def known(*wanted: str) -> list[int]:
        return [column for column, stage in enumerate(stages) if stage in wanted]

    present = [stage for stage in STAGES if known(stage)]
    searching = next((stage for stage in present if stage in (SEARCH, READING)), None)
    before = [stage for stage in present if stage not in (SEARCH, READING)]
    each = [(stage, known(stage), prices.search if stage == searching else 0.0) for stage in present]
    return {
        BEFORE: fit_cascade(features, first, second, [(BEFORE, known(*before), 0.0)], prices.wrong, prices.search),
        AFTER: fit_cascade(features, first, second, [(AFTER, known(*present), 0.0)], prices.wrong),
        CASCADE: fit_cascade(features, first, second, each, prices.wrong, 0.0 if searching is not None else prices.search),
    }


def _outcome(
    way: str, cascade: Cascade, features: Floats, replay: Replay, stages: Sequence[str], chosen: Mask | None = None
) -> _Outcome:
    """Of the questions ``chosen``, whose ``features`` these are; all where it is None."""
    never, always = (values if chosen is None else values[chosen] for values in (replay.never, replay.always))
    decided = cascade(features)
    after = np.array([step.name in (AFTER, SEARCH, READING) for step in cascade.steps])
    searched = decided.second | after[decided.last]
    quality = np.where(decided.given, np.where(decided.second, always, never), 0.0)
    return _Outcome(quality, searched.astype(np.float64), decided.given.astype(np.float64))


# --- what is said -------------------------------------------------------------------------------------------------------


def _document(
    replay: Replay,
    outcomes: Mapping[str, _Outcome],
    cascade: Cascade,
    names: Sequence[str],
    stages: Sequence[str],
    prices: Prices,
    learnt_on: tuple[str, ...],
    questions: int,
    example: Example | None,
) -> Learned:
    never, always = replay.never, replay.always
    ends = Ends(
        *(float(values.mean()) for values in (never, always, oracle(never, always))),
        helped=float((always > never).mean()),
        harmed=float((always < never).mean()),
    )
    return rounded(
        Learned(
            file=replay.source,
            dataset=replay.dataset,
            metric=replay.metric,
            n=replay.n,
            learnt_on=learnt_on,
            questions_learnt=questions,
            prices=prices,
            ends=ends,
            ways={way: _judge(one, replay, prices) for way, one in outcomes.items()},
            steps=tuple(_shown(step, names, stages) for step in cascade.steps),
            best_signal=_best_signal(replay, prices),
            example=example,
        )
    )


def _judge(one: _Outcome, replay: Replay, prices: Prices) -> Judged:
    worth = one.quality - prices.search * one.searched - prices.wrong * (one.given - one.quality)
    ends = [
        replay.never - prices.wrong * (1 - replay.never),
        replay.always - prices.search - prices.wrong * (1 - replay.always),
    ]
    more = worth - max(ends, key=lambda values: float(values.mean()))
    closed = gap_closed(one.quality, replay.never, replay.always)
    return Judged(
        accuracy=float(one.quality.mean()),
        interval=mean_interval(one.quality),
        searches=float(one.searched.mean()),
        not_known=float(1 - one.given.mean()),
        worth=float(worth.mean()),
        gain=float(more.mean()),
        gain_interval=mean_interval(more),
        gap_closed=closed.share,
        gap_closed_interval=closed.interval,
    )


def _best_signal(replay: Replay, prices: Prices) -> BestSignal | None:
    def judged(values: Floats) -> BestSignal:
        found = crossvalidate(lambda _: values, replay.never, replay.always, prices.search)
        return BestSignal("", float(found.quality.mean()), found.interval, float(found.retrieved.mean()))

    if not replay.signals or replay.n < FEWEST:
        return None
    each = {signal.name: judged(signal.values) for signal in replay.signals}
    name = max(each, key=lambda name: each[name].accuracy)
    return BestSignal(name, each[name].accuracy, each[name].interval, each[name].searches)


def _shown(step: Step, names: Sequence[str], stages: Sequence[str]) -> Shown:
    weights = [
        Weight(
            names[column], stages[column], float(step.benefit.differ.weights[place]), float(step.benefit.second.weights[place])
        )
        for place, column in enumerate(step.columns)
    ]
    return Shown(step.name, step.needed, tuple(sorted(weights, key=lambda one: -abs(one.differ) - abs(one.evidence))))


def _example(cascade: Cascade, features: Floats, replay: Replay, names: Sequence[str]) -> Example | None:
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
    texts, last = replay.texts[place], int(decided.last[0])
    steps = tuple(_reached(step, features[[place]], names) for step in cascade.steps[: last + 1])
    takes = "evidence" if decided.second[0] else "memory"
    return Example(
        question=texts.question or "",
        memory=texts.memory,
        evidence=texts.evidence,
        steps=steps,
        takes=takes if decided.given[0] else "not known",
        memory_right=bool(replay.never[place] >= 1),
        evidence_right=bool(replay.always[place] >= 1),
    )


def _reached(step: Step, features: Floats, names: Sequence[str]) -> Reached:
    chances, one = step.chances(features), step.benefit.second
    values = features[0, step.columns]
    pulls = (values - one.centre) / one.scale * one.weights
    largest = np.argsort(-np.abs(pulls), kind="stable")[:SHOWN]
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
