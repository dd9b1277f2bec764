"""What a reader is shown and whether it reasons: by the question, the settings and the size of the model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gnothi import methods
from gnothi.methods.steps.prompts import ANSWER, REASON
from gnothi.methods.steps.requirements import SMALL, is_small
from gnothi.models.wrappers import Wrapper
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, Profile, Question

FIRST = Passage("1", "Odile Varr built the mill of Orvel.", "Odile Varr")
SECOND = Passage("2", "Odile Varr was born in Kest.", "Odile Varr")
OTHER = Passage("3", "A mill grinds corn.", "Mill")
ONE_HOP = Question("q", "Where was Odile Varr born?")
TWO_HOPS = Question("q", "Where was the woman who built Odile Varr's mill born?")


def scripted(parameters: int | None) -> Scripted:
    model = Scripted({}, default="Kest")
    model.profile = Profile(parameters=parameters)
    return model


async def asked(model: Scripted, question: Question, settings: dict[str, object], method: str = "rag") -> tuple[str, list[str]]:
    """The task of the last prompt, and which passages were shown."""
    resources = {"model": Wrapper(model), "retriever": ScriptedRetriever([OTHER, FIRST, SECOND])}
    await methods.create(method, resources, settings)(question)
    prompt = model.prompts[-1]
    return prompt.task.name, [one.id for one in prompt.passages]


@pytest.mark.parametrize("parameters", [None, SMALL])
async def test_a_large_model_reads_what_names_and_reasons_about_more_than_one_fact(parameters: int | None) -> None:
    assert await asked(scripted(parameters), ONE_HOP, {}) == (ANSWER.name, ["1", "2"])
    task, shown = await asked(scripted(parameters), TWO_HOPS, {"reason": True})
    assert (task, shown) == (REASON.name, ["3", "1", "2"])
    model = scripted(parameters)
    resources = {"model": model, "retriever": ScriptedRetriever([OTHER, FIRST, SECOND])}
    await methods.create("rag", resources, {})(TWO_HOPS)
    assert model.prompts[0].task.name == REASON.name


@pytest.mark.parametrize("method", ["rag", "compose"])
@pytest.mark.parametrize("question", [ONE_HOP, TWO_HOPS])
async def test_a_small_model_answers_at_once_from_the_first_that_names(question: Question, method: str) -> None:
    settings: dict[str, object] = {"gate": "always"} if method == "compose" else {}
    assert await asked(scripted(SMALL - 1), question, settings, method) == (ANSWER.name, ["1"])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"reason": False}, (ANSWER.name, ["3", "1", "2"])),
        ({"focus": False}, (ANSWER.name, ["3", "1", "2"])),
    ],
)
async def test_settings_go_before_the_size(settings: dict[str, object], expected: tuple[str, list[str]]) -> None:
    assert await asked(scripted(SMALL - 1), TWO_HOPS, settings) == expected


async def test_reason_true_makes_a_small_model_reason() -> None:
    model = scripted(SMALL - 1)
    resources = {"model": model, "retriever": ScriptedRetriever([OTHER, FIRST, SECOND])}
    await methods.create("rag", resources, {"reason": True})(ONE_HOP)
    assert model.prompts[0].task.name == REASON.name
    assert len(model.prompts[0].passages) == 3


async def test_what_a_filter_chose_is_not_cut_to_one() -> None:
    model = scripted(SMALL - 1)
    resources = {"model": model, "retriever": ScriptedRetriever([FIRST, SECOND])}
    method = methods.create("rag", resources, {})
    assert method.reading(ONE_HOP, [FIRST, SECOND]).passages == (FIRST, SECOND)  # type: ignore[attr-defined]


def test_one_with_tasks_of_its_own_is_not_small() -> None:
    model = scripted(1_000)
    assert is_small(model)
    model.profile = replace(model.profile, tasks=frozenset({"answer"}))
    assert not is_small(model)
    assert not is_small(scripted(None))
