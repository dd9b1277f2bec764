"""What makes ReAct: thoughts, actions on the index and observations in turns, up to an answer or a limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import methods
from gnothi.errors import MissingCapability
from gnothi.methods.steps.react_format import NO_ACTION, Action, Browser, Turn, parse_turn, turn_text
from gnothi.models.wrappers import Calibrated
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Passage, Prompt, Question
from tests.messages import refused

QUESTION = Question("q", "Where was the painter of The Tide born?")
TIDE = Passage("tide", "The Tide is a picture. It hangs in Ulm. It was painted by Mira Tolven. It was sold twice.", "The Tide")
MIRA = Passage("mira", "Mira Tolven was born in Kestrel.", "Mira Tolven")
FILM = Passage("film", "The Tide is a film.", "The Tide (film)")


async def run(*replies: str, **settings: object) -> tuple[Answer, list[Prompt], ScriptedRetriever]:
    left = iter(replies)
    model = Scripted(lambda _: next(left))
    retriever = ScriptedRetriever({"The Tide": [FILM, TIDE], "Mira Tolven": [MIRA], "tide": [TIDE, FILM]})
    answer = await methods.create("react", {"model": model, "retriever": retriever}, settings)(QUESTION)
    return answer, model.prompts, retriever


async def test_thoughts_actions_and_observations_in_turns() -> None:
    answer, prompts, retriever = await run(
        " I need the painter.\nAction 1: search[The Tide]\nObservation 1: made up",
        " Who painted it?\nAction 2: lookup[painted]",
        " Now Mira.\nAction 3: search[Mira Tolven]",
        " Done.\nAction 4: finish[Kestrel]",
        shown=2,
    )
    assert (answer.text, answer.evidence) == ("Kestrel", (TIDE, MIRA))
    assert retriever.queries == ["The Tide", "Mira Tolven"]
    assert prompts[-1].answer_so_far == (
        "Thought 1: I need the painter.\nAction 1: search[The Tide]\n"
        "Observation 1: The Tide: The Tide is a picture. It hangs in Ulm.\n"
        "Thought 2: Who painted it?\nAction 2: lookup[painted]\nObservation 2: (1 of 1) It was painted by Mira Tolven.\n"
        "Thought 3: Now Mira.\nAction 3: search[Mira Tolven]\nObservation 3: Mira Tolven: Mira Tolven was born in Kestrel.\n"
        "Thought 4:"
    )
    assert answer.rationale.endswith("Action 4: finish[Kestrel]")
    assert "made up" not in answer.rationale


async def test_at_the_limit_the_answer_is_asked_for() -> None:
    answer, prompts, _ = await run(" A.\nAction: search[nothing]", " B.\nAction: search[no more]", "Kestrel", max_steps=2)
    assert answer.text == "Kestrel"
    assert prompts[-1].answer_so_far.endswith("Thought 3: It is time to answer.\nAction 3: finish[")
    assert "Nothing was found about nothing." in prompts[-1].answer_so_far


async def test_a_thought_without_an_action_is_asked_for_one() -> None:
    answer, prompts, retriever = await run(" Hm, I wonder.", " search[The Tide]", " Oh.\nAction 2: finish[Kestrel]")
    assert prompts[1].answer_so_far == "Thought 1: Hm, I wonder.\nAction 1:"
    assert retriever.queries == ["The Tide"]
    assert "Thought 1: Hm, I wonder.\nAction 1: search[The Tide]\nObservation 1: The Tide" in answer.rationale


async def test_what_is_no_action_is_said_to_be_none() -> None:
    answer, prompts, _ = await run(" Hm, I wonder.", " dance[now]", " Oh.\nAction 2: finish[Kestrel]")
    assert answer.text == "Kestrel"
    assert f"Thought 1: Hm, I wonder.\nObservation 1: {NO_ACTION}" in prompts[-1].answer_so_far
    assert "[" not in NO_ACTION  # a small model copies what it sees there


@pytest.mark.parametrize(
    "again", [(" search[The Tide]",), (" Again.\nAction: search[The Tide]",), (" Hm.", " none", " Oh.", " none")]
)
async def test_turns_that_only_go_round_end(again: tuple[str, ...]) -> None:
    answer, prompts, _ = await run(" First.\nAction: search[The Tide]", *again, "Kestrel")
    assert answer.text == "Kestrel"
    assert prompts[-1].answer_so_far.endswith(": It is time to answer.\nAction 2: finish[") is (len(again) < 4)
    assert len(prompts) == 2 + len(again)


async def test_an_answer_that_repeats_the_question_is_read_instead() -> None:
    turns = (" A.\nAction: search[Mira Tolven]", " B.\nAction: finish[the painter]")
    answer, prompts, _ = await run(*turns, "Kestrel.")
    assert (answer.text, prompts[-1].task.name, prompts[-1].passages) == ("Kestrel", "answer", (MIRA,))
    assert answer.rationale.endswith("finish[the painter]")


async def test_a_word_can_be_looked_up_again() -> None:
    turns = [" L.\nAction: lookup[it ]"] * 5
    answer, prompts, _ = await run(" First.\nAction: search[The Tide]", *turns, "Kestrel", max_steps=7)
    assert answer.text == "Kestrel"
    assert prompts[-1].answer_so_far.count("lookup[it]") == 4  # three are found; that there are no more is said once


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Thought 2: So.\nAction 2: search[The Tide]", ("So.", "search[The Tide]")),
        (" So.\nAction: Search['The Tide']\nObservation: x", ("So.", "search[The Tide]")),
        ("So. search[Tide [film] (1924)] and more", ("So.", "search[Tide [film] (1924)]")),
        ("I could search (or look up) it.\nAction 1: finish(yes)", ("I could search (or look up) it.", "finish[yes]")),
        ("I could search (or not).", ("I could search (or not).", "None")),
        (" So.\nThought 3: And so on.", ("So.", "None")),
        (" So. Thought 3: And.\nAction 3: search[x]", ("So.", "search[x]")),
        ("Action 3: Look up[born", ("", "lookup[born]")),
        ("Action 3: dance[now]", ("", "None")),
        ("finish[ ]", ("", "None")),
        ("", ("", "None")),
    ],
)
def test_turns_are_read_robustly(reply: str, expected: tuple[str, str]) -> None:
    turn = parse_turn(reply)
    assert (turn.thought, str(turn.action)) == expected


plain = st.from_regex(r"\A[a-zA-Z0-9][a-zA-Z0-9 ,.'-]{0,20}[a-zA-Z0-9]\Z").map(lambda text: " ".join(text.split()))


@given(plain, st.sampled_from(("search", "lookup", "finish")), plain, st.integers(1, 99))
def test_what_is_written_is_read_again(thought: str, kind: str, argument: str, number: int) -> None:
    turn = Turn(thought, Action(kind, argument))  # type: ignore[arg-type]
    assert parse_turn(turn_text(number, turn, "seen")) == turn


@given(st.text(max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    action = parse_turn(text).action
    assert action is None or action.argument


async def test_browsing() -> None:
    browser = Browser(
        ScriptedRetriever({"Tides": [FILM, TIDE], "the tide!": [FILM, TIDE], "Q?": [MIRA, FILM]}), "Q?", 5, 1, "en"
    )
    assert browser.lookup("It") == "No page is open. Search first."
    assert await browser.search("Tydes") == "Nothing was found about Tydes. There is: Mira Tolven, The Tide (film)."
    assert await browser.search("Tides") == "The Tide (film): The Tide is a film. See also: The Tide."
    assert (
        await browser.search("the tide!") == "The Tide: The Tide is a picture."
    )  # the page of that name, though not the first
    assert [browser.lookup("it ") for _ in range(4)] == [
        "(1 of 3) It hangs in Ulm.",
        "(2 of 3) It was painted by Mira Tolven.",
        "(3 of 3) It was sold twice.",
        "No more results.",
    ]
    assert browser.lookup("Odile") == "The page does not hold Odile."
    assert browser.lookup("it ").startswith("(1 of 3)")
    assert browser.passages == (FILM, TIDE)


async def test_a_model_with_a_format_of_its_own_acts_by_sentences() -> None:
    def reply(prompt: Prompt) -> str:
        if prompt.answer_so_far:
            return "So the answer is Kestrel. And"
        return f"Mira was born in {'Kestrel' if prompt.passages else 'Vesk'}. And"

    model, retriever = Scripted(reply), ScriptedRetriever([MIRA, TIDE])
    lab = Calibrated(model, {}, frozenset({"reason"}))
    answer = await methods.create("react", {"model": lab, "retriever": retriever}, {})(QUESTION)
    assert (answer.text, answer.evidence) == ("Kestrel", (MIRA,))
    assert answer.rationale == "Mira was born in Kestrel. So the answer is Kestrel."
    assert retriever.queries == ["Mira born Vesk"]
    with refused(MissingCapability):
        methods.create("react", {"model": lab, "retriever": retriever}, {"form": "actions"})
