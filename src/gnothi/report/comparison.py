"""Methods beside each other on the same questions: never, always and oracle; searching too much or too little; paired tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from gnothi.calibration.baselines import ByMethod, always_of, gauged, never_of
from gnothi.calibration.compare import Correlations
from gnothi.calibration.verdicts import gauged_scores
from gnothi.metrics import METRICS
from gnothi.runs.rows import Row, scored
from gnothi.signals import registry
from gnothi.signals.base import FollowUp
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.stats.intervals import Interval, mean, spearman
from gnothi.stats.paired import holm, paired_test

_ALL_PAIRS = 6
"""With more methods than this, each is tested against never and always only."""


Roles = Mapping[str, float | None]
"""Of never, always, the method and the oracle, as far as the run holds them."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A method between ``never`` retrieving and ``always`` retrieving, over the ``n`` questions that all of them answered.

    The oracle takes the better of never and always for each question, with the cheaper one's retrieval where both are equal.
    """

    n: int
    never: str | None
    always: str | None
    em: Roles
    f1: Roles
    accuracy: Roles
    retrieval_rate: Roles


@dataclass(frozen=True, slots=True)
class Missed:
    """Searches too many or too few: their number, their share of all questions, and their rate where they could happen."""

    count: int
    share: float | None
    rate: float | None


@dataclass(frozen=True, slots=True)
class SearchErrors:
    """``over_search``: retrieved although the closed-book answer was right; ``under_search``: did not although it was wrong."""

    n: int
    closed_book: str
    metric: str
    over_search: Missed
    under_search: Missed


@dataclass(frozen=True, slots=True)
class Comparison:
    """First less second on the ``n`` questions that both answered. ``p`` is two-sided, ``p_holm`` is corrected for the number
    of tests in that metric."""

    first: str
    second: str
    metric: str
    n: int
    difference: float
    interval: Interval | None
    p: float
    test: str
    p_holm: float = 1.0


def beside(name: str, by_method: ByMethod, trusting: Collection[str] = ()) -> Beside | None:
    """None for never and always themselves, and where the run holds neither."""
    never, always = never_of(by_method, trusting), always_of(by_method)
    if name in (never, always) or not (never or always):
        return None
    tables = {
        role: scored(by_method[other]) for role, other in (("never", never), ("always", always), ("method", name)) if other
    }
    common = [question for question in tables["method"] if all(question in table for table in tables.values())]
    means: dict[str, Roles] = {}
    for metric in METRICS:
        values = {role: [table[question].metrics[metric] for question in common] for role, table in tables.items()}
        if never and always:
            values["oracle"] = [max(pair) for pair in zip(values["never"], values["always"], strict=True)]
        means[metric] = {role: mean(column) for role, column in values.items()}
    retrieved = {role: [table[question].retrieved for question in common] for role, table in tables.items()}
    if never and always:
        em = [[tables[role][question].metrics["em"] for question in common] for role in ("never", "always")]
        retrieved["oracle"] = [always_em > never_em for never_em, always_em in zip(*em, strict=True)]
    rates = {role: mean(column) for role, column in retrieved.items()}
    return Beside(len(common), never, always, **means, retrieval_rate=rates)


def search_errors(name: str, by_method: ByMethod, trusting: Collection[str] = ()) -> SearchErrors | None:
    """Right is by exact match. None without closed-book rows and for those themselves."""
    never = never_of(by_method, trusting)
    if never is None or name == never:
        return None
    closed, own = scored(by_method[never]), [row for row in by_method[name] if not row.failed]
    known = [(row.retrieved, closed[row.question_id].metrics["em"] >= 1) for row in own if row.question_id in closed]
    over = [retrieved for retrieved, right in known if right]
    under = [not retrieved for retrieved, right in known if not right]
    missed = (Missed(sum(cases), sum(cases) / len(known) if known else None, mean(cases)) for cases in (over, under))
    return SearchErrors(len(known), never, "em", *missed)


def paired_tests(by_method: ByMethod, trusting: Collection[str] = ()) -> list[Comparison]:
    """Every two methods in every metric; with many methods, each against never and always."""
    pairs = list(combinations(by_method, 2))
    if len(by_method) > _ALL_PAIRS:
        references = {never_of(by_method, trusting), always_of(by_method)} & set(by_method) or {next(iter(by_method))}
        pairs = [pair for pair in pairs if references & set(pair)]
    return paired({name: scored(rows) for name, rows in by_method.items()}, pairs)


def paired(tables: Mapping[str, Mapping[str, Row]], pairs: Iterable[tuple[str, str]]) -> list[Comparison]:
    """Each of the ``pairs`` of names, in every metric, of rows by name and question id.

    Pairs that share no question are left out, and ``p_holm`` is corrected for the number of those that do."""
    comparisons: list[Comparison] = []
    for first, second in pairs:
        common = [question for question in tables[first] if question in tables[second]]
        for metric in METRICS if common else ():
            one, other = ([tables[name][question].metrics[metric] for question in common] for name in (first, second))
            comparisons.append(Comparison(first, second, metric, *paired_test(one, other)))
    corrected = {metric: iter(holm([test.p for test in comparisons if test.metric == metric]).tolist()) for metric in METRICS}
    return [replace(test, p_holm=next(corrected[test.metric])) for test in comparisons]


# Signals measured on the same answers: which tells the wrong ones best, at what price, and do they say the same?


@dataclass(frozen=True, slots=True)
class Reading:
    """A signal: AUROC with DeLong's interval (does it tell which answers are wrong, by exact match?), how often nothing could
    be measured, and what it takes beyond the answer, per question."""

    signal: str
    auroc: float | None
    interval: Interval | None
    not_measured: int
    model_calls: float | None
    prompt_tokens: float | None
    generated_tokens: float | None


_LACKING = "because the model or a resource lacks what they need"
_ASKING = "because each asks the model further questions, and is measured only if `signal` names it"


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The signals that a method measured beside its answers; those that were ``left_out``, with what they need."""

    method: str
    n: int
    wrong: int
    metric: str
    signals: tuple[Reading, ...]
    correlations: Correlations
    left_out: Mapping[str, Sequence[str]]

    @property
    def missing(self) -> dict[str, str]:
        """Why signals were left out, and which."""
        reasons: dict[str, list[str]] = {}
        for name, needs in self.left_out.items():
            signal = registry.find(name)
            asks = issubclass(signal if isinstance(signal, type) else type(signal), FollowUp)
            reason = _ASKING if asks else _LACKING
            reasons.setdefault(reason, []).append(f"{name} ({', '.join(needs)})" if needs else name)
        return {reason: ", ".join(names) for reason, names in reasons.items()}


def side_by_side(by_method: ByMethod) -> list[SideBySide]:
    """Of each method that measured signals beside its answers."""
    return [_table(name, rows) for name, rows in by_method.items() if gauged(rows)]


def _table(name: str, rows: Sequence[Row]) -> SideBySide:
    wrong = {row.question_id: row.metrics["em"] < 1 for row in rows if row.metrics}
    scores = gauged_scores(rows)
    common = [question for question in wrong if all(question in own for own in scores.values())]
    values = np.array([[own[question] for question in common] for own in scores.values()])
    truth = [wrong[question] for question in common]
    return SideBySide(
        method=name,
        n=len(common),
        wrong=sum(truth),
        metric="em",
        signals=tuple(_reading(signal, column, truth, rows) for signal, column in zip(scores, values, strict=True)),
        correlations=Correlations(list(scores), spearman(values)),
        left_out={signal: _needs(signal) for signal in registry.names() if signal not in scores},
    )


def _reading(name: str, scores: Any, wrong: Sequence[bool], rows: Sequence[Row]) -> Reading:
    readings = [row.signals[name] for row in rows if not row.failed and name in row.signals]
    prices = ("model_calls", "prompt_tokens", "generated_tokens")
    return Reading(
        name,
        auroc(scores, wrong),
        auroc_interval(scores, wrong),
        sum(gauge["score"] is None for gauge in readings),
        *(mean([gauge[price] for gauge in readings]) for price in prices),
    )


def _needs(name: str) -> Sequence[str]:
    needs = registry.find(name).needs
    beside = {"a probe": registry.reads_probe(name), "an index": registry.counts(name)}
    return [*(key for key in needs.__slots__ if getattr(needs, key)), *(extra for extra, needed in beside.items() if needed)]
