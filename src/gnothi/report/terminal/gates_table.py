"""What gates come to, on a terminal: those of single signals, and a learnt one, with what it looks at and why it did what it
did with one question."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gnothi.calibration.compare import Compared, Gates
from gnothi.calibration.learned import AFTER, BEFORE, CASCADE
from gnothi.calibration.learned_records import Example, Learned, Reached, Shown
from gnothi.errors import counted
from gnothi.report import tables
from gnothi.report.numbers import between, percent, share, signed
from gnothi.report.terminal.console import paragraph

if TYPE_CHECKING:
    from rich.console import Console


_NOTES = """AUROC: does the signal tell where {truth} is wrong? threshold: best for accuracy{priced} on all questions (retrieve
above it, or below where marked <). acc., retr., gap closed: each threshold is judged on questions that it was not chosen on
(cross-validation); gap: from the better of never and always to the oracle. hindsight: accuracy at the threshold that is best
for accuracy{priced} on these very questions.{best} Below: 95% intervals."""
_SEVERAL = " The best of several signals looks better here than it will on new questions."


def show_gates(console: Console, compared: Compared, title: str) -> None:
    """Under the ``title``: never, always and oracle; a row per signal; what was replayed."""
    gates = compared.gates
    ends = ", ".join(
        f"{role} {share(value)}{_brackets(between(gates.intervals[role]), gates.names.get(role, ''))}"
        for role, value in (("never", gates.never), ("always", gates.always), ("oracle", gates.oracle))
    )
    paragraph(console, f"{title}: {counted(gates.n, 'question')}, {gates.metric}: {ends}")
    for name, other in gates.others.items():
        searches = "" if other.searches is None else f", {other.searches:.2f} searches a question"
        paragraph(console, f"{name}: {share(other.accuracy)}{searches}; oracle of never and this {share(other.oracle)}")
    if compared.reached:
        tables.reached(compared.reached).show(console)
    if not gates.signals:
        paragraph(console, "no signal was recorded, so there is no gate to replay")
        return
    tables.signals(gates).show(console)
    for line in (*_replayed(gates), *_not_measured(gates)):
        paragraph(console, line)
    truth = " and ".join(dict.fromkeys(signal.truth for signal in gates.signals.values()))
    priced = f" less {gates.price:g} a retrieval" if gates.price else ""
    notes = _NOTES.format(truth=truth, priced=priced, best=_SEVERAL if len(gates.signals) > 1 else "")
    paragraph(console, " ".join(notes.split()), style="dim")


def _replayed(gates: Gates) -> Iterator[str]:
    for name, signal in gates.signals.items():
        if one := signal.replayed:
            error = one.error_among_trusted
            trusted = "" if error is None else f"; of the {one.trusted} trusted {error:.1%} are wrong"
            yield (
                f"{name} at {one.threshold:g}: accuracy {share(one.accuracy)}{_brackets(between(one.interval))}, retrieves for "
                f"{share(one.retrieval_rate)}{trusted}"
            )


def _brackets(*inside: str) -> str:
    text = "; ".join(filter(None, inside))
    return f" ({text})" if text else ""


def _not_measured(gates: Gates) -> Iterator[str]:
    """A line for the signals that lack the same number of scores."""
    lacking: dict[int, list[str]] = {}
    for name, signal in gates.signals.items():
        lacking.setdefault(signal.not_measured, []).append(name)
    for number, names in sorted(lacking.items()):
        if number:
            yield (
                f"{', '.join(names)}: no score for {number} of {counted(gates.n, 'question')} (nothing could be measured, or "
                "there was no answer to measure). They count as the least certain, so every gate retrieves for them."
            )


SHOWN = 8
"""Weights of a step; JSON has all."""
_TEXT = 200  # characters of an answer
_LEARNT = """acc.: right answers. searches: share of questions searched for. gain: of accuracy, less what searches{costs} cost,
over the better of never and always, with its 95% interval. {ways} {best}"""
_WAYS = {
    BEFORE: "searches only where the gain exceeds the price, and then takes the answer from evidence.",
    AFTER: "always searches, and chooses between the two answers.",
    CASCADE: "takes each step only where the gain exceeds its price.",
}
_BEST = "The best signal's threshold was chosen on other questions of the same file."


def show_learned(console: Console, learned: Learned) -> None:
    """Ends and ways; the weights of each step; one question's way through them."""
    of = ", ".join(learned.learnt_on) or "the other questions of the file, five parts in turn"
    ends = learned.ends
    paragraph(
        console,
        f"{learned.dataset}: {counted(learned.n, 'question')}, {learned.metric}; learnt on {of}. Evidence helps "
        f"{percent(ends.helped)} of them and harms {percent(ends.harmed)}. A search costs {learned.prices.search:g} right "
        f"answers, a wrong answer {learned.prices.wrong:g}.",
    )
    tables.ways(learned).show(console)
    prices = learned.prices
    costs = "".join(f", {name}" for name, price in (("tokens", prices.tokens), ("wrong answers", prices.wrong)) if price)
    ways = " ".join(f"{way}: {meaning}" for way, meaning in _WAYS.items())
    notes = _LEARNT.format(costs=costs, ways=ways, best=_BEST if learned.best_signal else "")
    paragraph(console, " ".join(notes.split()), "dim")
    if learned.tokens:
        stages = ", ".join(f"{stage} {tokens:.0f}" for stage, tokens in learned.tokens.items() if tokens)
        paragraph(console, f"Tokens that a question took at each stage: {stages}.", "dim")
    for step in learned.steps:
        _weights(console, step)
    if learned.example is not None:
        _example(console, learned.example)


def _weights(console: Console, step: Shown) -> None:
    weights = [one for one in step.weights if one.differ or one.evidence][:SHOWN]
    needed = f"it goes on above a gain of {step.needed:.3g}" if step.needed else "it takes the likelier answer"
    remark = "" if weights else " No feature told anything on other questions: rates alone decide."
    console.print()
    paragraph(console, f'Known at "{step.stage}": {needed}.{remark}')
    if weights:
        tables.weights(weights).show(console)


def _example(console: Console, example: Example) -> None:
    console.print()
    paragraph(console, f"For example: {example.question}", "bold")
    for source, text, right in (
        ("memory", example.memory, example.memory_right),
        ("evidence", example.evidence, example.evidence_right),
    ):
        answer = "(not recorded)" if text is None else textwrap.shorten(text, _TEXT, placeholder=" ...")
        paragraph(console, f"{source} says ({'right' if right else 'wrong'}): {answer}")
    for step in example.steps:
        paragraph(console, _reached(step))
    paragraph(console, f"so it takes: {example.takes}")


def _reached(step: Reached) -> str:
    verdict = "yes" if step.goes_on else "no"
    reasons = ", ".join(f"{one.feature} = {one.value:.3g} ({signed(one.pull, 2)})" for one in step.reasons)
    because = f"; for evidence (+) and against (−): {reasons}" if reasons else ""
    return (
        f"{step.stage}: evidence helps with {percent(step.helped)}, harms with {percent(step.harmed)}; a gain above "
        f"{step.needed:.3g} is needed: {verdict}{because}"
    )
