"""Whether the answer was found and read, for methods of every kind, by what they do and not by what they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

import gnothi
from gnothi import methods
from gnothi.events import Event, Expanded, ModelCall, Searched
from gnothi.events import read as read_event
from gnothi.metrics import score
from gnothi.runs.answer_stages import (
    MISREAD,
    READ,
    STAGES,
    UNFOUND,
    UNREAD,
    UNSEARCHED,
    UNTOLD,
    UNTOLD_RIGHT,
    WITHOUT,
    reached,
    supporting,
)
from gnothi.runs.rows import Row
from gnothi.runs.stage_rates import reached as shares
from gnothi.runs.stored_rows import from_dict
from gnothi.testing import Reply, Scripted
from gnothi.types import Answer, Passage, Prompt, Question, ScoredPassage
from tests.messages import refused
from tests.report.rows import row

KEEPER = Passage("k", "The keeper was Dana Brisk.", "Lighthouse")
FERRY = Passage("f", "The ferry leaves at noon.", "Ferry")
WHO = Question("q", "Who was the keeper?", ("Dana Brisk",))


def searched(*passages: Passage) -> Searched:
    return Searched("keeper", tuple(ScoredPassage(one, 1.0) for one in passages), 0.1)


def called(text: str, *passages: Passage) -> ModelCall:
    return ModelCall("m", "generate", "answer", 1, 1, 0.1, (text,), passages=passages)


def judged(question: Question, said: str, *events: Event, evidence: Sequence[Passage] = ()) -> dict[str, object]:
    return reached(question, Answer(said, evidence=tuple(evidence)), score(said, question.answers), events)


@pytest.mark.parametrize(
    ("said", "events", "expected"),
    [
        ("Dana Brisk", [searched(KEEPER), called("Dana Brisk", KEEPER)], (True, True, READ)),
        ("Bo", [searched(KEEPER, FERRY), called("Bo", KEEPER, FERRY)], (True, True, MISREAD)),
        ("Bo", [searched(KEEPER, FERRY), called("Bo", FERRY)], (True, False, UNREAD)),
        ("Bo", [searched(FERRY), called("Bo", FERRY)], (False, False, UNFOUND)),
        ("Bo", [searched(), called("Bo")], (False, False, UNFOUND)),
        ("Bo", [called("Bo")], (False, False, UNSEARCHED)),
        ("Dana Brisk", [searched(FERRY), called("Dana Brisk", FERRY)], (False, False, WITHOUT)),
        ("Dana Brisk", [called("Dana Brisk")], (False, False, WITHOUT)),
        # The evidence was looked at, and the answer taken from memory.
        ("Bo", [called("Bo"), searched(KEEPER), called("Dana Brisk", KEEPER)], (True, False, UNREAD)),
        # The model's own words in a prompt are nothing that was found.
        ("Bo", [searched(FERRY), called("Bo", Passage("statement 1", "Dana Brisk was it."))], (False, False, UNFOUND)),
        # One sentence of a passage is left of it by a filter.
        ("Bo", [searched(KEEPER), called("Bo", Passage("k#0", "The keeper was Dana Brisk."))], (True, True, MISREAD)),
        ("Bo", [searched(KEEPER), called("Bo", Passage("k", "The keeper was."))], (True, False, UNREAD)),
        # A graph's facts are counted in events, not told.
        ("Bo", [Expanded(("a",), 1, 9, 3, (), 0.1), called("Bo")], (None, None, UNTOLD)),
    ],
)
def test_how_far_an_answer_came(said: str, events: list[Event], expected: tuple[object, object, str]) -> None:
    found = judged(WHO, said, *events)
    assert (found["found"], found["read"], found["stage"]) == expected


def test_evidence_stands_in_where_prompts_show_no_passages() -> None:
    assert judged(WHO, "Dana Brisk", searched(KEEPER), called("Dana Brisk"), evidence=[KEEPER])["stage"] == READ


def test_what_a_text_holds_by_chance_is_not_told() -> None:
    yes = Question("q", "Was it Dana?", ("yes",))
    assert judged(yes, "no", searched(KEEPER), called("no", KEEPER)) == {"found": None, "read": None, "stage": UNTOLD}
    assert judged(yes, "yes", searched(KEEPER), called("yes", KEEPER))["stage"] == UNTOLD_RIGHT
    assert judged(yes, "no", called("no"))["stage"] == UNSEARCHED


@pytest.mark.parametrize(
    "named",
    [
        {"supporting": ["Lighthouse", "Ferry"]},
        {"supporting": ["k", "f"]},
        {"supporting_facts": [["lighthouse", 0], ["Ferry", 2]]},
        {"positive_ctxs": [{"title": "Lighthouse", "text": "x"}, {"title": "Ferry"}]},
    ],
)
def test_named_passages_tell_what_no_text_does(named: dict[str, object]) -> None:
    both = Question("q", "Is it older?", ("yes",), metadata=named)
    assert judged(both, "no", searched(KEEPER, FERRY), called("no", KEEPER, FERRY))["stage"] == MISREAD
    assert judged(both, "no", searched(KEEPER, FERRY), called("no", KEEPER))["stage"] == UNREAD
    assert judged(both, "no", searched(KEEPER), called("no", KEEPER))["stage"] == UNFOUND
    assert len(supporting(named)) == 2


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert judged(Question("q", "Who?"), "Bo", searched(KEEPER)) == {}
    unanswerable = Question("q", "Who?", ("Dana Brisk",), metadata={"answerable": False})
    assert judged(unanswerable, "Bo", searched(KEEPER)) == {}
    assert supporting({"supporting": 3, "positive_ctxs": [None, 4.5]}) == ()


def test_files_do_not_keep_the_prompts_passages() -> None:
    call = called("x", KEEPER)
    assert "passages" not in call.as_dict()
    assert read_event(json.loads(json.dumps(call.as_dict()))) == called("x")
    assert "passages" in {item.name for item in fields(ModelCall)}


def test_rows_of_before_are_read_and_say_nothing() -> None:
    old = {"method": "rag", "question_id": "1", "question": "Who?", "answer": "x", "cost": dict.fromkeys(
        ("retrievals", "model_calls", "prompt_tokens", "generated_tokens", "seconds"), 0)}  # fmt: skip
    assert from_dict(old, "line 1").stage == ""
    assert shares([from_dict(old, "line 1")]) is None
    with refused(gnothi.errors.InvalidInput):
        from_dict({**old, "reached": {"found": "yes"}}, "line 1")


def test_shares_are_over_the_questions_of_which_it_is_told() -> None:
    def came(number: int, found: bool | None, stage: str) -> Row:
        return row("rag", number, reached={"found": found, "read": found, "stage": stage})

    made = shares([came(1, True, READ), came(2, True, MISREAD), came(3, False, UNFOUND), came(4, None, UNTOLD), row("rag", 5)])
    assert made is not None
    assert made.n == 3
    assert [made.found, made.read, made.answered] == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    assert set(made.stages) == set(STAGES)
    assert sum(made.stages.values()) == 4


def reply(prompt: Prompt) -> Reply:
    """Reads what stands before it, and thinks in the way that it is asked to."""
    shown = " ".join(one.text for one in prompt.passages)
    said = "Dana Brisk" if "Dana Brisk" in f"{shown} {prompt.question} {prompt.answer_so_far}" else "Bo Lund"
    return Reply(f"So the answer is {said}.", logprobs=(-2.0,))


@pytest.mark.parametrize(
    "method", ["rag", "compose", "flare", "ircot", "seakr", "filco", "crag", "skill_rag", "dragin", "refeed"]
)
def test_every_method_is_judged_alike(method: str, tmp_path: Path) -> None:
    index = [KEEPER, FERRY]
    run = gnothi.evaluate(
        [WHO],
        [method],
        tmp_path,
        model=Scripted(reply, thresholds={"gram": -1e9}),
        index=lambda _, k: index[:k],
        settings={
            key: value for key, value in {"k": 1, "signal": "perplexity"}.items() if key in methods.spec(method).settings
        },
    )
    (found,) = run.rows
    assert not found.failed, found.error
    assert found.stage in STAGES
    if found.retrieved:
        assert found.reached["found"] is True
    if found.answer == "Dana Brisk":
        assert found.stage == READ
