"""What makes Self-RAG: the probabilities of reflection tokens say when to retrieve and which continuation is best."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import events, methods
from gnothi.errors import MissingCapability
from gnothi.methods.reflection_tokens import SUPPORTS, TOKENS, UTILITIES, share, support, utility, without_tokens
from gnothi.methods.self_rag import SELF_RAG
from gnothi.models.fake import Reply, Scripted
from gnothi.models.wrappers import Calibrated
from gnothi.retrieval.fake import ScriptedRetriever
from gnothi.types import Answer, ContinuationScore, Passage, Prompt, Question

QUESTION = Question("q", "Where was Mira born?")
GOOD, BAD = Passage("good", "Mira was born in Kestrel.", "Mira"), Passage("bad", "Vesk is a town.")
FULL, PARTIAL, NONE = SUPPORTS


class Reflecting:
    """Probabilities of tokens by what stands last; replies by which passage stands there."""

    def __init__(self, retrieval: float, **changed: Mapping[str, float]) -> None:
        self.good: Mapping[str, float] = {"[Relevant]": 0.9, "[Irrelevant]": 0.1, FULL: 0.8, PARTIAL: 0.1, NONE: 0.1}
        self.bad: Mapping[str, float] = {"[Relevant]": 0.2, "[Irrelevant]": 0.8, FULL: 0.1, PARTIAL: 0.1, NONE: 0.8}
        self.graded: Mapping[str, float] = {"[Utility:5]": 0.6, "[Utility:1]": 0.2, "[Retrieval]": 0.1}
        self.first: Mapping[str, float] = {"[Retrieval]": retrieval, "[No Retrieval]": 1 - retrieval}
        vars(self).update(changed)
        self.model = Scripted(self._reply, scorer=self._score)

    def _reply(self, prompt: Prompt) -> Reply:
        last = prompt.answer_so_far
        town = "Vesk" if BAD.text in last else "Kestrel" if GOOD.text in last else "Ulm"
        return Reply(f"{town}.[Utility:5]", (math.log(0.5 if town == "Kestrel" else 0.9),))

    def _score(self, prompt: Prompt, token: str) -> float:
        last = prompt.answer_so_far
        chances = self.first if not last else self.bad if BAD.text in last else self.good
        if last.endswith(tuple(SUPPORTS)) or ("[No Retrieval]" in last and last.endswith(".")):
            chances = self.graded
        return math.log(chances.get(token, 1e-9))

    async def ask(self, **settings: object) -> tuple[Answer, list[events.Event], list[str]]:
        retriever = ScriptedRetriever([BAD, GOOD])
        with events.record() as recorded:
            method = methods.create("self_rag", {"model": self.model, "retriever": retriever}, settings)
            answer = await method(QUESTION)
        return answer, recorded, retriever.queries


async def test_the_retrieval_token_decides_from_a_fifth_on() -> None:
    answer, recorded, queries = await Reflecting(0.21).ask()
    assert queries == [QUESTION.text]
    assert answer.text == "Kestrel"
    (decided,) = (event for event in recorded if isinstance(event, events.Decided))
    assert decided.score == pytest.approx(0.21)
    assert (decided.threshold, decided.verdict) == (0.2, "retrieve")
    answer, _, queries = await Reflecting(0.19).ask()
    assert (answer.text, answer.evidence, queries) == ("Ulm", (), [])
    assert (await Reflecting(0.19).ask(retrieve="always"))[2]
    assert not (await Reflecting(0.9).ask(retrieve="never"))[2]


async def test_the_score_weighs_fluency_and_three_critiques() -> None:
    answer, recorded, _ = await Reflecting(0.9).ask(beam=2)
    (ranked,) = (event for event in recorded if isinstance(event, events.Ranked))
    scores = {label: score for label, _, score in ranked.candidates}
    graded = 0.5 * (0.6 - 0.2) / 0.8
    assert scores["good"] == pytest.approx(0.5 + 0.9 + (0.8 + 0.05) + graded)
    assert scores["bad"] == pytest.approx(0.9 + 0.2 + (0.1 + 0.05) + graded)
    assert (answer.text, answer.evidence) == ("Kestrel", (GOOD,))
    assert answer.uncertainty == pytest.approx(-scores["good"])  # type: ignore[operator]


async def test_weights_choose_the_continuation() -> None:
    assert (await Reflecting(0.9).ask(relevance=0.0, support=0.0))[0].text == "Vesk"  # the more fluent one


async def test_what_the_model_reads_is_what_its_checkpoint_was_trained_on() -> None:
    model = Reflecting(0.9)
    await model.ask()
    texts = [prompt.answer_so_far for prompt in model.model.prompts if GOOD.text in prompt.answer_so_far]
    shown = "[Retrieval]<paragraph>Mira\nMira was born in Kestrel.</paragraph>"
    assert texts == [shown, f"{shown}[Relevant]", f"{shown}[Relevant]Kestrel.", f"{shown}[Relevant]Kestrel.{FULL}"]
    assert all(prompt.task.name == "self_rag" and not prompt.task.instruction for prompt in model.model.prompts)


async def test_another_segment_is_looked_up_with_the_last_one() -> None:
    model = Reflecting(0.9, graded={"[Retrieval]": 0.7, "[No Retrieval]": 0.1, "[Utility:5]": 0.2})
    answer, _, queries = await model.ask(segments=2, beam=1)
    assert queries == [QUESTION.text, f"{QUESTION.text} Kestrel."]
    assert answer.rationale == "Kestrel. Vesk." or answer.rationale == "Kestrel. Kestrel."
    assert (await model.ask(segments=1))[2] == [QUESTION.text]


async def test_models_without_the_tokens_are_told_so() -> None:
    class Ordinary(Scripted):
        async def score(self, prompt: Prompt, continuations: Any) -> tuple[ContinuationScore, ...]:
            scores = await super().score(prompt, continuations)
            return tuple(ContinuationScore(one.text, (*one.logprobs, -1.0)) for one in scores)  # in pieces

    model = Ordinary(lambda _: "So the answer is Ulm.", name="ordinary")
    resources: dict[str, Any] = {"model": model, "retriever": ScriptedRetriever([GOOD])}
    with pytest.raises(MissingCapability, match=r"reflection tokens.*'ordinary'.*critic=judgements"):
        await methods.create("self_rag", resources, {})(QUESTION)
    lab = Calibrated(model, {}, frozenset({"reason", "know", "useful"}))
    with pytest.raises(MissingCapability, match=r"the task 'self_rag'.*critic=judgements"):
        methods.create("self_rag", resources | {"model": lab}, {"critic": "tokens"})


@pytest.mark.parametrize(("knows", "answer"), [(0.9, "Ulm"), (0.5, "Kestrel")])
async def test_by_judgements(knows: float, answer: str) -> None:
    def reply(prompt: Prompt) -> Reply:
        town = "Vesk" if BAD in prompt.passages else "Kestrel" if prompt.passages else "Ulm"
        return Reply(f"So the answer is {town}.")

    def scorer(prompt: Prompt, word: str) -> float:
        yes = knows if prompt.task.name == "know" else 0.9 if GOOD in prompt.passages else 0.2
        return math.log(yes if word == "Yes" else 1 - yes)

    lab = Calibrated(Scripted(reply, scorer=scorer), {"self_report": 0.3}, frozenset({"reason", "know", "useful"}))
    found = await methods.create("self_rag", {"model": lab, "retriever": ScriptedRetriever([BAD, GOOD])}, {})(QUESTION)
    assert found.text == answer


probabilities = st.floats(0.0, 1.0)


@given(st.tuples(*[probabilities] * 3), st.tuples(*[probabilities] * 5))
def test_critiques_stay_in_range(supports: tuple[float, ...], utilities: tuple[float, ...]) -> None:
    assert 0 <= share(supports) <= 1 + 1e-9
    assert -1e-9 <= support(supports) <= 1 + 1e-9
    assert -1 - 1e-9 <= utility(utilities) <= 1 + 1e-9


def test_grades() -> None:
    assert [utility([float(one == grade) for one in range(5)]) for grade in range(5)] == [-1, -0.5, 0, 0.5, 1]
    assert (support([1, 0, 0]), support([0, 1, 0]), support([0, 0, 1]), support([0, 0, 0])) == (1, 0.5, 0, 0)


@given(st.lists(st.sampled_from([*TOKENS, "Kestrel.", " ", "is"]), max_size=10))
def test_a_reader_sees_no_tokens(pieces: list[str]) -> None:
    seen = without_tokens("".join(pieces))
    assert not any(token in seen for token in TOKENS)
    assert seen.replace(" ", "") == "".join(piece for piece in pieces if piece not in TOKENS).replace(" ", "")


async def test_on_a_real_model_each_reflection_token_is_one_token() -> None:
    pytest.importorskip("torch")
    from gnothi.models import ModelSettings
    from gnothi.models.batched import Batched
    from gnothi.models.rendering import Instruction
    from gnothi.models.transformers import TransformersBackend
    from tests.models.tiny import build_model, build_tokenizer

    tokenizer = build_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": list(TOKENS)})
    network = build_model("llama")
    network.resize_token_embeddings(len(tokenizer))
    backend = TransformersBackend(network, tokenizer, Instruction(), name="tiny", settings=ModelSettings())
    model = Batched(backend)
    prompt = Prompt(SELF_RAG, "w1 ?", answer_so_far="[Retrieval]<paragraph>w2</paragraph>")
    try:
        assert backend._renderer.render(prompt) == (
            "### Instruction:\nw1 ?\n\n### Response:\n[Retrieval]<paragraph>w2</paragraph>"
        )
        scores = await model.score(prompt, [*UTILITIES, *SUPPORTS, "[Relevant]", "[Retrieval]"])
        assert [len(one.logprobs) for one in scores] == [1] * len(scores)
        resources = {"model": model, "retriever": ScriptedRetriever([Passage("p", "w3 is w4 .", "w3")])}
        method = methods.create("self_rag", resources, {"segments": 2, "max_tokens": 5, "retrieve": "always"})
        assert await method(Question("q", "where is w3 ?")) == await method(Question("q", "where is w3 ?"))
    finally:
        await model.aclose()
