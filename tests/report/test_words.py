"""Every kind of event has words, and what was recorded is read back as it was."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from gnothi import events
from gnothi.errors import InvalidInput
from gnothi.events import (
    Decided,
    Decomposed,
    Drafted,
    Event,
    Expanded,
    Filtered,
    Gauge,
    Gauged,
    Grouped,
    Linked,
    ModelCall,
    Partial,
    Picked,
    QuizAnswered,
    Ranked,
    Reflected,
    Rephrased,
    Reranked,
    Revised,
    Searched,
    Summarised,
    UnknownKeys,
    Written,
)
from gnothi.report.words import Line, Narrator, place
from gnothi.runs.rows import jsonable
from gnothi.types import Mention, Passage, ScoredPassage, Value
from tests.messages import refused

PASSAGE = Passage("p", "Text.", "Title")
SAMPLES: tuple[Event, ...] = (
    ModelCall("m", "sample", "reason", 5, 6, 0.1, ("a", "b")),
    Searched("query", (ScoredPassage(PASSAGE, 1.5),), 0.1),
    Linked("text", (Mention("node", 0, 4),), 0.1),
    Expanded(("node",), 1, 10, 3, ("node",), 0.1),
    Drafted("draft", 0.5),
    Gauged("draft", (Gauge("gram", None, 1, 2, 3),)),
    Decided("retrieve", "gram", None, 0.5, "retrieve"),
    Ranked("passage", (("p", "Text.", None), ("q", "Other.", 1.0))),
    Reranked("lab", "query", (("Text.", 1.0),), 5, 0.1),
    Decomposed("question", ("one", "two")),
    Grouped("question", (("answer", 3),), 1, 5),
    Picked("useful", "question", (PASSAGE,), (PASSAGE,)),
    Filtered("pmi", "question", (("p", "Text.", None, False),), 0.0),
    QuizAnswered(1, "question", "answer", "memory"),
    Summarised("question", ("premise",), "explanation", "answer"),
    Reflected((("subject", "text"),), ("subject",)),
    Revised("before", "after"),
    Rephrased("before", "after"),
    Partial("index", 2, (("a", "a did not answer"),)),
    UnknownKeys("index", ("lang",), ("date", "source"), ("source=*notes*",)),
    Written("It was built in 1820."),
)
EMPTY: tuple[Event, ...] = (
    ModelCall("m", "score", "reason", 5, 0, 0.1),
    Searched("query", (), 0.1),
    Linked("text", (), 0.1),
    Expanded((), 1, 10, 0, (), 0.1),
    Drafted("", None),
    Gauged("", ()),
    Decided("source", "", None, None, "memory", "Who?"),
    Ranked("answer", ()),
    Reranked("lab", "query", (), 0, 0.1),
    Decomposed("question", ("question",), used=False),
    Grouped("question", (), 0, 5),
    Picked("useful", "question", (), ()),
    Filtered("pmi", "question", (), 0.0),
    QuizAnswered(1, "question", "", "nothing"),
    Summarised("question", (), "", ""),
    Reflected((), ()),
    Revised("same", "same"),
    Rephrased("", ""),
    Partial("index", 1, ()),
    UnknownKeys("index", (), ()),
    Written(""),
)


def ours() -> set[type[Event]]:
    """Every kind of event of the package, however deep it stands below Event."""
    found, waiting = set(), [Event]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            found.add(events.kinds()[kind.tag])
    return {kind for kind in found if kind.__module__ == events.__name__}


def test_no_kind_of_event_is_without_words() -> None:
    """A new kind of event needs a method of ``Narrator`` (and an example of it here)."""
    assert {f"describe_{kind.tag}" for kind in ours()} == {name for name in vars(Narrator) if name.startswith("describe_")}
    assert {type(event) for event in SAMPLES} == {type(event) for event in EMPTY} == ours()


@pytest.mark.parametrize("event", SAMPLES + EMPTY, ids=lambda event: event.tag)
def test_words_are_words(event: Event) -> None:
    lines = Narrator().describe(event)
    assert lines
    assert lines[0].label
    for line in lines:
        assert not {"{", "None", "nan"} & set(line.text.replace("{", " { ").split())


@pytest.mark.parametrize("event", SAMPLES + EMPTY, ids=lambda event: event.tag)
def test_what_was_recorded_is_read_back(event: Event) -> None:
    assert events.read(json.loads(json.dumps(jsonable(event.as_dict())))) == event
    assert events.read(event.as_dict()) == event


def test_what_json_cannot_say_is_not_a_number() -> None:
    record = jsonable(Filtered("pmi", "question", (), -math.inf).as_dict())
    read = events.read(record)
    assert isinstance(read, Filtered)
    assert math.isnan(read.threshold)
    assert "above -" in Narrator().describe(read)[0].text


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"event": "later"},
        {"event": "drafted", "text": "x"},
        {"event": "drafted", "text": 1, "uncertainty": None},
        {"event": "reflected", "told": [["a"]], "known": []},
        {"event": "searched", "query": "q", "passages": [{"passage": None, "score": 1}], "seconds": 0},
    ],
)
def test_what_cannot_be_read_is_refused(record: dict[str, object]) -> None:
    with refused(InvalidInput):
        events.read(record)


def test_what_a_later_version_adds_is_left_aside() -> None:
    assert events.read({**Drafted("x", 0.5).as_dict(), "colour": "red"}) == Drafted("x", 0.5)


def test_an_event_of_a_plugin_is_told_by_its_fields() -> None:
    @dataclass(frozen=True)
    class Weighed(Event):
        tag: ClassVar[str] = "weighed"
        grams: int

    assert Narrator().describe(Weighed(5)) == [Line("weighed", "grams 5", tone="", whole=True)]


def test_steps_are_counted_and_the_draft_after_reading_is_written() -> None:
    narrator = Narrator()
    happened = (SAMPLES[4], SAMPLES[7], SAMPLES[4], Ranked("answer", (("x", "y", 1.0),)), SAMPLES[4])
    heads = [narrator.describe(event)[0] for event in happened]
    assert [(line.label, line.step) for line in heads] == [
        ("draft", 1),
        ("read", None),
        ("write", None),
        ("answers", None),
        ("draft", 2),
    ]


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        ("repeats", "it only repeats the question, which is asked for a short answer instead of Mira"),
        ("copies", "it copies a worked example, so the question is asked for a short answer instead of Mira"),
    ],
)
def test_an_answer_that_is_none_is_told(verdict: str, told: str) -> None:
    (line,) = Narrator().describe(Decided("answer", "", None, None, verdict, "Mira"))
    assert (line.label, line.text) == ("answer", told)


def test_thoughts_are_told_apart_from_replies() -> None:
    call = ModelCall("m", "sample", "answer", 5, 60, 0.1, ("Ann", "Bo"), thoughts=("Is it Ann?", "Or Bo?"), thought_tokens=50)
    lines = Narrator().describe(call)
    assert [line.text for line in lines] == ["sample answer (5 + 60 tokens, 100 ms)", "Is it Ann?", "Or Bo?", "'Ann'", "'Bo'"]
    assert [(line.label, line.lead) for line in lines[1:3]] == [("thought", "(2 thoughts, 50 tokens) "), ("", "another: ")]
    (_, one) = Narrator().describe(
        ModelCall("m", "generate", "answer", 5, 60, 0.1, thoughts=("",), thought_tokens=9, thoughts_cut=1)
    )
    assert (one.label, one.lead, one.text) == ("thought", "(9 tokens, 1 cut at the limit) ", "(nothing)")


def test_what_was_found_is_shown_whole_or_how_much_more_there_is() -> None:
    for number, more in ((3, None), (4, None), (5, "and 2 more"), (10, "and 7 more")):
        passages = tuple(ScoredPassage(Passage(str(n), f"text {n}"), 1.0) for n in range(number))
        told = [line for line in Narrator().describe(Searched("query", passages, 0.1))[1:] if not line.detail]
        assert len(told) == (number if more is None else 4)
        assert (told[-1].text == more) is (more is not None)


def test_where_a_passage_stands() -> None:
    told: dict[str, Value] = {"source": "notes/lamp.pdf", "page": 1, "last_page": 3, "section": "Keepers"}
    passage = Passage("notes/lamp.pdf#2", "Dana Brisk kept it.", "The lamp", told | {"date": "1820-05-01"})
    assert place(passage) == "notes/lamp.pdf, p. 1-3, Keepers, 1820-05-01"
    assert place(passage, named=True) == "p. 1-3, Keepers, 1820-05-01"
    assert place(replace(passage, id="a record's own"), named=True).startswith("notes/lamp.pdf, ")
    assert place(Passage("x", "No more is known.")) == ""
