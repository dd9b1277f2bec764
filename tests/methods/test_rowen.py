"""What makes Rowen: the question in other ways and of others, and a search where the answers disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import events, methods
from gnothi.errors import InvalidSetting, MissingCapability
from gnothi.methods.rowen import listed
from gnothi.models.wrappers import Calibrated
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Decoding, Passage, Prompt, Question, Samples, StateSpec
from tests.messages import refused

QUESTION = Question("q", "Where was Mira born?")
TRUTH = Passage("truth", "Mira was born in Kestrel.")
WAYS = ["What is Mira's place of birth?", "In which town did Mira come into the world?"]


ABROAD = {
    "What is Mira's place of birth?": "Was ist Miras Geburtsort?",
    "In which town did Mira come into the world?": "Wo kam sie her?",
}


def towns(answers: Sequence[str], first: str = "Vesk", name: str = "scripted", abroad: Sequence[str] = ()) -> Scripted:
    """Answers the question with ``first``, the other ways with ``answers``, in German ``abroad``, and reads Kestrel."""
    by_wording = dict(zip(WAYS, answers, strict=True)) | dict(zip(ABROAD.values(), abroad, strict=False))

    def reply(prompt: Prompt) -> str | list[str]:
        if prompt.task.name == "rephrase":
            return "\n".join(f"{n}. {way}" for n, way in enumerate(WAYS, 1))
        if prompt.task.name == "translate":
            assert "German" in prompt.task.instruction
            return ABROAD[prompt.question]
        if prompt.task.name == "equivalent":
            return "Yes" if set(prompt.choices) == {"Vesk", "the town of Vesk"} else "No"
        if prompt.passages:
            return "So the answer is Kestrel."
        town = by_wording.get(prompt.question, first)
        return [f"So the answer is {one}." for one in ([first, *answers] if prompt.question == QUESTION.text else [town])]

    return Scripted(reply, name=name)


async def run(
    model: object, verifier: object = None, question: Question = QUESTION, **settings: object
) -> tuple[Answer, float | None, list[str]]:
    retriever = ScriptedRetriever([TRUTH])
    resources = {"model": model, "retriever": retriever, "verifier": verifier}
    with events.record() as recorded:
        answer = await methods.create("rowen", resources, settings)(question)
    (decided,) = (event for event in recorded if isinstance(event, events.Decided))
    assert (decided.verdict == "retrieve") is bool(retriever.queries)
    return answer, decided.score, retriever.queries


async def test_agreement_over_wordings_is_trusted() -> None:
    answer, doubt, queries = await run(towns(["Vesk", "the town of Vesk"]))
    assert (answer.text, doubt, queries) == ("Vesk", 0.0, [])


async def test_the_draft_that_is_shown_is_the_whole_reply() -> None:
    with events.record() as recorded:
        await run(towns(["Vesk", "Vesk"]), reason=True)
        await run(towns(["Vesk", "Vesk"]), reason=False)
    drafts = [event for event in recorded if isinstance(event, events.Drafted)]
    assert [(draft.text, draft.uncertainty) for draft in drafts] == [
        ("So the answer is Vesk.", 0.0),
        ("Vesk", 0.0),
    ]


async def test_disagreement_is_looked_up() -> None:
    answer, doubt, queries = await run(towns(["Ulm", "Ulm"]))
    assert (answer.text, doubt, queries) == ("Kestrel", 1.0, [QUESTION.text])
    assert answer.evidence == (TRUTH,)


async def test_half_of_the_answers_are_enough_and_the_threshold_says_so() -> None:
    answer, doubt, _ = await run(towns(["Vesk", "Ulm"]))
    assert (answer.text, doubt) == ("Vesk", 0.5)
    answer, doubt, _ = await run(towns(["Vesk", "Ulm"]), threshold=0.6)
    assert (answer.text, doubt) == ("Kestrel", 0.5)


async def test_across_languages_each_wording_is_compared_with_its_translation() -> None:
    model = towns(["Vesk", "Ulm"], abroad=["the town of Vesk", "Ulm"])
    answer, doubt, _ = await run(model, language="German")
    assert (answer.text, doubt) == ("Vesk", 0.0)  # both pairs agree, though not with the first answer
    assert {*ABROAD.values()} <= {prompt.question for prompt in model.prompts}
    answer, doubt, _ = await run(towns(["Vesk", "Vesk"], abroad=["Ulm", "Rom"]), language="German")
    assert (answer.text, doubt) == ("Kestrel", 1.0)


async def test_across_models() -> None:
    other = towns(["Ulm", "Vesk"], name="other")
    answer, doubt, _ = await run(towns(["Vesk", "Vesk"]), other)
    assert (answer.text, doubt) == ("Vesk", 0.5)
    assert [prompt.question for prompt in other.prompts] == WAYS


async def test_the_models_own_answer_is_judged_beside_the_others_in_this_order() -> None:
    model = towns(["Vesk", "Vesk"])
    await run(model, verifier=towns(["the town of Vesk", "the town of Vesk"], name="other"))
    assert [prompt.choices for prompt in model.prompts if prompt.task.name == "equivalent"] == [("Vesk", "the town of Vesk")]


async def test_across_both_the_shares_are_added_up() -> None:
    """Agreement 1/2 across languages and 0 across models: 0.5 + alpha x 0."""
    model, other = towns(["Vesk", "Vesk"], abroad=["Vesk", "Ulm"]), towns(["Ulm", "Ulm"], name="other")
    answer, doubt, _ = await run(model, other, language="German")
    assert (answer.text, doubt) == ("Vesk", 1.5)
    answer, doubt, _ = await run(model, other, language="German", threshold=0.6)
    assert (answer.text, doubt) == ("Kestrel", 1.5)
    assert (await run(model, other, language="German", weight=0.25))[1] == pytest.approx(0.75)


async def test_a_model_that_cannot_rephrase_is_asked_again() -> None:
    model = towns(["Ulm", "Vesk"])
    lab = Calibrated(model, {}, frozenset({"reason", "answer", "equivalent"}))
    _, doubt, _ = await run(lab, ways=3)
    assert doubt == pytest.approx(1 / 3)  # drawn: Vesk, Ulm, Vesk
    assert not [prompt for prompt in model.prompts if prompt.task.name == "rephrase"]
    with refused(MissingCapability):
        await run(lab, perturb="rephrase")
    with refused(MissingCapability):
        await run(lab, language="German")


@pytest.mark.parametrize(("settings", "count"), [({}, 3), ({"wording_temperature": 0}, 3)])
async def test_every_line_is_a_wording(settings: dict[str, Any], count: int) -> None:
    def replies(prompt: Prompt) -> str:
        return "1. Who is a?\n2. Who is b?\n3. Who is c?" if prompt.task.name == "rephrase" else "Vesk"

    class Noting(Scripted):
        drawn = 0

        async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
            self.drawn += decoding.temperature == 1.0
            return await super().sample(prompt, n, decoding, hidden)

    model = Noting(replies)
    await run(model, ways=2, reason=False, **settings)
    assert len({prompt.question for prompt in model.prompts if prompt.task.name == "answer"} - {QUESTION.text}) == count
    assert model.drawn == ("wording_temperature" not in settings)


async def test_what_is_drawn_is_read_like_the_first_answer() -> None:
    question = Question("q", QUESTION.text, choices=("Vesk", "Kestrel"))
    assert (await run(Scripted(lambda _: "So the answer is (a)."), question=question, perturb="resample"))[1] == 0.0

    def unfinished(prompt: Prompt) -> str:
        return " Vesk." if prompt.answer_so_far else "Mira was born in Vesk."

    model = Scripted(unfinished)
    answer, doubt, _ = await run(model, perturb="resample", ways=4, reason=True)
    assert (answer.text, doubt) == ("Vesk", 0.0)
    assert len([prompt for prompt in model.prompts if prompt.answer_so_far]) == 2  # equal chains conclude once
    assert (await run(Scripted(lambda _: "(A)"), question=question, perturb="resample", reason=False))[1] == 0.0


@pytest.mark.parametrize(
    "reply",
    [
        "{}\n{}",
        "Here are two ways:\n\n{}\n\n{}\n",
        "1. {}\n{}",
        "1) {}\n2) {}",
        "(1) {}\n(2) {}",
        "- {}\n* {}",
        "**1.** {}\n**2.** {}",
        '1. "{}"\n2. "{}"',
        "1. {} 2. {}",
        "Q1: {}\nQ2: {}",
    ],
)
def test_wordings_as_models_list_them(reply: str) -> None:
    assert listed(reply.format(*WAYS)) == WAYS


def test_a_number_within_a_wording_stays() -> None:
    assert listed("7 Up was made where?\n1902 saw which king?\n1. Is 3.5 more than 2?") == [
        "7 Up was made where?",
        "1902 saw which king?",
        "Is 3.5 more than 2?",
    ]


@given(st.text())
def test_any_list_of_wordings_can_be_read(reply: str) -> None:
    assert all(text.strip() for text in listed(reply))


async def test_without_wordings_the_question_is_asked_again_and_that_is_said() -> None:
    model = Scripted(lambda prompt: "" if prompt.task.name == "rephrase" else "So the answer is Vesk.")
    with events.record() as recorded:
        await methods.create("rowen", {"model": model, "retriever": ScriptedRetriever([TRUTH])}, {"language": "German"})(
            QUESTION
        )
    (said,) = (event for event in recorded if isinstance(event, events.Decided) and event.kind == "rephrase")
    assert (said.verdict, said.score) == ("resample", None)
    assert not [prompt for prompt in model.prompts if prompt.task.name == "translate"]


async def test_another_language_needs_other_words() -> None:
    with refused(InvalidSetting):
        await run(towns(["Vesk", "Vesk"]), perturb="resample", language="German")


async def test_what_says_nothing_is_looked_up() -> None:
    answer, doubt, _ = await run(towns(["unknown", "unknown"], first="unknown"))
    assert (answer.text, doubt) == ("Kestrel", 1.0)  # "unknown" agrees with nothing
