"""A run's summary on a terminal: one row per method, then what stands beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gnothi.errors import counted
from gnothi.report import tables
from gnothi.report.comparison import Comparison, SideBySide
from gnothi.report.document import Document
from gnothi.report.numbers import SIGNIFICANT, between, chance, interval, money, share, signed
from gnothi.report.summary import Method, Summary
from gnothi.report.terminal.console import paragraph
from gnothi.stats.intervals import Interval

if TYPE_CHECKING:
    from rich.console import Console


def show(console: Console, summary: Summary, title: str = "") -> None:
    """The table of methods, never/always/oracle, the paired tests that matter, decisions in the lab, warnings. The ``title`` is
    the data set's name where none is given."""
    caption = f"{title or summary.dataset}: means per question, 95% intervals below; retr.: share of questions with a search"
    paragraph(console, caption)
    tables.methods(summary.methods).show(console)
    _reached(console, summary.methods)
    for panel in summary.signals:
        _signals(console, panel)
    for notes in (_beside, _honesty, _from_cache, _thought):
        for line in (line for method in summary.methods for line in notes(method)):
            paragraph(console, line)
    for test in summary.comparisons:
        if test.metric == "em":
            paragraph(console, _test(test))
    for warning in summary.warnings:
        paragraph(console, f"warning: {warning}", style="yellow")


def show_costs(console: Console, document: Document) -> None:
    """What each method cost, at the prices of a report's document."""
    currency = f" {document.prices.currency}".rstrip() if document.prices else ""
    for one in document.costs:
        if paid := one.money:
            spread = f" [{money(paid.interval[0])}, {money(paid.interval[1])}]" if paid.interval else ""
            paragraph(
                console,
                f"{one.method}: cost {money(paid.total)}{currency}, {money(paid.per_thousand)}{spread} for 1,000 questions, "
                f"{money(paid.per_right)} for each right answer",
            )


def _reached(console: Console, methods: Sequence[Method]) -> None:
    """The search and the reader told apart, where anything was searched for."""
    by_method = {one.method: one.reached for one in methods if one.reached and one.reached.n}
    if by_method and any(one.retrieval_rate for one in methods):
        caption = (
            "where answers were lost: shares of the n questions for which this is known; then numbers of questions: misread "
            "(read, but answered wrongly), unread (found, but not read), not found, right without reading it"
        )
        paragraph(console, caption)
        tables.reached(by_method).show(console)


def _signals(console: Console, panel: SideBySide) -> None:
    """The signals that a method measured side by side."""
    method = panel.method
    paragraph(
        console,
        f"signals measured by {method}. AUROC: how well each separates {method}'s right and wrong answers ({panel.wrong} of "
        f"{panel.n} are wrong; 95% intervals). Calls, tokens read and written: what the signal alone adds to the answer",
    )
    tables.side_by_side(panel).show(console)
    for reason, names in panel.missing.items():
        paragraph(console, f"{method}: left out, {reason}: {names}")


def _beside(method: Method) -> Iterator[str]:
    name, ends, search, lab = method.method, method.beside, method.search, method.lab
    if ends and ends.em.get("oracle") is not None:
        roles = (("never", ends.never), ("always", ends.always), ("method", name), ("oracle", "the better of both"))
        rate = ends.retrieval_rate
        yield f"{name}: EM " + ", ".join(
            f"{role} {share(ends.em[role])} (retr. {share(rate[role])}, {of})" for role, of in roles
        )
    if search and search.n and method.gate:
        yield (
            f"{name}: over-search {share(search.over_search.share)} (searched, though {search.closed_book} was right), "
            f"under-search {share(search.under_search.share)} (did not search, though {search.closed_book} was wrong)"
        )
    if lab:
        yield (
            f"{name}: right decisions {_measured(lab.right, lab.right_interval)}; of the decisions whether to retrieve "
            f"{share(lab.right_retrieval)}"
        )


def _honesty(method: Method) -> Iterator[str]:
    """Refusing what cannot be answered, and not repeating falsehoods."""
    refusal, truth = method.refusal, method.truthfulness
    parts = []
    if refusal and refusal.answerable:
        answered = _measured(refusal.accuracy, refusal.accuracy_interval)
        parts.append(f"{counted(refusal.answerable, 'answerable question')}: accuracy {answered}")
    if refusal and refusal.unanswerable:
        measures = f"precision {share(refusal.precision)}, recall {share(refusal.recall)}"
        parts.append(f"{refusal.unanswerable} unanswerable: refusal F1 {share(refusal.f1)} ({measures})")
    if parts:
        yield f"{method.method}: {'; '.join(parts)}"
    if truth:
        closer = _measured(truth.closer, truth.closer_interval)
        yield (
            f"{method.method}: closer to a correct than to any incorrect answer {closer}, "
            f"refused {share(truth.refused)} (by words shared; no judge model)"
        )


def _from_cache(method: Method) -> Iterator[str]:
    """How many model calls were answered from the cache, where any was."""
    answered = method.n - method.failures
    cached, calls = (round((mean or 0) * answered) for mean in (method.cached_calls, method.model_calls))
    if cached:
        many = f"all {calls}" if cached == calls else f"{cached} of {calls}"
        yield f"{method.method}: {many} model calls came from the cache"


def _thought(method: Method) -> Iterator[str]:
    """How much of what was written was thought, where anything was."""
    if method.thought_tokens and method.generated_tokens:
        part = share(method.thought_tokens / method.generated_tokens)
        yield f"{method.method}: {part} of the generated tokens were thoughts"


def _test(test: Comparison) -> str:
    verdict = "they differ" if test.p_holm < SIGNIFICANT else "no difference shown"
    holm = f", corrected {chance(test.p_holm)}" if test.p_holm != test.p else ""
    spread = f" {interval(test.interval, sign=True)}" if test.interval else ""
    return (
        f"{test.first} - {test.second}: EM {signed(test.difference)}{spread}, p = {chance(test.p)}{holm} ({test.test}, "
        f"n = {test.n}): {verdict}"
    )


def _measured(value: float | None, spread: Interval | None) -> str:
    return f"{share(value)} ({between(spread)})" if spread else share(value)
