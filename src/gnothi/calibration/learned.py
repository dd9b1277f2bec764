"""A gate learnt from recorded outcomes: is a search worth its price, and is what it brought to be believed?

Never, always and oracle on questions that it was not learnt on, and beside them the same features used before the search only,
after it only, and as a cascade.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gnothi.calibration.compare import FEWEST
from gnothi.calibration.learned_records import BestSignal, Ends, Judged, Learned, Prices, example, shown
from gnothi.calibration.replay import Floats, Mask, Replay
from gnothi.errors import InvalidInput, counted
from gnothi.filtering.learned import LearnedGate
from gnothi.filtering.traits import AFTER_SEARCH, DRAFT, SEARCH, STAGES, traits
from gnothi.runs.rows import rounded
from gnothi.stats.cascade import Cascade, Promised, fit_cascade, promise
from gnothi.stats.frontier import crossvalidate, gap_closed, oracle
from gnothi.stats.intervals import mean_interval
from gnothi.stats.probabilities import FOLDS, folds_of

BEFORE, AFTER, CASCADE = "before the search", "after the search", "cascade"
REPEATS = 3


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
    """What was recorded stage by stage; else traits of the texts. And every signal, as of the DRAFT, since the record does not
    say what it took. Nothing here looks at an outcome."""
    rows = [] if replay.known else [traits(texts) for texts in replay.texts]
    features = {known.name: (known.stage, known.values) for known in replay.known} | {
        name: (stage, np.array([row[name][1] if name in row else np.nan for row in rows]))
        for name, stage in {name: stage for row in rows for name, (stage, _) in row.items()}.items()
    }
    for signal in replay.signals:
        values = np.where(np.isfinite(signal.values), signal.values, np.nan)
        if signal.name not in features:  # else the method measured it itself
            features[signal.name] = DRAFT, np.sign(values) * np.log1p(np.abs(values))  # perplexities spread over magnitudes
    names = tuple(sorted(features, key=lambda name: STAGES.index(features[name][0])))
    columns = [features[name][1] for name in names]
    values = np.column_stack(columns) if columns else np.empty((replay.n, 0))
    return Table(names, tuple(features[name][0] for name in names), values)


def _filled(learnt: Floats, values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, _unmeasured(learnt))


def _unmeasured(learnt: Floats) -> Floats:
    """What was not measured counts as the highest value that was learnt of: the least certain. Shape (d,)."""
    highest = np.where(np.isfinite(learnt), learnt, -np.inf).max(axis=0, initial=-np.inf)
    return np.where(np.isfinite(highest), highest, 0.0)


# --- learning and judging -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Gate:
    """What was learnt: a cascade for each way, of features of these ``names``, known at these ``stages``."""

    cascades: Mapping[str, Cascade]
    names: tuple[str, ...]
    stages: tuple[str, ...]
    prices: Prices


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Of each question, shape (n,)."""

    quality: Floats
    searched: Floats
    given: Floats
    tokens: Floats


def learn(learnt: Sequence[Replay], judged: Sequence[Replay], prices: Prices | None = None) -> list[Learned]:
    """Learnt on all of ``learnt`` together, and judged on each of ``judged``; where there are none, on each of ``learnt``, each
    question by what the others of its file taught. Only features that every file has are used.

    Raises InvalidInput for too few questions or no feature."""
    prices = prices or Prices()
    tables = {id(replay): table(replay) for replay in (*learnt, *judged)}
    if judged:
        return _judged_apart(learnt, judged, tables, prices)
    return [_judged_within(replay, tables[id(replay)], prices) for replay in learnt]


def gate_of(learnt: Sequence[Replay], prices: Prices, others: Sequence[Replay] = ()) -> LearnedGate:
    """What methods go by (``filtering.learned``), of features that the ``others`` have, too. Raises InvalidInput."""
    tables = [table(replay) for replay in (*learnt, *others)]
    gate, raw = _learnt(learnt, tables[: len(learnt)], _common(tables), prices)
    cascade = gate.cascades[CASCADE]
    gains = cascade.steps[0].chances(_filled(raw, raw)).gain if _first_searches(cascade) else np.empty(0)
    unmeasured, scores = (tuple(values.tolist()) for values in (_unmeasured(raw), gains))
    return LearnedGate(cascade, gate.names, gate.stages, unmeasured, scores=scores)


def _first_searches(cascade: Cascade) -> bool:
    """Whether its first step alone decides on a search: then its gains are what live ones are compared with."""
    before = [step.name not in AFTER_SEARCH for step in cascade.steps]
    return before[0] and not any(before[1:])


def known_of(gate: LearnedGate, replay: Replay) -> Floats:
    """The gate's features of the questions, shape (n, d)."""
    raw = table(replay).of(gate.names)
    return np.where(np.isfinite(raw), raw, gate.unmeasured)


def promise_of(
    gate: LearnedGate, judged: Sequence[Replay], target_error: float | None, target_harm: float | None, epsilon: float
) -> tuple[LearnedGate, Promised]:
    """The gate with the limits of what it promises, tested on questions that it did not learn of. Raises PromiseRefused."""
    features = np.vstack([known_of(gate, replay) for replay in judged])
    never, always = (np.concatenate([getattr(replay, end) for replay in judged]) >= 1 for end in ("never", "always"))
    promised = promise(gate.cascade, features, never, always, target_error, target_harm, epsilon)
    return replace(gate, cascade=promised.cascade), promised


def _learnt(learnt: Sequence[Replay], tables: Sequence[Table], names: tuple[str, ...], prices: Prices) -> tuple[_Gate, Floats]:
    """And the features that it was learnt of, as they were measured."""
    raw = np.vstack([table.of(names) for table in tables])
    _require(names, len(raw), learnt)
    never, always = (np.concatenate([getattr(replay, end) for replay in learnt]) for end in ("never", "always"))
    stages = tuple(tables[0].stages[tables[0].names.index(name)] for name in names)
    return _Gate(_fit(_filled(raw, raw), never, always, stages, prices, learnt[0].tokens), names, stages, prices), raw


def _judged_apart(
    learnt: Sequence[Replay], judged: Sequence[Replay], tables: Mapping[int, Table], prices: Prices
) -> list[Learned]:
    names = _common([tables[id(replay)] for replay in (*learnt, *judged)])
    gate, raw = _learnt(learnt, [tables[id(replay)] for replay in learnt], names, prices)
    sources = tuple(replay.source for replay in learnt)
    documents = []
    for replay in judged:
        features = _filled(raw, tables[id(replay)].of(names))
        outcomes = {way: _outcome(cascade, features, replay) for way, cascade in gate.cascades.items()}
        documents.append(_document(replay, outcomes, gate, features, sources, len(raw)))
    return documents


def _judged_within(replay: Replay, of: Table, prices: Prices) -> Learned:
    _require(of.names, replay.n, [replay])
    outcomes: dict[str, _Outcome] = {}
    for seed in range(REPEATS):
        fold = folds_of(replay.never != replay.always, seed=seed)
        for held_out in range(FOLDS):
            test = fold == held_out
            raw = of.values[~test]
            cascades = _fit(_filled(raw, raw), replay.never[~test], replay.always[~test], of.stages, prices, replay.tokens)
            for way, cascade in cascades.items():
                outcome = _outcome(cascade, _filled(raw, of.values[test]), replay, test)
                mean = outcomes.setdefault(way, _Outcome(*np.zeros((4, replay.n))))
                for name in ("quality", "searched", "given", "tokens"):
                    getattr(mean, name)[test] += getattr(outcome, name) / REPEATS
    features = _filled(of.values, of.values)
    gate = _Gate(_fit(features, replay.never, replay.always, of.stages, prices, replay.tokens), of.names, of.stages, prices)
    return _document(replay, outcomes, gate, features, (), replay.n)


def _common(tables: Sequence[Table]) -> tuple[str, ...]:
    return tuple(name for name in tables[0].names if all(name in table.names for table in tables))


def _require(names: Sequence[str], questions: int, learnt: Sequence[Replay]) -> None:
    where = ", ".join(replay.source for replay in learnt)
    if questions < FEWEST:
        raise InvalidInput(
            f"cannot learn a gate from {where}: got {counted(questions, 'question')}, expected at least {FEWEST}."
        )
    if not names:
        raise InvalidInput(
            f"cannot learn a gate from {where}: got no features that all files have, expected texts of questions and "
            "answers, or signals. In a table, name the columns question, never_answer and always_answer."
        )


def _fit(
    features: Floats, never: Floats, always: Floats, stages: Sequence[str], prices: Prices, tokens: Mapping[str, float]
) -> dict[str, Cascade]:
    """``tokens``: what each stage took. Those of the draft are no price: an answer from memory is wanted in any case."""
    first, second = never >= 1, always >= 1

    def known(*wanted: str) -> list[int]:
        return [column for column, stage in enumerate(stages) if stage in wanted]

    def cost(stage: str) -> float:
        spent = 0.0 if stage == DRAFT else tokens.get(stage, 0.0) / 1000 * prices.tokens
        return spent + (prices.search if stage == searching else 0.0)

    present = [stage for stage in STAGES if known(stage)]
    searching = next((stage for stage in present if stage in AFTER_SEARCH), None)
    before = [stage for stage in present if stage not in AFTER_SEARCH]
    whole = prices.search + _tokens(tokens, *AFTER_SEARCH) / 1000 * prices.tokens

    def at_once(name: str, stages: Sequence[str], taking: float = 0.0) -> Cascade:
        return fit_cascade(features, first, second, [(name, known(*stages), 0.0)], prices.wrong, taking)

    sequence = [(stage, known(stage), cost(stage)) for stage in present]
    return {
        BEFORE: at_once(BEFORE, before, whole),
        AFTER: at_once(AFTER, present),
        CASCADE: fit_cascade(features, first, second, sequence, prices.wrong, 0.0 if searching else whole),
    }


def _outcome(cascade: Cascade, features: Floats, replay: Replay, chosen: Mask | None = None) -> _Outcome:
    """Of the questions ``chosen``, whose ``features`` these are; all where it is None."""
    never, always = (values if chosen is None else values[chosen] for values in (replay.never, replay.always))
    decided = cascade(features)
    after = np.array([step.name in (AFTER, *AFTER_SEARCH) for step in cascade.steps])
    spent = np.cumsum(_tokens_of(cascade, replay.tokens))[decided.last]
    read = decided.second & ~after[decided.last]  # it took evidence that was not there yet
    return _Outcome(
        quality=np.where(decided.answered, np.where(decided.second, always, never), 0.0),
        searched=(decided.second | after[decided.last]).astype(np.float64),
        given=decided.answered.astype(np.float64),
        tokens=spent + read * _tokens(replay.tokens, *AFTER_SEARCH),
    )


def _tokens_of(cascade: Cascade, tokens: Mapping[str, float]) -> list[float]:
    """What it took to get to each step from the one before, the draft included."""
    ends = {BEFORE: STAGES.index(SEARCH), AFTER: len(STAGES)} | {stage: number + 1 for number, stage in enumerate(STAGES)}
    places = [0, *(ends[step.name] for step in cascade.steps)]
    return [_tokens(tokens, *STAGES[begun:ended]) for begun, ended in pairwise(places)]


def _tokens(tokens: Mapping[str, float], *stages: str) -> float:
    return sum(tokens.get(stage, 0.0) for stage in stages)


# --- what is said -------------------------------------------------------------------------------------------------------


def _document(
    replay: Replay, outcomes: Mapping[str, _Outcome], gate: _Gate, features: Floats, learnt_on: tuple[str, ...], questions: int
) -> Learned:
    never, always, cascade = replay.never, replay.always, gate.cascades[CASCADE]
    learned = Learned(
        file=replay.source,
        dataset=replay.dataset,
        metric=replay.metric,
        n=replay.n,
        learnt_on=learnt_on,
        questions_learnt=questions,
        prices=gate.prices,
        ends=Ends(
            never=float(never.mean()),
            always=float(always.mean()),
            oracle=float(oracle(never, always).mean()),
            helped=float((always > never).mean()),
            harmed=float((always < never).mean()),
        ),
        ways={way: _judge(one, replay, gate.prices) for way, one in outcomes.items()},
        steps=shown(cascade, gate.names, gate.stages),
        tokens=replay.tokens,
        best_signal=_best_signal(replay, gate.prices),
        example=example(cascade, features, replay, gate.names),
    )
    return rounded(learned)


def _judge(outcome: _Outcome, replay: Replay, prices: Prices) -> Judged:
    token = prices.tokens / 1000
    worth = (
        outcome.quality
        - prices.search * outcome.searched
        - token * outcome.tokens
        - prices.wrong * (outcome.given - outcome.quality)
    )
    search = prices.search + token * _tokens(replay.tokens, *AFTER_SEARCH)
    ends = [
        replay.never - token * replay.tokens.get(DRAFT, 0.0) - prices.wrong * (1 - replay.never),
        replay.always - search - prices.wrong * (1 - replay.always),
    ]
    more = worth - max(ends, key=lambda values: float(values.mean()))
    closed = gap_closed(outcome.quality, replay.never, replay.always)
    return Judged(
        accuracy=float(outcome.quality.mean()),
        interval=mean_interval(outcome.quality),
        searches=float(outcome.searched.mean()),
        tokens=float(outcome.tokens.mean()),
        not_known=float(1 - outcome.given.mean()),
        worth=float(worth.mean()),
        gain=float(more.mean()),
        gain_interval=mean_interval(more, share=False),
        gap_closed=closed.share,
        gap_closed_interval=closed.interval,
    )


def _best_signal(replay: Replay, prices: Prices) -> BestSignal | None:
    def judged(values: Floats) -> BestSignal:
        replayed = crossvalidate(values, replay.never, replay.always, prices.search)
        return BestSignal("", float(replayed.quality.mean()), replayed.interval, float(replayed.retrieved.mean()))

    if not replay.signals or replay.n < FEWEST:
        return None
    each = {signal.name: judged(signal.values) for signal in replay.signals}
    name = max(each, key=lambda name: each[name].accuracy)
    return BestSignal(name, each[name].accuracy, each[name].interval, each[name].searches)
