"""Events of one question as runs leave them: of SeaKR (one sentence from memory, one after a search, two answers) and of
KEQA (one quiz from memory, one after a search)."""

from __future__ import annotations

from gnothi.events import (
    Decided,
    Decomposed,
    Drafted,
    Event,
    Grouped,
    ModelCall,
    Picked,
    QuizAnswered,
    Ranked,
    Searched,
    Summarised,
)
from gnothi.types import Answer, Passage, ScoredPassage

CORDA = Passage("lab-0001-true", "Aldo Renn was born in Corda. " + "He moved from town to town for years. " * 4, "Aldo Renn")
PAINTER = Passage("lab-0002-true", "Aldo Renner is a painter.", "Aldo Renner")
UNTITLED = Passage("notes-17", "A street in Vesk is named after Renn.")
LONG_DRAFT = "The Amber Gate, which was shown in more than forty towns of the northern coast, was directed by Aldo Renn."

EVENTS: tuple[Event, ...] = (
    ModelCall("lab", "sample", "reason", 21, 1240, 0.031, ("one", "two", "one")),
    Drafted(LONG_DRAFT, -6.42),
    Decided("retrieve", "gram", -6.42, -6.0, "trust", LONG_DRAFT),
    Drafted("Aldo Renn was born in Vesk.", -3.214),
    Decided("retrieve", "gram", -3.214, -6.0, "retrieve", "Aldo Renn was born in Vesk."),
    Searched("aldo renn born", (ScoredPassage(CORDA, 11.5), ScoredPassage(PAINTER, 7.25), ScoredPassage(UNTITLED, 0.5)), 0.002),
    Ranked(
        "passage",
        ((CORDA.id, CORDA.text, -6.51), (UNTITLED.id, UNTITLED.text, -4.05), (PAINTER.id, PAINTER.text, None)),
    ),
    Drafted("Aldo Renn was born in Corda.", -6.51),
    Ranked("answer", (("knowledge", "Corda", -6.55), ("rationales", "Corda", -6.1))),
)
ANSWER = Answer("Corda", "The Amber Gate was directed by Aldo Renn. Aldo Renn was born in Corda.", (CORDA,), -6.55)

_WHO, _WHERE = "Who directed The Amber Gate?", "Where was Aldo Renn born?"
QUIZZES: tuple[Event, ...] = (
    Decomposed("Where was the director of The Amber Gate born?", (_WHO, "Where was #1 born?")),
    Grouped(_WHO, (("Aldo Renn", 4),), 0, 5),
    Decided("retrieve", "consistency", 1 - 4 / 5, 1 - 0.8, "trust", _WHO),
    QuizAnswered(1, _WHO, "Aldo Renn", "memory"),
    Grouped(_WHERE, (("Vesk", 2), ("Corda", 1)), 1, 5),
    Decided("retrieve", "consistency", 0.6, 1 - 0.8, "retrieve", _WHERE),
    Searched(_WHERE, (ScoredPassage(CORDA, 11.5),), 0.002),
    Picked("useful", _WHERE, (CORDA,), (PAINTER,)),
    QuizAnswered(2, _WHERE, "Corda", "passages"),
    Summarised(_WHERE, ("Aldo Renn directed The Amber Gate.", f"{_WHERE} Corda"), "So the answer is Corda.", "Corda"),
)
