"""What `gnothi ask` shows, from recorded events."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from gnothi.events import (
    Decided,
    Decomposed,
    Drafted,
    Event,
    Expanded,
    Filtered,
    Linked,
    ModelCall,
    QuizAnswered,
    Ranked,
    Searched,
    Usage,
)
from gnothi.report.terminal.answer import Steps, show_answer
from gnothi.types import Answer, Mention, Passage, ScoredPassage
from tests.cli.recorded import ANSWER, EVENTS, QUIZZES

EXPECTED = """\
  1 draft    The Amber Gate, which was shown in more than forty towns of the
             northern coast, was directed by Aldo Renn.
    gate     gram -6.42 < -6.00: sure, trust memory
  2 draft    Aldo Renn was born in Vesk.
    gate     gram -3.21 > -6.00: unsure, retrieve
    search   aldo renn born (3 passages, 2 ms)
    found       11.50  Aldo Renn: Aldo Renn was born in Corda. He moved from...
                 7.25  Aldo Renner: Aldo Renner is a painter.
                 0.50  A street in Vesk is named after Renn.
    read     *  -6.51  Aldo Renn: Aldo Renn was born in Corda. He moved from...
                -4.05  A street in Vesk is named after Renn.
                    -  Aldo Renner: Aldo Renner is a painter.
             won by 2.46
    write    Aldo Renn was born in Corda.
    answers  *  -6.55  from knowledge: Corda
                -6.10  from rationales: Corda
             won by 0.45

Corda
    because  The Amber Gate was directed by Aldo Renn. Aldo Renn was born in
             Corda.
    evidence [lab-0001-true] Aldo Renn: Aldo Renn was born in Corda. He moved
             from town to town for years. He moved from town to town for years.
             He moved from town to town for years. He moved from town to town
             for years.
    cost     1 retrieval, 1 model call, 420 ms
             21 prompt tokens, 1,240 generated tokens
"""


def shown(*events: Event, answer: Answer | None = None, width: int = 80, trace: bool = False, terminal: bool = False) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=terminal,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={"TERM": "xterm"},
    )
    listener = Steps(console, trace)
    for event in events:
        listener(event)
    if answer is not None:
        show_answer(console, answer, Usage.of(events), 0.42)
    return stream.getvalue()


def test_a_run_of_seakr_reads_like_this_at_80_columns() -> None:
    assert shown(*EVENTS, answer=ANSWER) == EXPECTED


KEQA = """\
  1 quiz     Who directed The Amber Gate?
  2 quiz     Where was #1 born?
    tries    Who directed The Amber Gate? Aldo Renn ×4 (4 of 5 tries)
    gate     consistency 0.20 = 0.20: sure, trust memory
    solved   1 Aldo Renn (from memory)
    tries    Where was Aldo Renn born? Vesk ×2, Corda ×1, unknown ×1 (4 of 5
             tries)
    gate     consistency 0.60 > 0.20: unsure, retrieve
    search   Where was Aldo Renn born? (1 passage, 2 ms)
    found       11.50  Aldo Renn: Aldo Renn was born in Corda. He moved from...
    pick     Where was Aldo Renn born? 1 of 2 passages useful
               * Aldo Renn: Aldo Renn was born in Corda. He moved from town t...
    solved   2 Corda (from passages)
    notes    Aldo Renn directed The Amber Gate.
             Where was Aldo Renn born? Corda
"""


def test_a_run_of_keqa_reads_like_this() -> None:
    assert shown(*QUIZZES) == KEQA
    dropped = "                 Aldo Renner: Aldo Renner is a painter.\n    solved   2"
    assert dropped not in shown(*QUIZZES)
    assert dropped in shown(*QUIZZES, trace=True)


def test_a_question_that_is_not_split_up() -> None:
    lines = shown(Decomposed("Who?", ("Who?",), used=False), QuizAnswered(1, "Who?", "unknown", "nothing")).splitlines()
    assert lines[0].startswith("    split    the model gave no usable list")
    assert lines[-2:] == ["  1 quiz     Who?", "    solved   1 unknown (no answer found)"]


def test_colours_change_nothing_but_colours() -> None:
    coloured = shown(*EVENTS, answer=ANSWER, terminal=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == EXPECTED


def test_trace_adds_every_model_call() -> None:
    lines = shown(*EVENTS, trace=True).splitlines()
    assert lines[0] == "    model    sample reason (21 + 1240 tokens, 31 ms)"
    assert lines[1:3] == ["             2 × 'one'", "             'two'"]


@given(st.text(max_size=300), st.text(max_size=60), st.integers(40, 120))
def test_no_text_breaks_the_page_or_reaches_the_terminal_raw(text: str, title: str, width: int) -> None:
    passage = Passage("p", text, title)
    output = shown(
        Drafted(text, None),
        Searched(text, (ScoredPassage(passage, 1.0),), 0.1),
        Ranked("passage", (("p", text, 1.0),)),
        answer=Answer("short", text, (passage,)),
        width=width,
    )
    assert all(cell_len(line) <= width for line in output.split("\n"))
    assert all(letter.isprintable() or letter == "\n" for letter in output)


@pytest.mark.parametrize(
    ("score", "threshold", "expected"),
    [
        (-3.0, -6.0, "gram -3.00 > -6.00"),
        (-6.0001, -6.0, "gram -6.0001 < -6.0000"),
        (-6.0, -6.0, "gram -6.00 = -6.00"),
        (-0.001, -6.0, "gram 0.00 > -6.00"),
        (None, -6.0, "gram not measured, threshold -6.00"),
    ],
)
def test_a_score_is_shown_against_its_threshold(score: float | None, threshold: float | None, expected: str) -> None:
    line = shown(Decided("retrieve", "gram", score, threshold, "retrieve")).strip()
    assert line.removeprefix("gate").strip() == f"{expected}: unsure, retrieve"


@pytest.mark.parametrize(("verdict", "expected"), [("retrieve", "retrieve"), ("trust", "trust memory")])
@pytest.mark.parametrize(("score", "seen"), [(0.57, "0.57"), (None, "-")])
def test_a_choice_without_a_threshold_is_not_called_sure_or_unsure(
    score: float | None, seen: str, verdict: str, expected: str
) -> None:
    line = shown(Decided("retrieve", "complexity", score, None, verdict)).strip()
    assert line.removeprefix("gate").strip() == f"complexity {seen}, no threshold: {expected}"


def test_an_unknown_kind_of_decision_is_shown_in_its_own_words() -> None:
    assert shown(Decided("keep", "judge", 0.4, 0.5, "drop")).split() == ["keep", "judge", "0.40", "<", "0.50:", "drop"]


def test_an_answer_from_memory_says_so() -> None:
    output = shown(Drafted("Corda.", -6.5), answer=replace(ANSWER, evidence=(), rationale=""))
    assert "none: nothing was retrieved" in output
    assert "(no answer)" in shown(answer=Answer(""))


FILTERED = Filtered(
    "pmi",
    "Where was Ada born?",
    (("p1", "Ada was born in Corda.", 3.214, True), ("p1", "She paints.", -0.5, False), ("p2", "It rains.", None, False)),
    0.0,
)


def test_sentences_that_were_kept() -> None:
    found = Searched("q", (ScoredPassage(Passage("p1", "...", "Ada Bram"), 1.0),), 0.0)
    lines = shown(found, FILTERED).splitlines()[-2:]
    assert [line.strip() for line in lines] == [
        "filter   1 of 3 sentences kept (pmi, above 0.00)",
        "*   3.21  Ada Bram: Ada was born in Corda.",
    ]
    traced = shown(found, FILTERED, trace=True)
    assert "-0.50  Ada Bram: She paints." in traced
    assert "-  p2: It rains." in traced


def test_it_says_when_nothing_was_kept() -> None:
    nothing = replace(FILTERED, sentences=tuple((*one[:3], False) for one in FILTERED.sentences))
    assert "0 of 3 sentences kept (pmi, above 0.00): nothing is left of them" in shown(nothing, width=120)


def test_a_graph_says_what_it_linked_and_where_it_stopped() -> None:
    mentions = (Mention("dog", 4, 8), Mention("bone", 12, 16), Mention("dog", 20, 23))
    text = shown(
        Linked("the dogs and bones", mentions, 0.001),
        Linked("it", (), 0.001),
        Expanded(("dog", "bone"), 2, 100, 1234, ("dog",), 0.003),
        Expanded(("bone",), 1, 100, 1, (), 0.003),
        Expanded(("dog", "bone"), 1, 5, 20, ("dog", "bone", "cat", "hat"), 0.003),
    )
    assert text == (
        "    link     dog, bone (1 ms)\n"
        "    link     nothing that the graph knows (1 ms)\n"
        "    facts    1,234 facts within 2 steps (3 ms); of dog only 100 each\n"
        "    facts    1 fact within 1 step (3 ms)\n"
        "    facts    20 facts within 1 step (3 ms); of dog, bone, cat and 1 more only 5\n"
        "             each\n"
    )


@pytest.mark.parametrize("trace", [False, True])
def test_a_thought_has_a_line_of_its_own(trace: bool) -> None:
    call = ModelCall("m", "generate", "answer", 5, 60, 0.1, ("Corda",), thoughts=("So where " * 30,), thought_tokens=57)
    lines = shown(call, Drafted("Corda", None), trace=trace).splitlines()
    thought = [line for line in lines if "thought" in line or "So where" in line]
    assert thought[0].startswith("    thought  (57 tokens) So where So where")
    assert len(thought) == (5 if trace else 1)
    assert lines[-1] == "  1 draft    Corda"
