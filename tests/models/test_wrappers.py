from __future__ import annotations

from collections.abc import Mapping, Sequence

from gnothi.events import ModelCall, record
from gnothi.models.wrappers import Seeded, Traced
from gnothi.protocols import LanguageModel
from gnothi.seeding import question_scope
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Decoding, Generation, Prompt, Samples, StateSpec, Task

PROMPT = Prompt(Task("answer"), "Who wrote Emma ?")
WARM = Decoding(temperature=1.0)


class Spy(Scripted):
    metadata: Mapping[str, str] = {"device": "none"}
    statistics: Mapping[str, int] = {"steps": 3}

    def __init__(self) -> None:
        super().__init__(lambda _: Reply("Jane Austen"), name="spy")
        self.seeds: list[int | None] = []

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        self.seeds.append(decoding.seed)
        return await super().generate(prompt, decoding)

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        self.seeds.append(decoding.seed)
        return await super().sample(prompt, n, decoding, hidden)


async def test_seeds_depend_on_run_question_and_request_alone() -> None:
    spy = Spy()
    model = Seeded(spy)
    with question_scope(1, "q1"):
        await model.sample(PROMPT, 3, WARM)
        await model.sample(PROMPT, 5, WARM, [StateSpec()])
        await model.generate(PROMPT, WARM)
        await model.sample(PROMPT, 3, Decoding(temperature=1.0, top_k=5))
    with question_scope(1, "q2"):
        await model.sample(PROMPT, 3, WARM)
    with question_scope(2, "q1"):
        await model.sample(PROMPT, 3, WARM)
    with question_scope(1, "q1"):
        await model.sample(PROMPT, 3, WARM)
    first, more, single, cut, question, run, again = spy.seeds
    assert first == more == again
    assert len({first, single, cut, question, run, None}) == 6


async def test_greedy_and_given_seeds_stay() -> None:
    spy = Spy()
    await Seeded(spy).generate(PROMPT, Decoding())
    await Seeded(spy).sample(PROMPT, 2, Decoding(temperature=1.0, seed=7))
    assert spy.seeds == [None, 7]


async def test_every_call_leaves_an_event() -> None:
    model = Traced(Spy())
    assert isinstance(model, LanguageModel)
    with record() as events:
        await model.generate(PROMPT, Decoding())
        await model.sample(PROMPT, 3, WARM)
        await model.score(PROMPT, ["Yes", "No"])
        looked = await model.states(PROMPT, [StateSpec(None, "residual", "predicting")])
        attended = await model.attend(PROMPT, "Jane Austen")
    calls = [event for event in events if isinstance(event, ModelCall)]
    assert [(call.operation, call.task, call.model) for call in calls] == [
        ("generate", "answer", "spy"),
        ("sample", "answer", "spy"),
        ("score", "answer", "spy"),
        ("states", "answer", "spy"),
        ("attend", "answer", "spy"),
    ]
    assert calls[0].texts == ("Jane Austen",)
    assert (calls[0].prompt_tokens, calls[0].generated_tokens) == (4, 3)
    assert (calls[1].prompt_tokens, calls[1].generated_tokens) == (4, 9)
    assert calls[2].texts == ("Yes", "No")
    assert (calls[3].prompt_tokens, calls[3].generated_tokens) == (looked.prompt_tokens, 0) == (4, 0)
    assert (calls[4].prompt_tokens, calls[4].texts) == (len(attended.tokens), ("Jane Austen",))
    assert all(call.seconds >= 0 for call in calls)


async def test_wrappers_pass_on_what_the_model_says_of_itself() -> None:
    model = Traced(Seeded(Spy()))
    assert model.name == "spy"
    assert model.metadata == {"device": "none"}
    assert model.capabilities.hidden_states
    assert model.statistics == {"steps": 3}
    assert Traced(Scripted({})).metadata == {}
    assert Traced(Scripted({})).statistics == {}
    await model.aclose()
