"""The HTML page: for no run, one and many; nothing external; text from data stays text."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gnothi import events
from gnothi.errors import InvalidInput
from gnothi.events import Expanded, Linked
from gnothi.report.page import runs as report
from gnothi.report.page.html import Step, steps
from gnothi.report.page.runs import render, write_report
from gnothi.report.sections import load_runs
from gnothi.runs.folder import RunFolder
from gnothi.runs.rows import Row, jsonable
from gnothi.runs.runner import here
from gnothi.types import Mention, Passage, Question
from tests.messages import refused
from tests.report.rows import row
from tests.runs.scripted import ScriptedMethod, questions, run_one

VOID = {"meta", "input", "br", "link", "img", "hr", "wbr"}


class Page(HTMLParser):
    """Checks nesting and collects tags, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data


def make_run(path: Path, rows: Sequence[Row], **config: Any) -> Path:
    trace = [
        events.Drafted("A draft.", 0.4),
        events.Ranked("passage", (("p1", "text", -6.0), ("p2", "other", None))),
    ]
    methods = list(dict.fromkeys(row.method for row in rows))
    with RunFolder(path, {"dataset.name": "lab", "dataset.fingerprint": "f", "methods": methods, **config}) as folder:
        for made in rows:
            folder.append(made, [event.as_dict() for event in trace])
    return path


def lab_rows(n: int = 60, method: str = "seakr") -> list[Row]:
    levels, held = ("often", "seldom", "never"), ("covered", "absent")
    return [
        row(
            method,
            i,
            right=i % 3 != 2,
            retrieved=i % 3 == 2 or i % 7 == 0,
            uncertainty=i % 3 + i / 100,
            kind=("one_hop", "two_hop")[i % 2],
            metadata={
                "familiarity": levels[i % 3],
                "coverage": held[i % 2],
                "right_action": "retrieve" if i % 3 == 2 else "trust",
            },
        )
        for i in range(n)
    ]


def longer(made: Row) -> Row:
    return replace(made, cost={**made.cost, "prompt_tokens": 900})


def full(path: Path, n: int = 60, **config: Any) -> Path:
    rows = [row("direct", i, right=i % 3 != 2) for i in range(n)] + [
        longer(row("rag", i, right=i % 4 != 0, retrieved=True)) for i in range(n)
    ]
    return make_run(path, [*rows, *lab_rows(n), row("seakr", n, failed=True)], **config)


def self_contained(html: str) -> Page:
    page = Page(html)
    assert not re.search(r"@import|url\((?!#)|fetch\(|XMLHttpRequest|import\(", html)
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "image")
        assert not {"src", "srcset", "action", "data", "poster"} & set(attributes)
        for name in ("href", "xlink:href"):
            assert attributes.get(name, "#") is not None
            assert (attributes.get(name) or "#").startswith("#")
    ids = Counter(attributes["id"] for _, attributes in page.tags if attributes.get("id"))
    assert not [name for name, count in ids.items() if count > 1]
    targets = {(attributes.get("xlink:href") or attributes.get("href") or "#")[1:] for _, attributes in page.tags}
    assert {target for target in targets if target} <= set(ids)
    assert set(re.findall(r"url\(#([^)]+)\)", html)) <= set(ids)
    return page


def test_no_run() -> None:
    assert "There is no run to show." in self_contained(render([])).text


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a full run, whose last answer is of 2026-03-05."""
    folder = tmp_path_factory.mktemp("whole")
    settings: dict[str, Any] = {"model.name": "some/model", "index": "my-index", "graph": "none"}
    run = full(folder / "run", **settings)
    noon = datetime.datetime(2026, 3, 5, 12).timestamp()
    os.utime(run / "rows.jsonl", (noon, noon))
    write_report(load_runs([run]), folder / "out" / "page.html")
    return (folder / "out" / "page.html").read_text(encoding="utf-8")


def test_a_full_run(whole: str) -> None:
    page = self_contained(whole)
    drawings = [attributes["aria-label"] or "" for tag, attributes in page.tags if tag == "svg"]
    assert [label.split(".")[0].split(":")[0] for label in drawings] == [
        "Exact match against the share of questions with a search",
        "Over-search and under-search",
        "seakr",
        "Reliability of seakr",
        "Risk against coverage",
        "Exact match against tokens per question",
        "Exact match against searches per question",
    ]
    assert page.text.count("The same in numbers") == len(drawings)
    for said in (
        "Between never and always",
        "Signals",
        "Answering only where sure",
        "Cost",
        "Paired tests",
        "exact McNemar test",
        "seakr: 1 of 61 questions failed",
        "RuntimeError: broken",
        "Decisions, given what the model saw",
        "By kind of question",
        "read * -6.00 p1: text",
    ):
        assert said in page.text, said


def test_it_opens_with_what_it_comes_to_and_lists_what_follows(whole: str) -> None:
    page = Page(whole)
    assert "rag is right in 75% of 60 questions (exact match, 95% interval" in page.text
    assert "the difference from direct, seakr may be chance" in page.text
    assert "seakr searches for 43% of the questions. It is right in 67%, against 75% by always searching (rag)" in page.text
    assert "warning below before you rely" in page.text
    assert "model some/model; index my-index; last answer 2026-03-05." in page.text
    contents = re.findall(r'<a href="#(s0-\d+)">(.*?)</a>', whole)
    assert [title for _, title in contents][:2] == ["Methods", "Between never and always"]
    assert contents[-1][1] == "Question by question"
    assert [(name, title) for name, title in re.findall(r'<h3 id="(s0-\d+)">(.*?)</h3>', whole)] == contents


def test_a_search_error_names_whose_answer_is_meant(tmp_path: Path) -> None:
    """The method's own answer from memory may be right where that of never is wrong."""
    rows = [row("cot", n, right=n == 1) for n in range(2)] + [row("seakr", 0, uncertainty=0.1)]
    rows.append(row("seakr", 1, right=False, retrieved=True, uncertainty=0.9))
    text = Page(render(load_runs([make_run(tmp_path / "run", rows)]))).text
    assert "searched although cot was right (over-search)" in text
    assert "did not search although cot was wrong (under-search)" in text
    assert "should have searched" not in text


def test_questions_beyond_the_first_are_folded_away(whole: str, tmp_path: Path) -> None:
    before, _, after = whole.partition("36 more questions</summary>")
    assert (before.count('class="question"'), after.count('class="question"')) == (25, 36)
    short = render(load_runs([make_run(tmp_path / "short", [row("direct", n) for n in range(26)])]))
    assert "more question" not in short  # one alone is not folded away


def test_a_picture_that_would_show_one_place_is_left_out(tmp_path: Path) -> None:
    rows = [row(method, n, right=n % 2 == 0) for method in ("direct", "cot") for n in range(30)]
    page = self_contained(render(load_runs([make_run(tmp_path / "run", rows)])))
    assert not [label for tag, one in page.tags if tag == "svg" and "Exact match against" in (label := one["aria-label"] or "")]


def test_refusals_and_falsehoods(whole: str, tmp_path: Path) -> None:
    told = [{"answerable": True}, {"answerable": False, "incorrect_answers": ["gold leaf"]}]
    rows = [row("direct", i, answer=("gold", "unknown")[i % 2], metadata=told[i % 2]) for i in range(6)]
    html = render(load_runs([make_run(tmp_path / "run", rows)]))
    page = self_contained(html)
    assert "Refusing what cannot be answered" in page.text
    assert "Correct and incorrect answers" in page.text
    assert "Refusing" not in Page(whole).text


def test_one_plain_method_and_one_question(tmp_path: Path) -> None:
    page = self_contained(render(load_runs([make_run(tmp_path / "run", [row("direct", 1)])])))
    assert "1 question, 1 method." in page.text
    assert "Paired tests" not in page.text


def test_an_empty_and_an_unfinished_run(tmp_path: Path) -> None:
    empty = make_run(tmp_path / "empty", [], methods=["direct"], **{"dataset.questions": 5})
    assert "5 answers are missing" in self_contained(render(load_runs([empty]))).text
    with refused(InvalidInput):
        load_runs([tmp_path])


def test_only_failures(tmp_path: Path) -> None:
    page = self_contained(render(load_runs([make_run(tmp_path / "run", [row("seakr", 1, failed=True)])])))
    assert "RuntimeError: broken" in page.text


def test_many_methods_and_runs(tmp_path: Path) -> None:
    gated = [made for number in range(2) for made in lab_rows(12, f"method {number}")]
    plain = [row(f"method {number}", 1) for number in range(2, 12)]
    many = make_run(tmp_path / "many", [*gated, *plain])
    again = make_run(tmp_path / "again", lab_rows(12, "method 0"))
    other = make_run(tmp_path / "other", [row("direct", 1)], **{"dataset.fingerprint": "g"})
    sections = load_runs([many, again, other, many])
    assert [len({row.method for row in section.rows}) for section in sections] == [13, 1]
    assert sections[0].rows[-1].method == "method 0 (again)"
    page = self_contained(render(sections))
    assert page.text.count("Settings of") == 3


def test_text_from_data_is_not_markup(tmp_path: Path) -> None:
    nasty = '<script>alert("x")</script> $x^2$ & </details> https://example.org/?a=1'
    made = row("direct", 1, answer=nasty, metadata={"familiarity": nasty, nasty: nasty})
    made = Row(**{**made.as_dict(), "method": nasty, "question": nasty, "question_id": nasty, "kind": nasty})
    page = Page(render(load_runs([make_run(tmp_path / "run", [made], **{"dataset.name": nasty})])))
    assert page.text.count(nasty) > 5
    assert sum(tag == "script" for tag, _ in page.tags) == 1


def test_long_runs_are_cut_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "QUESTIONS", 10)
    monkeypatch.setattr(report, "TRACE_BYTES", 100)
    rows = [*(row("direct", number) for number in range(60)), row("direct", 60, failed=True)]
    page = self_contained(render(load_runs([make_run(tmp_path / "run", rows)])))
    assert "10 of 61 questions are shown" in page.text
    assert "RuntimeError: broken" in page.text
    assert "The trace is left out" in page.text


def test_a_real_run_with_its_events(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run", {"dataset.name": "lab"}) as folder:
        asyncio.run(run_one(here({"scripted": ScriptedMethod()}, 0), ["scripted"], questions(8), folder))
    page = self_contained(render(load_runs([tmp_path / "run"])))
    for said in ("model generate answer (10 + 5 tokens,", "gate gram", "search What is", "Title: text"):
        assert said in page.text, said


def recorded(*happened: events.Event) -> list[dict[str, Any]]:
    """As they stand in events.jsonl."""
    return [json.loads(json.dumps(jsonable(event.as_dict()))) for event in happened]


def test_traces_are_cut() -> None:
    many = [{"event": "drafted", "text": "word " * 500, "uncertainty": None}] * 100
    found = steps(many)
    assert len(found) == 61
    assert "40 more events" in found[-1].title
    assert max(len(step.title) for step in found) <= 320
    call = events.ModelCall("m", "sample", "reason", 5, 6, 0.1, ("a", "b", "a", *"cdefghi"))
    assert [text for _, text in steps(recorded(call))[0].lines] == ["2 × 'a'", *(f"'{one}'" for one in "bcdefgh"), "and 1 more"]


def test_thoughts_are_marked_as_such() -> None:
    call = events.ModelCall("m", "sample", "reason", 5, 6, 0.1, ("a", "b"), thoughts=("Is it a?", "Or b?"), thought_tokens=4)
    texts = [text for _, text in steps(recorded(call))[0].lines]
    assert texts == ["thought (2 thoughts, 4 tokens) Is it a?", "'a'", "'b'", "another: Or b?"]


def test_what_another_version_wrote_is_named_and_no_raw_record() -> None:
    later, broken = steps([{"event": "later", "x": 1}, {"event": "searched"}])
    assert (later.kind, broken.kind) == ("later", "searched")
    assert later.title == broken.title == "written by another version of gnothi: see events.jsonl"


def test_questions_are_searchable_by_what_they_are(whole: str) -> None:
    page = Page(whole)
    marks = [
        set((attributes.get("data-marks") or "").split())
        for tag, attributes in page.tags
        if tag == "details" and attributes.get("class") == "question"
    ]
    assert any({"wrong-0", "right-1", "differ"} <= found for found in marks)
    assert any("failed-2" in found for found in marks)


def test_questions_carry_their_kind_and_choices(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run", {"dataset.name": "lab"}) as folder:
        asked = [Question("c", "Which?", ("x",), ("x", "y"), "choice")]
        asyncio.run(run_one(here({"scripted": ScriptedMethod()}, 0), ["scripted"], asked, folder))
    text = " ".join(Page(render(load_runs([tmp_path / "run"]))).text.split())
    assert "c, choice" in text
    assert "x / y" in text


def test_quizzes_can_be_followed() -> None:
    film, dish = Passage("f", "Velkarra was made by Mira.", "Velkarra"), Passage("d", "A dish.")
    happened: list[events.Event] = [
        events.Decomposed("Where?", ("Who?", "Where was #1 born?")),
        events.Decomposed("Where?", ("Where?",), used=False),
        events.Grouped("Who?", (("Mira", 2), ("Ann", 1)), 1, 5),
        events.Picked("useful", "Who?", (film,), (dish,)),
        events.Filtered("pmi", "Who?", (("f", "Mira made it.", 3.2, True), ("f", "It rains.", None, False)), 0.0),
        events.Filtered("pmi", "Who?", (("f", "It rains.", -1.0, False),), 0.0),
        events.QuizAnswered(1, "Who?", "Mira", "passages"),
        events.Summarised("Where?", ("Mira made it.",), "So the answer is Kestrel.", "Kestrel"),
    ]
    told = [(step.label, step.title, [text for _, text in step.lines]) for step in steps(recorded(*happened))]
    assert told == [
        ("quiz 1", "Who?", ["2 Where was #1 born?"]),
        ("split", "the model gave no usable list of quizzes: the question is asked as it is", ["1 Where?"]),
        ("tries", "Who? Mira ×2, Ann ×1, unknown ×1 (4 of 5 tries)", []),
        ("pick", "Who? 1 of 2 passages useful", ["* Velkarra: Velkarra was made by Mira.", "A dish."]),
        ("filter", "1 of 2 sentences kept (pmi, above 0.00)", ["* 3.20 f: Mira made it.", "- f: It rains."]),
        (
            "filter",
            "0 of 1 sentence kept (pmi, above 0.00): nothing is left of them",
            ["-1.00 f: It rains."],
        ),
        ("solved", "1 Mira (from passages)", []),
        ("notes", "Mira made it.", []),
    ]


def test_a_gate_beside_only_one_of_never_and_always(tmp_path: Path) -> None:
    rows = [row("cot", n, right=n % 2 == 0) for n in range(6)] + [row("keqa", n, uncertainty=n / 6) for n in range(6)]
    page = Page(render(load_runs([make_run(tmp_path / "run", rows)])))
    assert "Between never and always" in page.text


def test_steps_of_a_graph_are_read() -> None:
    linked = Linked("the dogs", (Mention("dog", 4, 8),), 0.1)
    expanded = Expanded(("dog",), 2, 100, 250, ("dog", "pet"), 0.1)
    assert [step.title for step in steps(recorded(linked, Linked("it", (), 0.1), expanded))] == [
        "dog (100 ms)",
        "nothing that the graph knows (100 ms)",
        "250 facts within 2 steps (100 ms); of dog, pet only 100 each",
    ]


def test_internal_knowledge_is_told_in_words() -> None:
    reflected = events.Reflected((("The Paper Kite", "Its director is Ada Bram."), ("Vesk", "")), ("The Paper Kite",))
    reranked = events.Reranked("lab", "Who?", (("Ada Bram directed it.", 3.1), ("It rains.", -1.0)), 120, 0.08)
    revised = events.Revised("Bo Lund", "Ada Bram")
    assert steps(recorded(reflected, reranked, revised, events.Revised("same", "same"))) == [
        Step("reflected", "recall", "", (("good", "The Paper Kite: Its director is Ada Bram."), ("soft", "Vesk: (nothing)"))),
        Step(
            "reranked",
            "rank",
            "120 texts by lab (80 ms)",
            (("soft", "3.10 Ada Bram directed it."), ("soft", "-1.00 It rains.")),
        ),
        Step("revised", "revise", "Ada Bram"),
        Step("revised", "revise", "nothing to change"),
    ]
