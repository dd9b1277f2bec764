"""What makes SKILL-RAG: the reader sees the sentences that make the model surer that it knows, and no others."""

from __future__ import annotations

import math

import pytest

from gnothi import events, methods
from gnothi.errors import InvalidSetting, MissingCapability
from gnothi.protocols import Method
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Capabilities, Passage, Prompt, Question
from tests.messages import refused

QUESTION = Question("q", "Where was Mira Tolven born?")
OWN = Passage("own", "Mira Tolven is a painter. She was born in Kestrel.", "Mira Tolven")
OTHER = Passage("other", "Vesk is a town. It is old.", "Vesk")


def script(prompt: Prompt) -> Reply:
    """Says what it reads: every passage's last word; without passages that it knows nothing."""
    if not prompt.passages:
        return Reply("So the answer is Nowhere.", doubt=1.0)
    return Reply(f"So the answer is {' and '.join(one.text.rstrip('.').split()[-1] for one in prompt.passages)}.")


def scorer(prompt: Prompt, continuation: str) -> float:
    """Yes where Kestrel is named, and a little where Vesk is; 0.2 from memory."""
    read = " ".join(passage.text for passage in prompt.passages)
    yes = 0.9 if "Kestrel" in read else 0.3 if "Vesk" in read else 0.1 if read else 0.2
    return math.log(yes if continuation == "Yes" else 1 - yes)


def make(**settings: object) -> tuple[Scripted, ScriptedRetriever, Method]:
    model, retriever = Scripted(script, scorer=scorer), ScriptedRetriever([OWN, OTHER])
    return model, retriever, methods.create("skill_rag", {"model": model, "retriever": retriever}, {"reason": True} | settings)


async def ask(**settings: object) -> Answer:
    return await make(**settings)[2](QUESTION)


async def test_the_reader_sees_what_raises_the_probability_of_knowing() -> None:
    model, retriever, method = make()
    with events.record() as recorded:
        answer = await method(QUESTION)
    assert answer.text == "Kestrel and town"
    assert [(one.id, one.text) for one in answer.evidence] == [
        ("own", "She was born in Kestrel."),
        ("other", "Vesk is a town."),
    ]
    assert retriever.queries == [QUESTION.text]
    assert [event.kind for event in recorded if isinstance(event, events.Filtered)] == ["pmi"]
    assert [prompt.task.name for prompt in model.prompts] == ["know"] * 5 + ["reason"]


async def test_a_passage_of_which_nothing_is_kept_is_dropped() -> None:
    answer = await ask(threshold=1.0)
    assert [one.id for one in answer.evidence] == ["own"]
    assert answer.text == "Kestrel"


async def test_nothing_kept_answers_from_memory() -> None:
    model, _, method = make(threshold=9.0)
    with events.record() as recorded:
        answer = await method(QUESTION)
    assert (answer.text, answer.evidence) == ("Nowhere", ())
    assert model.prompts[-1].passages == ()
    (event,) = (event for event in recorded if isinstance(event, events.Filtered))
    assert not any(stays for *_, stays in event.sentences)


async def test_the_task_may_be_one_the_model_knows_already() -> None:
    model, _, method = make(task="useful")
    assert [one.text for one in (await method(QUESTION)).evidence] == ["She was born in Kestrel."]  # the odds of Vesk are 3 : 7
    assert {prompt.task.name for prompt in model.prompts} == {"useful", "reason"}


@pytest.mark.parametrize(("gate_threshold", "retrieves"), [(0.5, True), (0.9, False)])
async def test_the_gate_is_the_models_own_report(gate_threshold: float, retrieves: bool) -> None:
    _, retriever, method = make(gate="self_report", gate_threshold=gate_threshold)
    with events.record() as recorded:
        answer = await method(QUESTION)
    decided = next(event for event in recorded if isinstance(event, events.Decided))
    assert (decided.signal, decided.verdict) == ("self_report", "retrieve" if retrieves else "trust")
    assert decided.score == pytest.approx(0.8)
    assert bool(retriever.queries) is retrieves
    assert answer.text == ("Kestrel and town" if retrieves else "Nowhere")


async def test_the_gates_threshold_comes_from_the_model() -> None:
    model = Scripted(script, scorer=scorer, thresholds={"self_report": 0.85})
    retriever = ScriptedRetriever([OWN])
    await methods.create("skill_rag", {"model": model, "retriever": retriever}, {"gate": "self_report"})(QUESTION)
    assert not retriever.queries
    with refused(InvalidSetting):
        make(gate="energy")


async def test_another_model_may_judge() -> None:
    reader, judge = Scripted(script, capabilities=Capabilities()), Scripted(lambda _: "", scorer=scorer)
    resources = {"model": reader, "retriever": ScriptedRetriever([OWN]), "judge": judge}
    answer = await methods.create("skill_rag", resources, {"reason": True})(QUESTION)
    assert answer.text == "Kestrel"
    assert {prompt.task.name for prompt in reader.prompts} == {"reason"}
    assert {prompt.task.name for prompt in judge.prompts} == {"know"}
    blind = Scripted(script, name="blind", capabilities=Capabilities())
    with refused(MissingCapability):
        methods.create("skill_rag", {**resources, "judge": blind}, {})
