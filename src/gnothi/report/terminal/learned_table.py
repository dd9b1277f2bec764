"""What a learnt gate comes to, what it looks at, and why it did what it did with one question, on a terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from gnothi.calibration.learned import AFTER, BEFORE, CASCADE
from gnothi.calibration.learned_records import Example, Learned, Reached, Shown
from gnothi.report import tables
from gnothi.report.numbers import counted, percent, signed
from gnothi.report.terminal.console import paragraph

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 8
"""Weights of a step; JSON has all."""
_TEXT = 200  # characters of an answer
_NOTES = """acc.: right answers. searches: share of questions searched for. gain: of accuracy, less what searches{costs} cost,
over the better of never and always, with its 95 % interval. {ways} {best}"""
_WAYS = {
    BEFORE: "searches where evidence is worth its price, and believes it.",
    AFTER: "always searches, and chooses between the two answers.",
    CASCADE: "each only where it is worth its price.",
}
_BEST = "The best signal's threshold was chosen on other questions of the same file."


def show(console: Console, found: Learned) -> None:
    """Ends and ways; the weights of each step; one question's way through them."""
    of = ", ".join(found.learnt_on) or "the other questions of the file, five parts in turn"
    ends = found.ends
    paragraph(
        console,
        f"{found.dataset}: {counted(found.n, 'question')}, {found.metric}; learnt on {of}. Evidence helps "
        f"{percent(ends.helped)} of them and harms {percent(ends.harmed)}. A search costs {found.prices.search:g} right "
        f"answers, a wrong answer {found.prices.wrong:g}.",
    )
    tables.ways(found).show(console)
    prices = found.prices
    costs = "".join(f", {what}" for what, price in (("tokens", prices.tokens), ("wrong answers", prices.wrong)) if price)
    ways = " ".join(f"{way}: {meaning}" for way, meaning in _WAYS.items())
    notes = _NOTES.format(costs=costs, ways=ways, best=_BEST if found.best_signal else "")
    paragraph(console, " ".join(notes.split()), "dim")
    if found.tokens:
        took = ", ".join(f"{stage} {tokens:.0f}" for stage, tokens in found.tokens.items() if tokens)
        paragraph(console, f"Tokens that a question took at each stage: {took}.", "dim")
    for step in found.steps:
        _weights(console, step)
    if found.example is not None:
        _example(console, found.example)


def _weights(console: Console, step: Shown) -> None:
    weights = [one for one in step.weights if one.differ or one.evidence][:SHOWN]
    needed = f"it goes on above a gain of {step.needed:.3g}" if step.needed else "it takes the likelier answer"
    told = "" if weights else " No feature told anything on other questions: rates alone decide."
    console.print()
    paragraph(console, f'Known at "{step.stage}": {needed}.{told}')
    if weights:
        tables.weights(weights).show(console)


def _example(console: Console, example: Example) -> None:
    console.print()
    paragraph(console, f"For example: {example.question}", "bold")
    for whose, text, right in (
        ("memory", example.memory, example.memory_right),
        ("evidence", example.evidence, example.evidence_right),
    ):
        said = "(not recorded)" if text is None else textwrap.shorten(text, _TEXT, placeholder=" ...")
        paragraph(console, f"{whose} says ({'right' if right else 'wrong'}): {said}")
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
