"""Everything that a report shows, one document per data set: page, JSON and CSV are written from it alone."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from gnothi.calibration import compare
from gnothi.calibration.baselines import ByMethod, never_of
from gnothi.calibration.compare import Gates
from gnothi.calibration.from_run import replay_methods
from gnothi.calibration.replay import Replay
from gnothi.calibration.verdicts import FEWEST_DECISIONS, GateSummary, one_sided, paired_scores, truth
from gnothi.config import as_text
from gnothi.errors import InvalidInput, InvalidSetting, counted
from gnothi.report.comparison import Beside, Roles
from gnothi.report.costs import Costs, Prices, costs
from gnothi.report.numbers import SIGNIFICANT, between, metric_name, percent
from gnothi.report.sections import Section
from gnothi.report.selective import Selective, selective
from gnothi.report.summary import Method, Summary, summarise
from gnothi.runs.folder import EXECUTION
from gnothi.runs.rows import MERGED, group, rounded
from gnothi.stats.intervals import Interval, mean_interval
from gnothi.stats.probabilities import crossfit_probabilities
from gnothi.stats.reliability import Bin, ece, ece_interval, reliability

# What a run comes to, in a few plain sentences.


def verdict(summary: Summary) -> tuple[str, ...]:
    """Which method answers best, what each gate saves and costs, and whether there is something to mind first."""
    return tuple(_sentences(summary))


def _sentences(summary: Summary) -> Iterator[str]:
    scored = [method for method in summary.methods if method.em is not None]
    # Answers in sentences: what exact match says of them is about their form.
    metric = "accuracy" if 2 * sum(one.em or 0 for one in scored) < sum(one.accuracy or 0 for one in scored) else "em"
    if scored:
        yield _best(metric, scored, summary)
    elif not summary.methods:
        yield "No question was answered yet."
    elif all(method.failures == method.n for method in summary.methods):
        yield "Every question failed, so nothing is known of the answers."
    else:
        yield "No question has a gold answer, so nothing says which answers are right."
    for method in summary.methods:
        if method.gate and method.beside:
            yield from _gate(method, method.gate, method.beside, metric)
    if summary.warnings:
        many = counted(len(summary.warnings), "warning") if len(summary.warnings) > 1 else "warning"
        yield f"Read the {many} below before you rely on these numbers."


def _best(metric: str, scored: Sequence[Method], summary: Summary) -> str:
    best = max(scored, key=lambda one: (getattr(one, metric) or 0.0, one.scored))
    value, spread = getattr(best, metric), best.intervals[metric]
    sentence = f"{best.method} is right in {percent(value)} of {counted(best.scored, 'question')}"
    sentence += f" ({metric_name(metric)}{f', 95% interval {between(spread)}' if spread else ''})"
    others = [one.method for one in summary.methods if one.method != best.method]
    if not others:
        return f"{sentence}."
    tests = {
        test.first if test.second == best.method else test.second: test
        for test in summary.comparisons
        if test.metric == metric and best.method in (test.first, test.second)
    }
    clear = {name: test for name, test in tests.items() if test.p_holm < SIGNIFICANT}
    ahead = {name for name, test in clear.items() if (test.difference > 0) is (test.first == best.method)}
    level = [one.method for one in scored if one is not best and getattr(one, metric) == value]
    if ahead.issuperset(others) and not level:
        return f"{sentence}, more than every other method."
    sentence += f", the same share as {_some(level)}" if level else ", the highest share"
    if unclear := [name for name in others if name in tests and name not in clear and name not in level]:
        sentence += f"; the difference from {_some(unclear)} may be chance"
    # Where a method failed on hard questions, its mean is of the easy ones alone.
    if behind := [name for name in others if name in clear and name not in ahead]:
        sentence += f"; it is behind {_some(behind)} on the questions that both answered"
    if untested := [name for name in others if name not in tests and name not in level]:
        sentence += f"; it was not tested against {_some(untested)}"
    return f"{sentence}."


def _some(names: Sequence[str]) -> str:
    return f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"


def _gate(method: Method, decided: GateSummary, ends: Beside, metric: str) -> Iterator[str]:
    values: Roles = getattr(ends, metric)
    if values.get("method") is None:
        return
    gate = f"searches for {percent(method.retrieval_rate)} of the questions"
    if decided.decisions >= FEWEST_DECISIONS and (fires := one_sided(decided.firing_rate)):
        gate += f": its gate (almost) {fires} fires, and so decides nothing"
    beside = [
        f"{percent(values[role])} by {how} searching ({name})"
        for role, how, name in (("always", "always", ends.always), ("never", "never", ends.never))
        if values.get(role) is not None and name
    ]
    against = f", against {' and '.join(beside)}" if beside else ""
    common = f" of the {counted(ends.n, 'question')} that all of these answered" if ends.n < method.scored else ""
    yield f"{method.method} {gate}. It is right in {percent(values['method'])}{common}{against}."


@dataclass(frozen=True, slots=True)
class MethodPoint:
    """A method on all questions of a replay: how good, and for how many questions it searched."""

    method: str
    accuracy: float
    interval: Interval | None
    retrieval_rate: float


@dataclass(frozen=True, slots=True)
class GatesAndMethods:
    gates: Gates = field(metadata=MERGED)
    points: tuple[MethodPoint, ...]


@dataclass(frozen=True, slots=True)
class Reliability:
    """Scores as probabilities of a wrong answer of ``truth`` (isotonic, fitted on the other folds), and what happened."""

    method: str
    truth: str
    n: int
    ece: float | None
    interval: Interval | None
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that is not the same in all runs, and its values, run by run."""

    setting: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document(Summary):
    """``verdict``: what it comes to, in sentences. ``made``: model, index and the like, and the day of the last answer, of each
    run. ``gates``: what ``gnothi calibrate --replay`` says of the rows, with the methods as points; None where never or always
    is missing, with the reason in ``no_gates``. ``missing``: answers that unfinished runs lack."""

    verdict: tuple[str, ...]
    runs: tuple[str, ...]
    made: tuple[Mapping[str, str], ...]
    differences: tuple[Difference, ...]
    questions: int
    missing: int
    gates: GatesAndMethods | None
    no_gates: str | None
    selective: tuple[Selective, ...]
    reliability: tuple[Reliability, ...]
    prices: Prices | None
    costs: tuple[Costs, ...]


def document(section: Section, prices: Prices | None = None, never: str | None = None, always: str | None = None) -> Document:
    """``never`` and ``always`` name the methods that gates are replayed between. Raises UnknownName for one that is not there,
    InvalidSetting where both are the same, or of two models."""
    by_method = group(section.rows)
    foreign = section.foreign(never)
    if always in foreign:
        end = never or never_of(by_method, section.trusting)
        raise InvalidSetting(
            f"<--always>: got {always!r}, expected a method of the model of never ({end!r}). Name two of one model."
        )
    ours = {name: rows for name, rows in by_method.items() if name not in foreign}
    gates, reason = _gates(section, ours, never, always)
    summary = summarise(section.rows, section.dataset, section.trusting, foreign)
    report = Document(
        **{item.name: getattr(summary, item.name) for item in fields(summary)},
        verdict=verdict(summary),
        runs=tuple(path.name for path in section.runs),
        made=tuple(_origin(path, config) for path, config in zip(section.runs, section.configs, strict=True)),
        differences=tuple(_differences(section)),
        questions=len({row.question_id for row in section.rows}),
        missing=section.missing,
        gates=gates,
        no_gates=reason,
        selective=tuple(one for name, rows in by_method.items() if (one := selective(name, rows))),
        reliability=tuple(_reliability(section, ours)),
        prices=prices,
        costs=tuple(costs(name, rows, prices) for name, rows in by_method.items()),
    )
    return rounded(report)


def reliability_of(method: str, source: str, scores: Sequence[float], wrong: Sequence[bool]) -> Reliability | None:
    """None where it cannot be learnt."""
    predicted = crossfit_probabilities(scores, wrong)
    if predicted is None:
        return None
    measured = ece(predicted, wrong), ece_interval(predicted, wrong), reliability(predicted, wrong)
    return Reliability(method, source, len(scores), *measured)


def _origin(path: Path, config: Mapping[str, Any]) -> Mapping[str, str]:
    sources = {"model": config.get("model.name"), "index": config.get("index"), "graph": config.get("graph")}
    rows = path / "rows.jsonl"
    when = datetime.date.fromtimestamp(rows.stat().st_mtime).isoformat() if rows.exists() else None
    origin = {**sources, "last answer": when}
    return {key: str(value) for key, value in origin.items() if value not in (None, "none")}


def _differences(section: Section) -> Iterable[Difference]:
    """Of several runs; settings that results do not depend on are left aside, and those of methods that a run does not have."""
    keys = dict.fromkeys(key for config in section.configs for key in config if not key.startswith(EXECUTION))
    for key in keys:
        values = [as_text(config[key]) if key in config else None for config in section.configs]
        comparable = [value for value in values if value is not None or not key.startswith("method.")]
        if len(set(comparable)) > 1:
            yield Difference(key, tuple(value or "" for value in values))


def _gates(
    section: Section, by_method: ByMethod, never: str | None, always: str | None
) -> tuple[GatesAndMethods | None, str | None]:
    source = "the report" if len(section.runs) > 1 else "the run"
    try:
        replay = replay_methods(by_method, section.trusting, source, "", section.dataset, never=never, always=always)
    except InvalidInput as error:
        return None, str(error)
    return GatesAndMethods(compare.document(replay).gates, tuple(_points(replay, by_method))), None


def _points(replay: Replay, by_method: ByMethod) -> Iterable[MethodPoint]:
    for name, rows in by_method.items():
        table = {row.question_id: row for row in rows if row.metrics}
        if all(question in table for question in replay.questions):
            own = [table[question] for question in replay.questions]
            quality = [row.metrics[replay.metric] for row in own]
            searched = [row.retrieved for row in own]
            yield MethodPoint(name, float(np.mean(quality)), mean_interval(quality), float(np.mean(searched)))


def _reliability(section: Section, by_method: ByMethod) -> Iterable[Reliability]:
    """Gate scores against closed-book answers."""
    known = truth(by_method, trusting=section.trusting)
    for name, rows in by_method.items() if known else ():
        scores, wrong = paired_scores(rows, known)
        if known and (one := reliability_of(name, known.source, scores, wrong)):
            yield one
