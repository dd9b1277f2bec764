"""What makes self-consistency: chains differ, their answers are counted, the majority wins."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gnothi import methods
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Answer, Decoding, Prompt, Question, Samples, StateSpec

QUESTION = Question("q", "Where was Mira born?")


def chain(town: str, first: str = "Mira is a painter.") -> str:
    return f"{first} So the answer is {town}."


async def vote(*chains: str, **settings: object) -> tuple[Answer, Scripted]:
    model = Scripted(lambda prompt: list(chains) if prompt.task.name == "reason" else "Yes")
    return await methods.create("self_consistency", {"model": model}, {"paths": len(chains), **settings})(QUESTION), model


async def test_the_majority_wins_over_the_likeliest_chain() -> None:
    answer, model = await vote(chain("Vesk"), chain("Kestrel"), chain("the kestrel", "Mira is a judge."), chain("Ulm"))
    assert answer.text == "Kestrel"
    assert answer.rationale == chain("Kestrel")
    assert answer.uncertainty == pytest.approx(0.5)
    assert len(model.prompts) == 1


async def test_ties_go_to_the_answer_given_first() -> None:
    assert (await vote(chain("Vesk"), chain("Kestrel"), chain("Kestrel"), chain("Vesk")))[0].text == "Vesk"


async def test_unknown_has_no_vote_but_counts() -> None:
    answer, _ = await vote(chain("unknown"), chain("unknown"), chain("Vesk"))
    assert answer.text == "Vesk"
    assert answer.uncertainty == pytest.approx(2 / 3)


async def test_what_only_repeats_the_question_has_no_vote() -> None:
    answer, model = await vote(chain("Mira"), chain("Mira"), chain("Vesk"))
    assert answer.text == "Vesk"
    assert answer.uncertainty == pytest.approx(2 / 3)
    assert len(model.prompts) == 1


async def test_where_every_chain_repeats_the_question_it_is_asked_at_once() -> None:
    def reply(prompt: Prompt) -> Sequence[Reply]:
        return [Reply(chain("unknown")), Reply(chain("Mira"))] if prompt.task.name == "reason" else [Reply("Kestrel")]

    model = Scripted(reply)
    answer = await methods.create("self_consistency", {"model": model}, {"paths": 2})(QUESTION)
    assert (answer.text, answer.rationale, answer.uncertainty) == ("Kestrel", chain("Mira"), None)
    assert [prompt.task.name for prompt in model.prompts] == ["reason", "answer"]


async def test_where_no_chain_knows_nothing_is_asked() -> None:
    answer, model = await vote(chain("unknown"), chain("unknown"))
    assert (answer.text, len(model.prompts)) == ("", 1)


async def test_choices_are_counted_as_choices() -> None:
    model = Scripted(lambda _: [chain("(b)"), chain("Kestrel"), chain("Vesk")])
    question = Question("q", "Where?", choices=("Vesk", "Kestrel"))
    assert (await methods.create("self_consistency", {"model": model}, {"paths": 3})(question)).text == "Kestrel"


async def test_a_chain_without_conclusion_is_concluded_once() -> None:
    def reply(prompt: Prompt) -> Sequence[Reply]:
        return [Reply("Kestrel.")] if prompt.answer_so_far else [Reply("Mira is a painter.")]

    model = Scripted(reply)
    answer = await methods.create("self_consistency", {"model": model}, {"paths": 5})(QUESTION)
    assert (answer.text, answer.uncertainty) == ("Kestrel", 0.0)
    assert len(model.prompts) == 2


async def test_how_chains_are_drawn() -> None:
    seen: list[Decoding] = []

    class Watched(Scripted):
        async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
            seen.append(decoding)
            return await super().sample(prompt, n, decoding, hidden)

    model = Watched(lambda _: chain("Vesk"))
    await methods.create("self_consistency", {"model": model}, {})(QUESTION)
    assert [(one.temperature, one.top_k, one.top_p) for one in seen] == [(0.7, 40, 1.0)]


@pytest.mark.parametrize("name", ["cot", "self_consistency"])
async def test_zero_shot_shows_no_demonstrations(name: str) -> None:
    model = Scripted(lambda _: chain("Vesk"))
    await methods.create(name, {"model": model}, {"demonstrations": "false"})(QUESTION)
    (prompt,) = model.prompts
    assert (prompt.task.name, prompt.task.demonstrations) == ("reason", ())
    assert "step by step" in prompt.task.instruction
