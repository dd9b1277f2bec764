"""Picking by a utility judge: what is kept, what the judge is shown, what is told about it."""

from __future__ import annotations

import pytest

from gnothi import events
from gnothi.filtering.utility import DemonstrationSource, References, Useful
from gnothi.methods.steps.prompts import USEFUL
from gnothi.testing.model import Scripted
from gnothi.types import Capabilities, Demonstration, Passage, Prompt

QUESTION = "Where was Mira Tolven born?"
A, B, C = (Passage(name, f"Text of {name}") for name in "abc")
NEAR = (Demonstration("Who?", "No", (A,)), Demonstration("Where?", "Yes", (B,)))
DRAWN = (Demonstration("What?", "Yes", (C,)),)


class Source:
    def __init__(self, empty: bool = False) -> None:
        self.empty = empty
        self.asked: list[tuple[object, ...]] = []

    async def nearest(self, question: str, passage: Passage, n: int, at_least: int) -> tuple[Demonstration, ...]:
        self.asked.append((question, passage.id, n, at_least))
        return () if self.empty else NEAR

    async def random(self, n: int, at_least: int, seed: int) -> tuple[Demonstration, ...]:
        self.asked.append((n, at_least, seed))
        return () if self.empty else DRAWN


def judge(prompt: Prompt) -> str:
    return {"a": "Yes.", "b": "No", "c": "yes, it does"}[prompt.passages[0].id]


async def test_passages_called_useful_are_kept_in_order() -> None:
    model = Scripted(judge, capabilities=Capabilities())
    with events.record() as recorded:
        assert await Useful(model, USEFUL)(QUESTION, (C, B, A)) == (C, A)
    assert recorded == [events.Picked("useful", QUESTION, (C, A), (B,))]
    assert [prompt.passages for prompt in model.prompts] == [(C,), (B,), (A,)]
    assert all(prompt.task is USEFUL and prompt.question == QUESTION for prompt in model.prompts)


@pytest.mark.parametrize("reply", ["", "unknown", "Maybe", "It is useful: Yes"])
async def test_anything_but_yes_is_no(reply: str) -> None:
    assert await Useful(Scripted(lambda _: reply), USEFUL)(QUESTION, (A, B)) == ()


async def test_nothing_to_judge() -> None:
    model = Scripted(judge)
    assert await Useful(model, USEFUL)(QUESTION, ()) == ()
    assert not model.prompts


@pytest.mark.parametrize(
    ("references", "shown"), [("nearest", NEAR), ("random", DRAWN), ("none", ())], ids=lambda v: str(v)[:7]
)
async def test_demonstrations_come_from_the_reference(references: References, shown: tuple[Demonstration, ...]) -> None:
    model, source = Scripted(judge), Source()
    assert isinstance(source, DemonstrationSource)
    assert await Useful(model, USEFUL, source, references, shots=6, at_least=1)(QUESTION, (A, B)) == (A,)
    assert [prompt.task.demonstrations for prompt in model.prompts] == [shown, shown]
    assert {prompt.task.instruction for prompt in model.prompts} == {USEFUL.instruction}
    if references == "nearest":
        assert source.asked == [(QUESTION, "a", 6, 1), (QUESTION, "b", 6, 1)]
    elif references == "random":
        (*first, seed), (*second, other) = source.asked
        assert (first, second) == ([6, 1], [6, 1])
        assert seed != other
    else:
        assert not source.asked


@pytest.mark.parametrize("references", ["nearest", "random"])
async def test_an_empty_reference_leaves_the_tasks_own(references: References) -> None:
    model = Scripted(judge)
    await Useful(model, USEFUL, Source(empty=True), references)(QUESTION, (A,))
    assert model.prompts[0].task == USEFUL


async def test_the_nearest_may_come_first() -> None:
    class Source:
        async def nearest(self, question: str, passage: Passage, n: int, at_least: int) -> tuple[Demonstration, ...]:  # noqa: ARG002
            return tuple(Demonstration(str(place), "Yes") for place in range(n))

        async def random(self, n: int, at_least: int, seed: int) -> tuple[Demonstration, ...]:
            raise NotImplementedError

    seen: dict[str, list[str]] = {}
    for references in ("nearest", "best_first"):
        judge = Scripted(lambda _: "Yes")
        await Useful(judge, USEFUL, Source(), references, 3)("Who?", [Passage("p", "It was so.")])
        seen[references] = [one.question for one in judge.prompts[0].task.demonstrations]
    assert seen == {"nearest": ["0", "1", "2"], "best_first": ["2", "1", "0"]}
