"""None"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import events
from gnothi.filtering.least_uncertain import Candidate, LeastUncertain, least_uncertain
from gnothi.signals import registry
from gnothi.signals.replies import says_nothing
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Decoding, Generation, Passage, Prompt, Task

PROMPT = Prompt(Task("reason"), "Where was Mira Tolven born?", (Passage("old", "read before"),), answer_so_far="She is known.")
PASSAGES = tuple(Passage(name, f"text {name}") for name in ("a", "b", "c"))


def doubting(doubts: dict[str, float], blank: str = "") -> Scripted:
    def reply(prompt: Prompt) -> Reply:
        *_, passage = prompt.passages
        return Reply("" if passage.id == blank else f"From {passage.id}", doubt=doubts[passage.id])

    return Scripted(reply)


async def test_the_passage_of_lowest_uncertainty_wins() -> None:
    with events.record() as recorded:
        chosen = await LeastUncertain(registry.create("gram"))(
            doubting({"a": 1.0, "b": 0.0, "c": 0.3}), PROMPT, PASSAGES, Decoding()
        )
    assert chosen.passage.id == "b"
    assert chosen.measured.greedy.text == "From b"
    ranked, drafted = recorded
    assert isinstance(ranked, events.Ranked)
    assert [label for label, _, _ in ranked.candidates] == ["b", "c", "a"]
    assert ranked.candidates[0][1] == "text b"
    assert ranked.kind == "passage"
    assert drafted == events.Drafted("From b", chosen.measured.score)


async def test_the_first_wins_a_tie_and_silence_loses() -> None:
    rerank = LeastUncertain(registry.create("prompt"))
    assert (await rerank(Scripted(lambda _: "Yes"), PROMPT, PASSAGES, Decoding())).passage.id == "a"
    silent = doubting(dict.fromkeys("abc", 0.0), blank="a")
    assert (await LeastUncertain(registry.create("gram"))(silent, PROMPT, PASSAGES, Decoding())).passage.id in ("b", "c")
    assert (await LeastUncertain(registry.create("prompt"))(silent, PROMPT, PASSAGES, Decoding())).passage.id == "b"


async def test_a_passage_that_leaves_the_model_sure_of_not_knowing_loses() -> None:
    replies = {"a": Reply("So the answer is unknown."), "b": Reply("She was born in Orvel.", doubt=2.0), "c": Reply("unknown")}
    model = Scripted(lambda prompt: replies[prompt.passages[-1].id])
    assert (await LeastUncertain(registry.create("gram"))(model, PROMPT, PASSAGES, Decoding())).passage.id == "b"


async def test_each_candidate_is_read_behind_the_prompts_passages_and_all_at_a_time() -> None:
    entered = 0
    everyone = asyncio.Event()

    class Meeting(Scripted):
        """Replies only when the greedy calls of all candidates have come in."""

        async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
            nonlocal entered
            entered += 1
            if entered == len(PASSAGES):
                everyone.set()
            await everyone.wait()
            return await super().generate(prompt, decoding)

    model = Meeting(lambda _: "text")
    async with asyncio.timeout(120):
        await LeastUncertain(registry.create("gram"))(model, PROMPT, PASSAGES, Decoding())
    assert {prompt.passages for prompt in model.prompts} == {(*PROMPT.passages, passage) for passage in PASSAGES}
    assert {prompt.answer_so_far for prompt in model.prompts} == {"She is known."}


async def test_a_failure_under_one_candidate_is_raised() -> None:
    with pytest.raises(KeyError):
        await LeastUncertain(registry.create("gram"))(Scripted({}), PROMPT, PASSAGES, Decoding())


INF = float("inf")


def test_the_lower_uncertainty_wins_and_is_reported() -> None:
    with events.record() as recorded:
        best = least_uncertain([Candidate("rationales", "Orvel", -4.7), Candidate("knowledge", "Kestrel", -6.2)])
    assert best.text == "Kestrel"
    assert recorded == [events.Ranked("answer", (("knowledge", "Kestrel", -6.2), ("rationales", "Orvel", -4.7)))]


def test_empty_and_unknown_lose_whatever_their_uncertainty() -> None:
    for nothing in ("", "unknown", "Unknown.", "I don't know"):
        pair = [Candidate("rationales", nothing, -6.9), Candidate("knowledge", "Kestrel", INF)]
        assert least_uncertain(pair).text == "Kestrel"
        assert least_uncertain(pair[:1]).text == nothing


@given(
    st.lists(st.tuples(st.sampled_from(["", "unknown", "a", "b"]), st.floats(-7, 10) | st.just(INF)), min_size=1, max_size=5)
)
def test_the_winner_is_first_in_the_order(pairs: list[tuple[str, float]]) -> None:
    candidates = [Candidate(str(number), text, value) for number, (text, value) in enumerate(pairs)]
    best = least_uncertain(candidates)
    speaking = [one for one in candidates if not says_nothing(one.text)] or candidates
    assert best is min(speaking, key=lambda one: one.uncertainty)
