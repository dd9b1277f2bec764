"""Shows the events of one question as they happen: drafts, verdicts, searches, which passage and which answer won.

    1 draft    Aldo Renn was born in Vesk.
      gate     gram -3.21 > -4.80: unsure, retrieve
      search   aldo renn born (3 passages, 2 ms)
      read     * -5.90  Aldo Renn: Aldo Renn was born in Corda.
                 -4.05  Aldo Renner: Aldo Renner is a painter.
               won by 1.85
      write    Aldo Renn was born in Corda.

One line per fact, at most as wide as the console; the same text with and without colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gnothi.cli.terminal import clean, cut, wrap
from gnothi.events import Decided, Drafted, Event, ModelCall, Ranked, Searched, Usage
from gnothi.types import Answer, Passage

if TYPE_CHECKING:
    from rich.console import Console

LABEL = 9  # columns of "search", "answers" ... with the space after
MARGIN = 4  # columns of the step number with the space after
FOUND = 3  # passages shown of a search

_STYLES = {"retrieve": "yellow", "trust": "green"}
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
            case Decided():
                self._decided(event)
            case Searched():
                self._searched(event)
            case Ranked(kind="answer"):
                self._answers(event)
            case Ranked():
                self._ranked(event)
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

    def _decided(self, event: Decided) -> None:
        outcome = _WORDS.get(event.verdict, event.verdict)
        label = "gate" if event.kind == "retrieve" else event.kind
        self._line(label, f"{_comparison(event)}: {outcome}", style=_STYLES.get(event.verdict, ""))

    def _searched(self, event: Searched) -> None:
        self._titles |= {found.passage.id: found.passage.title for found in event.passages}
        count = len(event.passages)
        what = _counted(count, "passage") if count else "nothing found"
        self._line("search", f"{event.query} ({what}, {_seconds(event.seconds)})", style="cyan")
        shown = event.passages if self._trace else event.passages[:FOUND]
        for number, found in enumerate(shown):
            entry = _entry(found.passage.title, found.passage.text)
            self._cut("found" if number == 0 else "", entry, prefix=f"  {found.score:6.2f}  ")

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


def show_answer(console: Console, answer: Answer, usage: Usage, seconds: float, charged: str = "") -> None:
    """The answer with how it was reached, its evidence and its cost; ``charged`` is what a model behind an API took."""
    console.print()
    console.print(clean(answer.text) or "(no answer)", style="bold green" if answer.text else "bold red", soft_wrap=True)
    if answer.rationale:
        _block(console, "because", answer.rationale)
    if not usage.retrievals:
        _block(console, "evidence", "none: nothing was retrieved")
    elif not answer.evidence:
        _block(console, "evidence", "none was kept")
    for number, passage in enumerate(answer.evidence):
        _block(console, "evidence" if number == 0 else "", _passage(passage))
    kept = f" ({usage.cached_calls} from the cache)" if usage.cached_calls else ""
    calls = f"{_counted(usage.model_calls, 'model call')}{kept}"
    _block(console, "cost", f"{_counted(usage.retrievals, 'retrieval')}, {calls}, {_seconds(seconds)}")
    _block(console, "", f"{usage.prompt_tokens:,} prompt tokens, {usage.generated_tokens:,} generated tokens")
    if charged:
        _block(console, "charged", charged)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


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
    """As many as are needed to see which one is larger, from 2 to 6."""
    return next((digits for digits in range(2, 6) if round(score, digits) != round(threshold, digits)), 6)


def _number(score: float | None, digits: int = 2) -> str:
    return "-" if score is None else f"{round(score, digits) + 0.0:.{digits}f}"  # adding 0 turns -0.0 into 0.0


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
