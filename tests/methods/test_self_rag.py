"""What makes Self-RAG: the probabilities of reflection tokens say when to retrieve and which continuation is best."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import events, methods
from gnothi.errors import MissingCapability
from gnothi.methods.self_rag import SELF_RAG
from gnothi.methods.steps.self_rag_tokens import (
    CONTINUE,
    SUPPORTS,
    TOKENS,
    UTILITIES,
    paragraph,
    share,
    support,
    utility,
    without_tokens,
)
from gnothi.models.wrappers import Calibrated, Wrapper
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, ContinuationScore, Passage, Profile, Prompt, Question
from tests.messages import refused

QUESTION = Question("q", "Where was Mira born?")
GOOD, BAD = Passage("good", "Mira was born in Kestrel.", "Mira"), Passage("bad", "Vesk is a town.")
WORSE = Passage("worse", "Vesk is a town. It lies on the Ulm.")
FULL, PARTIAL, NONE = SUPPORTS


class Reflecting:
    """Probabilities of tokens by what stands last; replies by which passage stands there."""

    def __init__(self, retrieval: float, **changed: Mapping[str, Any]) -> None:
        self.good: Mapping[str, float] = {"[Relevant]": 0.9, "[Irrelevant]": 0.1, FULL: 0.8, PARTIAL: 0.1, NONE: 0.1}
        self.bad: Mapping[str, float] = {"[Relevant]": 0.2, "[Irrelevant]": 0.8, FULL: 0.1, PARTIAL: 0.1, NONE: 0.8}
        self.graded: Mapping[str, float] = {"[Utility:5]": 0.6, "[Utility:1]": 0.2, "[Retrieval]": 0.1}
        self.first: Mapping[str, float] = {"[Retrieval]": retrieval, "[No Retrieval]": 1 - retrieval}
        self.said: Mapping[str, str] = {"Vesk": "Vesk.", "Kestrel": "Kestrel.", "Ulm": "Ulm."}
        vars(self).update(changed)
        self.model = Scripted(self._reply, scorer=self._score)

    def _reply(self, prompt: Prompt) -> Reply:
        last = prompt.answer_so_far
        town = "Vesk" if BAD.text in last else "Kestrel" if GOOD.text in last else "Ulm"
        return Reply(f"{self.said[town]}[Utility:5]" if self.said[town] else "", (math.log(0.5 if town == "Kestrel" else 0.9),))

    def _score(self, prompt: Prompt, token: str) -> float:
        last = prompt.answer_so_far
        chances = self.first if not last else self.bad if BAD.text in last else self.good
        alone = last.rpartition("[No Retrieval]")[2].rpartition(CONTINUE)[2]  # what was said without a new passage
        if last.endswith(tuple(SUPPORTS)) or (alone != last and alone.endswith(".") and "<paragraph>" not in alone):
            chances = self.graded
        return math.log(chances.get(token, 1e-9))

    async def ask(
        self, question: Question = QUESTION, found: Sequence[Passage] = (BAD, GOOD), **settings: object
    ) -> tuple[Answer, list[events.Event], list[str]]:
        retriever = ScriptedRetriever(found)
        with events.record() as recorded:
            method = methods.create("self_rag", {"model": self.model, "retriever": retriever}, settings)
            answer = await method(question)
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
    assert not (await Reflecting(0.5).ask(threshold=0.5))[2]  # above it, not at it
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
    assert answer.rationale == "Kestrel. Kestrel."
    assert (await model.ask(segments=1))[2] == [QUESTION.text]


async def test_a_draft_ends_where_its_use_is_likelier_judged_than_another_segment() -> None:
    ways_on = {"[Utility:4]": 0.3, "[Utility:5]": 0.2, "[Retrieval]": 0.3, "[No Retrieval]": 0.1, CONTINUE: 0.05}
    answer, recorded, _ = await Reflecting(0.9, graded=ways_on).ask(segments=3)
    assert answer.rationale == "Kestrel."
    assert sum(isinstance(event, events.Ranked) for event in recorded) == 1  # finished, and so over
    longer = await Reflecting(0.9, graded=ways_on | {CONTINUE: 0.15}).ask(segments=3)
    assert longer[0].rationale == "Kestrel. Kestrel. Kestrel."


async def test_evidence_is_used_on_where_that_is_the_likeliest() -> None:
    model = Reflecting(0.9, graded={CONTINUE: 0.7, "[Retrieval]": 0.2, "[Utility:5]": 0.1})
    answer, recorded, queries = await model.ask(segments=2, beam=1)
    assert queries == [QUESTION.text]
    assert (answer.rationale, answer.evidence) == ("Kestrel. Kestrel.", (GOOD,))
    shown = "[Retrieval]<paragraph>Mira\nMira was born in Kestrel.</paragraph>[Relevant]Kestrel.[Fully supported]"
    assert model.model.prompts[-1].answer_so_far == f"{shown}{CONTINUE}Kestrel."
    assert answer.uncertainty == pytest.approx(-(0.5 + 0.9 + 0.85 + 0.5))  # the grounding is that of the passage
    kept = [event for event in recorded if isinstance(event, events.Decided) and event.kind == "evidence"]
    assert [event.verdict for event in kept] == ["keep"]
    assert kept[0].score == pytest.approx(0.7 / 0.9)
    assert (await model.ask(segments=2, beam=1, retrieve="always"))[2] == [QUESTION.text, f"{QUESTION.text} Kestrel."]


async def test_evidence_is_not_used_on_where_a_new_search_is_likelier() -> None:
    model = Reflecting(0.9, graded={CONTINUE: 0.3, "[Retrieval]": 0.5, "[No Retrieval]": 0.1, "[Utility:5]": 0.1})
    _, recorded, queries = await model.ask(segments=2, beam=1)
    assert queries == [QUESTION.text, f"{QUESTION.text} Kestrel."]
    assert not [event for event in recorded if isinstance(event, events.Decided) and event.kind == "evidence"]


def test_the_share_of_what_is_impossible() -> None:
    assert share([0.0, 0.0]) == 0
    assert share([0.3, 0.1]) == pytest.approx(0.75)


class Branching(Scripted):
    """Two passages, a and b; ``worth``, P([Relevant]) of what is read, makes the score of each segment by its path. Drafts
    that open with b go on for a second segment."""

    def __init__(self, worth: Mapping[str, float], goes_on: str) -> None:
        super().__init__(lambda prompt: Reply(f"{_path(prompt)}.", (0.0,)), scorer=self._chance)
        self.worth, self.goes_on = worth, goes_on

    def _chance(self, prompt: Prompt, token: str) -> float:
        path = _path(prompt)
        going_on = len(path) == 1 and path in self.goes_on
        chances = {
            "[Retrieval]": 0.9 if going_on or not path else 0.0,
            "[Utility:3]": 0.1,
            "[Relevant]": self.worth.get(path, 0.0),
            "[Irrelevant]": 1 - self.worth.get(path, 0.0),
        }
        return math.log(max(chances.get(token, 0.0), 1e-9))


def _path(prompt: Prompt) -> str:
    return "".join(re.findall("<paragraph>(.)</paragraph>", prompt.answer_so_far))


async def grow(model: Scripted, beam: int) -> Answer:
    retriever = ScriptedRetriever([Passage("a", "a"), Passage("b", "b")])
    resources = {"model": model, "retriever": retriever}
    return await methods.create("self_rag", resources, {"segments": 2, "beam": beam})(Question("q", "Which?"))


async def test_a_longer_draft_is_no_better_for_being_longer() -> None:
    answer = await grow(Branching({"a": 0.9, "b": 0.6, "ba": 0.7, "bb": 0.6}, goes_on="b"), beam=2)
    assert answer.rationale == "a."
    answer = await grow(Branching({"a": 0.6, "b": 0.5, "ba": 0.9, "bb": 0.6}, goes_on="b"), beam=2)
    assert answer.rationale == "b. ba."


async def test_every_segment_counts() -> None:
    model = Branching({"a": 0.9, "b": 0.5, "aa": 0.6, "ab": 0.5, "ba": 0.8, "bb": 0.1}, goes_on="ab")
    answer = await grow(model, beam=2)
    assert answer.rationale == "a. aa."  # though its last segment is worse than the other draft's
    assert answer.uncertainty == pytest.approx(-(1 + 0.5 + (0.9 + 0.6) / 2))


async def test_of_a_closed_set_equal_answers_stand_together() -> None:
    found = (GOOD, BAD, WORSE)
    assert (await Reflecting(0.9).ask(found=found))[0].text == "Kestrel"  # 2.5 against 1.5 and 1.5
    choice = Question("q", QUESTION.text, choices=("Vesk", "Kestrel"))
    answer, _, _ = await Reflecting(0.9, said={"Vesk": "(a)", "Kestrel": "Kestrel."}).ask(choice, found, beam=1)
    assert (answer.text, answer.evidence) == ("Vesk", (BAD,))
    assert answer.uncertainty == pytest.approx(-1.5)
    verdict = Question("q", "Was Mira born in Kestrel?")
    answer, _, _ = await Reflecting(0.9, said={"Vesk": "No, in Vesk.", "Kestrel": "Yes."}).ask(verdict, (*found, GOOD))
    assert answer.text == "Yes"
    answer, _, _ = await Reflecting(0.9, said={"Vesk": "No.", "Kestrel": "Yes."}).ask(verdict, found)
    assert answer.text == "No"


@pytest.mark.parametrize("nothing", ["", "Unknown.", "I don't know."])
@pytest.mark.parametrize("choices", [(), ("Vesk", "Kestrel")])
async def test_what_says_nothing_comes_last(nothing: str, choices: tuple[str, ...]) -> None:
    model = Reflecting(0.9, said={"Vesk": "Vesk.", "Kestrel": nothing})  # the better passage
    answer, _, _ = await model.ask(Question("q", QUESTION.text, choices=choices))
    assert (answer.text, answer.evidence) == ("Vesk", (BAD,))


async def test_models_without_the_tokens_are_told_so() -> None:
    class Ordinary(Scripted):
        async def score(self, prompt: Prompt, continuations: Any) -> tuple[ContinuationScore, ...]:
            scores = await super().score(prompt, continuations)
            return tuple(ContinuationScore(one.text, (*one.logprobs, -1.0)) for one in scores)  # in pieces

    model = Ordinary(lambda _: "So the answer is Ulm.", name="ordinary")
    resources: dict[str, Any] = {"model": model, "retriever": ScriptedRetriever([GOOD])}
    with refused(MissingCapability):
        await methods.create("self_rag", resources, {})(QUESTION)
    model.profile = Profile(added_tokens=frozenset({"<|im_start|>"}))
    with refused(MissingCapability):
        methods.create("self_rag", resources | {"model": Wrapper(model)}, {})  # before the first question
    methods.create("self_rag", resources, {"critic": "judgements"})
    model.profile = Profile(added_tokens=frozenset(TOKENS))
    methods.create("self_rag", resources, {})
    lab = Calibrated(model, {}, frozenset({"reason", "know", "useful"}))
    with refused(MissingCapability):
        methods.create("self_rag", resources | {"model": lab}, {"critic": "tokens"})


def judged(said: Mapping[str, Reply], helps: Mapping[str, float], knows: float = 0.5) -> Calibrated:
    """A model with a format of its own: what it says and whether that passage helps, by its id ("" for memory)."""

    def reply(prompt: Prompt) -> Reply:
        return said["".join(passage.id for passage in prompt.passages)]

    def scorer(prompt: Prompt, word: str) -> float:
        yes = knows if prompt.task.name == "know" else helps[prompt.passages[0].id]
        return math.log(yes if word == "Yes" else 1 - yes)

    return Calibrated(Scripted(reply, scorer=scorer), {"self_report": 0.3}, frozenset({"reason", "know", "useful"}))


SAID = {
    "": Reply("So the answer is Ulm."),
    "bad": Reply("So the answer is Vesk."),
    "worse": Reply("So the answer is vesk."),
    "good": Reply("So the answer is Kestrel."),
}
HELPS = {"bad": 0.2, "worse": 0.2, "good": 0.9}


async def judge(model: Calibrated, found: Sequence[Passage] = (BAD, GOOD), question: Question = QUESTION) -> Answer:
    return await methods.create("self_rag", {"model": model, "retriever": ScriptedRetriever(found)}, {})(question)


@pytest.mark.parametrize(("knows", "answer"), [(0.9, "Ulm"), (0.5, "Kestrel")])
async def test_by_judgements(knows: float, answer: str) -> None:
    assert (await judge(judged(SAID, HELPS, knows))).text == answer


async def test_judgements_count_beside_fluency() -> None:
    equal = {"bad": 0.5, "good": 0.5}
    assert (await judge(judged(SAID | {"good": Reply("So the answer is Kestrel.", (-0.01,))}, equal))).text == "Kestrel"
    assert (await judge(judged(SAID | {"bad": Reply("So the answer is Vesk.", (-0.01,))}, equal))).text == "Vesk"


async def test_by_judgements_equal_answers_of_a_closed_set_stand_together_and_what_says_nothing_comes_last() -> None:
    choice = Question("q", QUESTION.text, choices=("Vesk", "Kestrel"))
    assert (await judge(judged(SAID, HELPS), (GOOD, BAD, WORSE))).text == "Kestrel"
    assert (await judge(judged(SAID, HELPS), (GOOD, BAD, WORSE), choice)).text == "Vesk"
    for nothing in ("So the answer is unknown.", ""):
        assert (await judge(judged(SAID | {"good": Reply(nothing)}, HELPS))).text == "Vesk"


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
    torch = pytest.importorskip("torch")
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
        # What [Relevant] adds to a score is its probability as the network gives it.
        passage, question = Passage("p", "w3 is w4 .", "w3"), Question("q", "where is w3 ?")
        resources = {"model": model, "retriever": ScriptedRetriever([passage])}
        settings = {"max_tokens": 5, "retrieve": "always", "support": 0.0, "utility": 0.0}
        answers = [await methods.create("self_rag", resources, {**settings, "relevance": one})(question) for one in (0.0, 1.0)]
        read = backend._renderer.render(Prompt(SELF_RAG, question.text, answer_so_far=paragraph(passage)))
        with torch.no_grad():
            logits = network(torch.tensor([tokenizer(read)["input_ids"]])).logits[0, -1]
        relevant, irrelevant = tokenizer.convert_tokens_to_ids(["[Relevant]", "[Irrelevant]"])
        expected = torch.sigmoid(logits[relevant] - logits[irrelevant]).item()
        assert answers[0].uncertainty - answers[1].uncertainty == pytest.approx(expected, abs=1e-5)  # type: ignore[operator]
        longer = await methods.create("self_rag", resources, {**settings, "segments": 2})(question)
        assert longer.evidence == (passage,)
    finally:
        await model.aclose()
