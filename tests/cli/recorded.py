"""Events of one question as a run of SeaKR leaves them: one sentence from memory, one after a search, two answers."""

from __future__ import annotations

from gnothi.events import Decided, Drafted, Event, ModelCall, Ranked, Searched
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
