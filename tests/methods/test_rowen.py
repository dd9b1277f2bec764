"""What makes Rowen: the question in other ways and of others, and a search where the answers disagree."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gnothi import events, methods
from gnothi.errors import MissingCapability
from gnothi.models.fake import Scripted
from gnothi.models.wrappers import Calibrated
from gnothi.retrieval.fake import ScriptedRetriever
from gnothi.types import Answer, Passage, Prompt, Question

QUESTION = Question("q", "Where was Mira born?")
TRUTH = Passage("truth", "Mira was born in Kestrel.")
WAYS = ["What is Mira's place of birth?", "In which town did Mira come into the world?"]


def towns(answers: Sequence[str], first: str = "Vesk", name: str = "scripted") -> Scripted:
    """Answers the question with ``first``, the other ways with ``answers``, and reads Kestrel."""
    by_wording = dict(zip(["Wo wurde Mira geboren?", *WAYS][-len(answers) :], answers, strict=True))

    def reply(prompt: Prompt) -> str | list[str]:
        if prompt.task.name == "rephrase":
            german = "German" in prompt.task.instruction
            return "1. Wo wurde Mira geboren?" if german else "\n".join(f"{n}. {way}" for n, way in enumerate(WAYS, 1))
        if prompt.task.name == "equivalent":
            return "Yes" if set(prompt.choices) == {"Vesk", "the town of Vesk"} else "No"
        if prompt.passages:
            return "So the answer is Kestrel."
        town = by_wording.get(prompt.question, first)
        return [f"So the answer is {one}." for one in ([first, *answers] if prompt.question == QUESTION.text else [town])]

    return Scripted(reply, name=name)


async def run(model: object, verifier: object = None, **settings: object) -> tuple[Answer, float | None, list[str]]:
    retriever = ScriptedRetriever([TRUTH])
    resources = {"model": model, "retriever": retriever, "verifier": verifier}
    with events.record() as recorded:
        answer = await methods.create("rowen", resources, settings)(QUESTION)
    (decided,) = (event for event in recorded if isinstance(event, events.Decided))
    assert (decided.verdict == "retrieve") is bool(retriever.queries)
    return answer, decided.score, retriever.queries


async def test_agreement_over_wordings_is_trusted() -> None:
    answer, doubt, queries = await run(towns(["Vesk", "the town of Vesk"]))
    assert (answer.text, doubt, queries) == ("Vesk", 0.0, [])


async def test_disagreement_is_looked_up() -> None:
    answer, doubt, queries = await run(towns(["Vesk", "Ulm"]))
    assert (answer.text, doubt, queries) == ("Kestrel", 0.5, [QUESTION.text])
    assert answer.evidence == (TRUTH,)
    assert (await run(towns(["Vesk", "Ulm"]), threshold=0.6))[0].text == "Vesk"


async def test_without_a_judge_answers_are_compared_as_spelt() -> None:
    model = towns(["vesk!", "the town of Vesk"])
    assert (await run(model, equal="form"))[1] == 0.5
    assert not [prompt for prompt in model.prompts if prompt.task.name == "equivalent"]


async def test_across_languages() -> None:
    model = towns(["Ulm", "Vesk", "Vesk"])
    _, doubt, _ = await run(model, language="German")
    assert doubt == pytest.approx(1 / 3)
    assert "Wo wurde Mira geboren?" in [prompt.question for prompt in model.prompts]


async def test_across_models() -> None:
    other = towns(["Ulm", "Ulm"], first="Ulm", name="other")
    _, doubt, _ = await run(towns(["Vesk", "Vesk"]), other)
    assert doubt == pytest.approx(0.5)
    assert [prompt.question for prompt in other.prompts] == [QUESTION.text, *WAYS]
    assert (await run(towns(["Vesk", "Vesk"]), other, weight=0.25))[1] == pytest.approx(0.2)


async def test_a_model_that_cannot_rephrase_is_asked_again() -> None:
    model = towns(["Ulm", "Vesk"])
    lab = Calibrated(model, {}, frozenset({"reason", "answer", "equivalent"}))
    _, doubt, _ = await run(lab, ways=3)
    assert doubt == pytest.approx(1 / 3)  # drawn: Vesk, Ulm, Vesk
    assert not [prompt for prompt in model.prompts if prompt.task.name == "rephrase"]
    with pytest.raises(MissingCapability, match=r"the task 'rephrase'.*perturb=resample"):
        await run(lab, perturb="rephrase")


async def test_what_says_nothing_is_looked_up() -> None:
    answer, doubt, _ = await run(towns(["unknown", "unknown"], first="unknown"))
    assert (answer.text, doubt) == ("Kestrel", 0.0)
