"""What a run comes to, in a few plain sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gnothi.calibration.verdicts import DEGENERATE
from gnothi.report.comparison import Comparison
from gnothi.report.numbers import between, counted, metric_name, percent
from gnothi.report.summary import Method, Summary

SIGNIFICANT = 0.05


def verdict(found: Summary) -> tuple[str, ...]:
    """Which method answers best, what each gate saves and costs, and whether there is something to mind first."""
    return tuple(_sentences(found))


def _sentences(found: Summary) -> Iterator[str]:
    scored = [method for method in found.methods if method.em is not None]
    if not scored:
        yield "No question has a gold answer, so nothing says which answers are right."
    else:
        yield _best(scored, found.comparisons)
    for method in found.methods:
        if method.gate and method.beside:
            yield from _gate(method)
    if found.warnings:
        many = counted(len(found.warnings), "warning") if len(found.warnings) > 1 else "warning"
        yield f"Read the {many} below before you rely on these numbers."


def _best(scored: Sequence[Method], tests: Sequence[Comparison]) -> str:
    # Answers in sentences: what exact match says of them is about their form.
    metric = "accuracy" if 2 * sum(one.em or 0 for one in scored) < sum(one.accuracy or 0 for one in scored) else "em"
    best = max(scored, key=lambda one: getattr(one, metric) or 0.0)
    value, spread = getattr(best, metric), best.intervals[metric]
    said = f"{best.method} is right in {percent(value)} of {counted(best.n - best.failures, 'question')}"
    said += f" ({metric_name(metric)}{f', 95 % interval {between(spread)}' if spread else ''})"
    if len(scored) == 1:
        return f"{said}."
    worse = {
        name
        for test in tests
        for name in (test.first, test.second)
        if test.metric == metric and test.p_holm < SIGNIFICANT and best.method in (test.first, test.second)
    } - {best.method}
    unclear = [one.method for one in scored if one.method not in worse | {best.method}]
    if not unclear:
        return f"{said}, more than every other method."
    others = f"{', '.join(unclear[:3])}{' and others' if len(unclear) > 3 else ''}"
    return f"{said}, the most; beside {others} that may be chance."


def _gate(method: Method) -> Iterator[str]:
    ends = method.beside
    if ends is None or ends.em.get("method") is None:
        return
    rate = ends.retrieval_rate["method"] or 0.0
    if rate > 1 - DEGENERATE:
        gate = "searches for (almost) every question: its gate decides nothing"
    elif rate < DEGENERATE:
        gate = "searches for (almost) no question: its gate decides nothing"
    else:
        gate = f"searches for {percent(rate)} of the questions"
    beside = [
        f"{percent(ends.em[role])} by {how} searching ({name})"
        for role, how, name in (("always", "always", ends.always), ("never", "never", ends.never))
        if ends.em.get(role) is not None and name
    ]
    against = f", against {' and '.join(beside)}" if beside else ""
    yield f"{method.method} {gate}. It is right in {percent(ends.em['method'])}{against}."
