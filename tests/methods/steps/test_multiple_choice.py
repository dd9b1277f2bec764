"""Multiple choice by likelihood: arithmetic, ties and blanks, and a real model held against plain ``transformers``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import events
from gnothi.errors import InvalidInput
from gnothi.methods.steps.multiple_choice import Chosen, WithoutChoices, choose, scores_of, softmax
from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.testing.model import Scripted
from gnothi.types import ContinuationScore, Decoding, Passage, Prompt, Question, StateSpec
from tests.messages import refused

QUESTION = Question("q", "Which of them?", choices=("red", "green paint", "blue"))


def scored(*logprobs: Sequence[float]) -> list[ContinuationScore]:
    return [ContinuationScore(str(number), tuple(one)) for number, one in enumerate(logprobs)]


def test_three_ways_to_make_one_number_of_several_tokens() -> None:
    found = scored([-2.0], [-1.5, -1.5])
    assert scores_of(["abcd", "ab cdefghi"], found, "sum") == [-2.0, -3.0]
    assert scores_of(["abcd", "ab cdefghi"], found, "tokens") == [-2.0, -1.5]
    assert scores_of(["abcd", "ab cdefghi"], found, "characters") == [-0.5, -0.3]


def test_a_choice_without_tokens_cannot_be_said() -> None:
    assert scores_of(["", "x"], scored([], [-9.0]), "tokens") == [-math.inf, -9.0]
    assert scores_of(["", "x"], scored([], [-9.0]), "characters") == [-math.inf, -9.0]


@given(st.lists(st.floats(-1e4, 0) | st.just(-math.inf), min_size=1, max_size=12))
def test_softmax_is_a_distribution_in_the_order_of_the_scores(scores: list[float]) -> None:
    probabilities = softmax(scores)
    assert sum(probabilities) == pytest.approx(1)
    assert all(0 <= one <= 1 for one in probabilities)
    for one, other, low, high in zip(scores, scores[1:], probabilities, probabilities[1:], strict=False):
        assert low <= high if one <= other else low >= high
    assert 0 <= Chosen("", probabilities).uncertainty <= 1 - 1 / len(scores) + 1e-12


@given(st.lists(st.floats(-50, 0), min_size=2, max_size=6), st.floats(-50, 0))
def test_softmax_knows_differences_only(scores: list[float], shift: float) -> None:
    assert softmax([score + shift for score in scores]) == pytest.approx(softmax(scores))


async def test_all_choices_are_scored_in_one_request_and_ranked() -> None:
    model = Scripted(lambda _: "", scorer=lambda _, text: {"red": -3.0, "green paint": -4.0, "blue": -5.0}[text])
    with events.record() as recorded:
        chosen = await choose(model, ask(ANSWER, QUESTION), "tokens")
    assert chosen.text == "green paint"  # -2 per token
    assert chosen.probabilities == pytest.approx(softmax([-3, -2, -5]))
    assert len(model.prompts) == 1
    (ranked,) = recorded
    assert isinstance(ranked, events.Ranked)
    assert (ranked.kind, [label for label, _, _ in ranked.candidates]) == ("choice", ["B", "A", "C"])
    assert [score for _, _, score in ranked.candidates] == pytest.approx(
        [-math.log(chosen.probabilities[place]) for place in (1, 0, 2)]
    )


async def test_the_first_of_equal_ones_is_chosen() -> None:
    assert (await choose(Scripted(lambda _: "", scorer=lambda *_: -1.0), ask(ANSWER, QUESTION), "sum")).text == "red"


async def test_labels_are_shown_and_compared() -> None:
    asked: list[tuple[Prompt, str]] = []

    def scorer(prompt: Prompt, text: str) -> float:
        asked.append((prompt, text))
        return -1.0 if text == "C" else -2.0

    assert (await choose(Scripted(lambda _: "", scorer=scorer), ask(ANSWER, QUESTION), "label")).text == "blue"
    assert [text for _, text in asked] == ["A", "B", "C"]
    assert asked[0][0].choices == ("A. red", "B. green paint", "C. blue")


async def test_more_choices_than_letters() -> None:
    many = Question("q", "Which?", choices=tuple(map(str, range(27))))
    with refused(InvalidInput):
        await choose(Scripted(lambda _: ""), ask(ANSWER, many), "label")


async def test_equals_plain_transformers() -> None:
    """acc and acc_norm as lm-evaluation-harness defines them: the sum of the continuation's log-probabilities, and that by the
    characters of the choice; computed here from the whole sequence's logits, without this project's scoring."""
    torch = pytest.importorskip("torch")
    from gnothi.models import ModelSettings
    from gnothi.models.batched import Batched
    from gnothi.models.rendering import Tagged
    from gnothi.models.transformers import TransformersBackend
    from tests.models.tiny import build_model, build_tokenizer

    network, tokenizer = build_model("llama"), build_tokenizer()
    backend = TransformersBackend(network, tokenizer, Tagged(), name="tiny", settings=ModelSettings())
    model = Batched(backend)
    question = Question("q", "where is the w1 of w4 ?", choices=("w1", "w2 w3 w5", "w9 w4", "w7"))
    prompt = ask(ANSWER, question, [Passage("p", "w1 is the city of w2 .", "w1")])
    before = tokenizer(Tagged().render(prompt), return_tensors="pt")["input_ids"]
    sums, lengths = [], []
    for choice in question.choices:
        after = tokenizer(choice, add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            logits = network(torch.cat([before, after], 1)).logits[0, before.shape[1] - 1 : -1]
        sums.append(float(torch.log_softmax(logits.double(), -1).gather(1, after[0][:, None]).sum()))
        lengths.append(after.shape[1])
    try:
        for by, divisors in (("sum", [1] * 4), ("tokens", lengths), ("characters", [len(one) for one in question.choices])):
            expected = [total / divisor for total, divisor in zip(sums, divisors, strict=True)]
            chosen = await choose(model, prompt, by)  # type: ignore[arg-type]
            assert chosen.text == question.choices[expected.index(max(expected))]
            assert chosen.probabilities == pytest.approx(softmax(expected), abs=1e-5)
    finally:
        await model.aclose()


async def test_who_never_sees_choices_never_sees_them() -> None:
    inner = Scripted(lambda _: "red")
    model = WithoutChoices(inner)
    prompt = ask(ANSWER, QUESTION)
    await model.generate(prompt, Decoding())
    await model.sample(prompt, 2, Decoding(temperature=1.0))
    await model.states(prompt, [StateSpec(None, "residual", "predicting")])
    await model.score(prompt, QUESTION.choices)
    await model.attend(prompt, QUESTION.choices[0])
    assert prompt.choices == QUESTION.choices
    assert [asked.choices for asked in inner.prompts] == [()] * 5
