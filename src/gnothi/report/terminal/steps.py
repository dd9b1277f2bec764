"""Shows the events of one question as they happen: drafts, verdicts, searches, which passage and which answer won.

    1 draft    Aldo Renn was born in Vesk.
      gate     gram -3.21 > -4.80: unsure, retrieve
      search   aldo renn born (3 passages, 2 ms)
      read     * -5.90  Aldo Renn: Aldo Renn was born in Corda.
                 -4.05  Aldo Renner: Aldo Renner is a painter.
               won by 1.85
      write    Aldo Renn was born in Corda.

Of a question that is split into several (KEQA):

    1 quiz     Who directed The Paper Kite?
    2 quiz     Where was #1 born?
      tries    Who directed The Paper Kite? Ada Bram ×4, Bo Lund ×1 (5 of 5 tries)
      gate     consistency 0.20 = 0.20: sure, trust memory
      pick     Where was Ada Bram born? 2 of 10 passages useful
                 * Ada Bram: Ada Bram was born in Corda.
      solved   2 Corda (from passages)
      notes    Ada Bram directed The Paper Kite.

Of passages whose sentences are filtered (SKILL-RAG):

      search   Where was Ada Bram born? (3 passages, 2 ms)
      filter   1 of 9 sentences kept (pmi, above 0.00)
               *   3.21  Ada Bram: Ada Bram was born in Corda.

Of facts found with internal knowledge (IEKR):

      link     The Paper Kite (1 ms)
      recall   The Paper Kite: The director of The Paper Kite is Ada Bram.
      facts    120 facts within 2 steps (2 ms)
      rank     120 texts by lab (80 ms)
                   3.10  The birthplace of Ada Bram is Corda.

Of several signals side by side (panel):

    1 draft    So the answer is Corda.
      signals  gram               -6.02  1 call, 260 tokens more
               perplexity         1.031  for nothing more

One line per fact, at most as wide as the console; the same text with and without colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gnothi.events import (
    Decided,
    Decomposed,
    Drafted,
    Event,
    Expanded,
    Filtered,
    Gauged,
    Grouped,
    Linked,
    ModelCall,
    Picked,
    QuizAnswered,
    Ranked,
    Reflected,
    Reranked,
    Revised,
    Searched,
    Summarised,
    Usage,
)
from gnothi.report.terminal.console import clean, cut, wrap
from gnothi.types import Answer, Passage

if TYPE_CHECKING:
    from rich.console import Console

LABEL = 9  # columns of "search", "answers" ... with the space after
MARGIN = 4  # columns of the step number with the space after
FOUND = 3  # passages shown of a search
EVIDENCE = 10  # passages shown of an answer

_STYLES = {"retrieve": "yellow", "trust": "green"}
_SOURCES = {
    "memory": "from memory",
    "passages": "from passages",
    "guess": "a guess: tries disagree, nothing useful was found",
    "nothing": "nobody knows",
}
_WORDS = {"retrieve": "unsure, retrieve", "trust": "sure, trust memory"}


class Steps:
    """A listener (``events.listen``) that prints. ``trace`` adds every model call and all passages found."""

    def __init__(self, console: Console, trace: bool = False) -> None:
        self._console = console
        self._trace = trace
        self._step = 0
        self._titles: dict[str, str] = {}
        self._reading = False  # the next draft is the one written with the passage that won

    def __call__(self, event: Event) -> None:
        match event:
            case Drafted():
                self._drafted(event)
            case Gauged():
                self._gauged(event)
            case Decided():
                self._decided(event)
            case Searched():
                self._searched(event)
            case Linked():
                names = ", ".join(dict.fromkeys(mention.node for mention in event.mentions))
                self._line("link", f"{names or 'no name of the graph'} ({_seconds(event.seconds)})", style="cyan")
            case Expanded():
                self._expanded(event)
            case Reflected():
                self._reflected(event)
            case Reranked():
                self._reranked(event)
            case Revised():
                same = event.after == event.before
                self._line("revise", "nothing to change" if same else event.after)
            case Ranked(kind="answer"):
                self._answers(event)
            case Ranked():
                self._ranked(event)
            case Decomposed():
                self._decomposed(event)
            case Grouped():
                self._grouped(event)
            case Picked():
                self._picked(event)
            case Filtered():
                self._filtered(event)
            case QuizAnswered():
                source = _SOURCES.get(event.source, event.source)
                self._line("solved", f"{event.number} {event.answer} ({source})", style="bold")
            case Summarised():
                for number, premise in enumerate(event.premises):
                    self._line("notes" if number == 0 else "", premise)
            case ModelCall() if self._trace:
                self._called(event)

    def _drafted(self, event: Drafted) -> None:
        text = event.text or "(nothing said)"
        if self._reading:
            self._reading = False
            self._line("write", text, style="bold")
        else:
            self._step += 1
            self._line("draft", text, step=self._step, style="bold")

    def _gauged(self, event: Gauged) -> None:
        self._step += 1
        self._line("draft", event.text or "(nothing said)", step=self._step, style="bold")
        width = max(len(gauge.signal) for gauge in event.gauges)
        for number, gauge in enumerate(event.gauges):
            tokens = gauge.prompt_tokens + gauge.generated_tokens
            calls = _counted(gauge.model_calls, "call")
            price = f"{calls}, {tokens:,} tokens more" if gauge.model_calls else "for nothing more"
            score = "not measured" if gauge.score is None else f"{gauge.score:.4g}"
            self._cut("signals" if number == 0 else "", price, prefix=f"{gauge.signal:<{width}}  {score:>12}  ")

    def _decided(self, event: Decided) -> None:
        outcome = _WORDS.get(event.verdict, event.verdict)
        label = "gate" if event.kind == "retrieve" else event.kind
        if not event.signal:  # chosen, not measured
            self._line(label, f"{outcome} {event.subject}".rstrip())
            return
        self._line(label, f"{_comparison(event)}: {outcome}", style=_STYLES.get(event.verdict, ""))

    def _decomposed(self, event: Decomposed) -> None:
        if not event.used:
            self._line("split", "no list of quizzes that could be used: the question is asked as it is", style="dim")
        for number, quiz in enumerate(event.quizzes, start=1):
            self._line("quiz", quiz, step=number, style="bold")

    def _grouped(self, event: Grouped) -> None:
        said = [f"{answer} ×{count}" for answer, count in event.groups]
        said += [f"unknown ×{event.unknown}"] if event.unknown else []
        given = sum(count for _, count in event.groups) + event.unknown
        self._line("tries", f"{event.question} {', '.join(said)} ({given} of {_counted(event.tries, 'try', 'tries')})")

    def _picked(self, event: Picked) -> None:
        found = len(event.kept) + len(event.dropped)
        self._line("pick", f"{event.question} {len(event.kept)} of {_counted(found, 'passage')} {event.kind}")
        for mark, style, passages in (("*", "green", event.kept), (" ", "dim", event.dropped if self._trace else ())):
            for passage in passages:
                self._cut("", _entry(passage.title, passage.text), style, f"  {mark} ")

    def _filtered(self, event: Filtered) -> None:
        kept = sum(stays for *_, stays in event.sentences)
        outcome = (
            f"{kept} of {_counted(len(event.sentences), 'sentence')} kept ({event.kind}, above {_number(event.threshold)})"
        )
        self._line("filter", outcome if kept else f"{outcome}: nothing to read, answer from memory")
        for source, text, score, stays in event.sentences:
            if stays or self._trace:
                entry = _entry(self._titles.get(source, source), text)
                mark, style = ("*", "green") if stays else (" ", "dim")
                self._cut("", entry, style, f"{mark} {_number(score):>6}  ")

    def _searched(self, event: Searched) -> None:
        self._titles |= {found.passage.id: found.passage.title for found in event.passages}
        count = len(event.passages)
        what = _counted(count, "passage") if count else "nothing found"
        self._line("search", f"{event.query} ({what}, {_seconds(event.seconds)})", style="cyan")
        shown = event.passages if self._trace else event.passages[:FOUND]
        for number, found in enumerate(shown):
            entry = _entry(found.passage.title, found.passage.text)
            self._cut("found" if number == 0 else "", entry, prefix=f"  {found.score:6.2f}  ")

    def _expanded(self, event: Expanded) -> None:
        facts = f"{_counted(event.facts, 'fact')} within {_counted(event.hops, 'step')} ({_seconds(event.seconds)})"
        named = event.capped if self._trace else event.capped[:FOUND]
        more = f" and {len(event.capped) - len(named)} more" if len(event.capped) > len(named) else ""
        hubs = f"; of {', '.join(named)}{more} only {event.cap} each" if event.capped else ""
        self._line("facts", facts + hubs, style="cyan")

    def _reflected(self, event: Reflected) -> None:
        for name, text in event.told:
            known = name in event.known
            self._cut("recall" if (name, text) == event.told[0] else "", _entry(name, text), "green" if known else "dim")

    def _reranked(self, event: Reranked) -> None:
        self._line(
            "rank", f"{_counted(event.considered, 'text')} by {event.reranker} ({_seconds(event.seconds)})", style="cyan"
        )
        for text, score in event.best if self._trace else event.best[:FOUND]:
            self._cut("", text, prefix=f"  {score:6.2f}  ")

    def _ranked(self, event: Ranked) -> None:
        entries = [(self._titles.get(label, label), text, score) for label, text, score in event.candidates]
        self._reading = event.kind == "passage"
        self._contest("read" if self._reading else event.kind, entries)

    def _answers(self, event: Ranked) -> None:
        self._contest("answers", [(f"from {label}", text or "(none)", score) for label, text, score in event.candidates])

    def _contest(self, label: str, entries: Sequence[tuple[str, str, float | None]]) -> None:
        for number, (title, text, score) in enumerate(entries):
            mark = "*" if number == 0 else " "
            style = "green" if number == 0 else "dim"
            self._cut(label if number == 0 else "", _entry(title, text), style, f"{mark} {_number(score):>6}  ")
        first, second = ([score for _, _, score in entries] + [None, None])[:2]
        if first is not None and second is not None and round(second - first, 2) > 0:
            self._line("", f"won by {second - first:.2f}", style="dim")

    def _called(self, event: ModelCall) -> None:
        tokens = f"{event.prompt_tokens} + {event.generated_tokens} tokens"
        how = "from the cache" if event.cached else _seconds(event.seconds)
        self._line("model", f"{event.operation} {event.task} ({tokens}, {how})", style="dim")
        for text in dict.fromkeys(event.texts):
            self._cut("", repr(text), "dim")

    def _line(self, label: str, text: str, step: int | None = None, style: str = "") -> None:
        """A label and text, wrapped under itself."""
        for number, line in enumerate(wrap(text, self._console.width - MARGIN - LABEL)):
            self._put(label if number == 0 else "", line, style, step if number == 0 else None)

    def _cut(self, label: str, text: str, style: str = "dim", prefix: str = "") -> None:
        """A label and one line of text after a prefix, its end left off when too long."""
        self._put(label, prefix + cut(text, self._console.width - MARGIN - LABEL - len(prefix)), style)

    def _put(self, label: str, text: str, style: str, step: int | None = None) -> None:
        number = "" if step is None else str(step)
        _print(self._console, f"{number:>{MARGIN - 1}} {label:<{LABEL - 1}} ", text, style)


def show_answer(
    console: Console, answer: Answer, usage: Usage, seconds: float, charged: str = "", doubt: float | None = None
) -> None:
    """The answer with how it was reached, its evidence and its cost; ``charged`` is what a model behind an API took, ``doubt``
    the probability that a calibration gives to its being wrong."""
    console.print()
    console.print(clean(answer.text) or "(no answer)", style="bold green" if answer.text else "bold red", soft_wrap=True)
    if answer.rationale:
        _block(console, "because", answer.rationale)
    if not usage.retrievals:
        _block(console, "evidence", "none: nothing was retrieved")
    elif not answer.evidence:
        _block(console, "evidence", "none was kept")
    for number, passage in enumerate(answer.evidence[:EVIDENCE]):
        _block(console, "evidence" if number == 0 else "", _passage(passage))
    if len(answer.evidence) > EVIDENCE:
        _block(console, "", f"and {_counted(len(answer.evidence) - EVIDENCE, 'passage')} more (all of them: --json)")
    if doubt is not None:
        _block(console, "P(wrong)", f"{doubt:.2f} for an answer from memory, by the calibration")
    kept = f" ({usage.cached_calls} from the cache)" if usage.cached_calls else ""
    calls = f"{_counted(usage.model_calls, 'model call')}{kept}"
    _block(console, "cost", f"{_counted(usage.retrievals, 'retrieval')}, {calls}, {_seconds(seconds)}")
    _block(console, "", f"{usage.prompt_tokens:,} prompt tokens, {usage.generated_tokens:,} generated tokens")
    if charged:
        _block(console, "charged", charged)


def _counted(number: int, what: str, several: str = "") -> str:
    return f"{number} {what if number == 1 else several or what + 's'}"


def _block(console: Console, label: str, text: str) -> None:
    for number, line in enumerate(wrap(text, console.width - MARGIN - LABEL)):
        _print(console, f"{'':{MARGIN}}{label if number == 0 else '':<{LABEL - 1}} ", line)


def _print(console: Console, margin: str, text: str, style: str = "") -> None:
    """One line, whole: a console that shows a spinner below cannot take it in pieces."""
    from rich.text import Text

    console.print(Text.assemble((margin, "dim"), (text, style)), soft_wrap=True)


def _passage(passage: Passage) -> str:
    return f"[{passage.id}] {_entry(passage.title, passage.text)}"


def _entry(title: str, text: str) -> str:
    return f"{title}: {text}" if title else text


def _comparison(event: Decided) -> str:
    score = _number(event.score)
    if event.threshold is None:
        return f"{event.signal} {score}, no threshold"
    if event.score is None:
        return f"{event.signal} not measured, threshold {_number(event.threshold)}"
    digits = _digits(event.score, event.threshold)
    sign = ">" if event.score > event.threshold else "<" if event.score < event.threshold else "="
    return f"{event.signal} {_number(event.score, digits)} {sign} {_number(event.threshold, digits)}"


def _digits(score: float, threshold: float) -> int:
    """As many as are needed to see which one is larger, from 2 to 6; 2 where neither is, to the sixth digit."""
    if round(score, 6) == round(threshold, 6):
        return 2
    return next((digits for digits in range(2, 6) if round(score, digits) != round(threshold, digits)), 6)


def _number(score: float | None, digits: int = 2) -> str:
    return "-" if score is None else f"{round(score, digits) + 0.0:.{digits}f}"  # adding 0 turns -0.0 into 0.0


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
