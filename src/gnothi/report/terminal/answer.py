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
               perplexity         1.031  at no extra cost

Of a model that thinks:

      thought  (312 tokens) The question asks where Ada Bram was born. I recall that she ...
    1 draft    Ada Bram was born in Corda.

One line per fact, at most as wide as the console; the same text with and without colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gnothi.errors import counted
from gnothi.events import Event, ModelCall, Usage
from gnothi.report.terminal.console import clean, cut, wrap
from gnothi.report.words import NOTHING_FOUND, THOUGHT, Narrator, duration, entry
from gnothi.types import Answer

if TYPE_CHECKING:
    from rich.console import Console

LABEL = 9  # columns of "search", "answers" ... with the space after
MARGIN = 4  # columns of the step number with the space after
EVIDENCE = 10  # passages shown of an answer
_STYLES = {"strong": "bold", "look": "cyan", "good": "green", "doubt": "yellow", "soft": "dim"}


class Steps:
    """A listener (``events.listen``) that prints. ``trace`` adds every model call, all passages found and whole thoughts."""

    def __init__(self, console: Console, trace: bool = False) -> None:
        self._console = console
        self._trace = trace
        self._narrator = Narrator()

    def __call__(self, event: Event) -> None:
        lines = self._narrator.describe(event)
        if isinstance(event, ModelCall) and not self._trace:
            lines = [line for line in lines if line.label == THOUGHT]
        room = self._console.width - MARGIN - LABEL
        for line in [line for line in lines if not (line.instead if self._trace else line.detail)]:
            if line.whole or (self._trace and line.label == THOUGHT):
                texts = wrap(line.lead + line.text, room)
            else:
                more = " (all of them: --trace)" if line.instead else ""
                texts = [line.lead + cut(line.text + more, room - len(line.lead))]
            for place, text in enumerate(texts):
                step, label = (line.step or "", line.label) if place == 0 else ("", "")
                _print(self._console, f"{step:>{MARGIN - 1}} {label:<{LABEL - 1}} ", text, _STYLES.get(line.tone, ""))


def show_answer(
    console: Console,
    answer: Answer,
    usage: Usage,
    seconds: float,
    charged: str = "",
    doubt: float | None = None,
    notes: Sequence[str] = (),
    empty: bool = False,
) -> None:
    """The answer with how it was reached, its evidence and its cost; ``charged`` is what a model behind an API took, ``doubt``
    the probability that a calibration gives to its being wrong. Before it what was peculiar about asking models (``notes``).
    ``empty``: searches found nothing."""
    _block(console, "asked", notes)
    console.print()
    console.print(clean(answer.text) or "(no answer)", style="bold green" if answer.text else "bold red", soft_wrap=True)
    cached = f" ({usage.cached_calls} from the cache)" if usage.cached_calls else ""
    calls = f"{counted(usage.model_calls, 'model call')}{cached}"
    thought = f" ({usage.thought_tokens:,} of them thought)" if usage.thought_tokens else ""
    tokens = f"{usage.prompt_tokens:,} prompt tokens, {usage.generated_tokens:,} generated tokens{thought}"
    blocks = [
        ("because", [answer.rationale] if answer.rationale else []),
        ("evidence", _evidence(answer, usage, empty)),
        ("P(wrong)", [] if doubt is None else [f"{doubt:.2f} for an answer from memory, by the calibration"]),
        ("cost", [f"{counted(usage.retrievals, 'retrieval')}, {calls}, {duration(seconds)}", tokens]),
        ("charged", [charged] if charged else []),
    ]
    for label, texts in blocks:
        _block(console, label, texts)


def _block(console: Console, label: str, texts: Sequence[str]) -> None:
    lines = [line for text in texts for line in wrap(text, console.width - MARGIN - LABEL)]
    for place, line in enumerate(lines):
        _print(console, f"{'':{MARGIN}}{'' if place else label:<{LABEL - 1}} ", line)


def _evidence(answer: Answer, usage: Usage, empty: bool) -> list[str]:
    if empty:
        return [NOTHING_FOUND]
    if not answer.evidence:
        return ["none was kept" if usage.retrievals else "none: nothing was retrieved"]
    lines = [f"[{passage.id}] {entry(passage, named=True)}" for passage in answer.evidence[:EVIDENCE]]
    more = len(answer.evidence) - EVIDENCE
    return [*lines, f"and {counted(more, 'passage')} more (all of them: --json)"] if more > 0 else lines


def _print(console: Console, margin: str, text: str, style: str = "") -> None:
    """One line, whole: a console that shows a spinner below cannot take it in pieces."""
    from rich.text import Text

    console.print(Text.assemble((margin, "dim"), (text, style)), soft_wrap=True)
