"""Signals that ask about what was said: entropy of meanings, and confidence in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import ModelUnavailable
from gnothi.signals.base import Sampling
from gnothi.signals.entailment import CrossEncoderEntailment
from gnothi.signals.kinds.semantic_entropy import SemanticEntropy, semantic_entropy
from gnothi.signals.kinds.verbalised import CONFIDENCE, Verbalised, stated
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Capabilities, Decoding, Prompt, Task
from tests.messages import refused

PROMPT = Prompt(Task("answer"), "Who wrote it?")


@pytest.mark.parametrize(
    ("groups", "logprobs", "discrete", "weighted"),
    [
        ([0, 0, 1, 2, 0], [-0.1, -0.2, -1.5, -2.0, -0.3], 0.950270539233235, 0.46479167060099486),
        ([0, 1, 2, 3], [-1.0, -1.0, -1.0, -1.0], 1.3862943611198906, 1.3862943611198906),
        ([0, 0, 0], [-0.5, -0.6, -0.7], 0.0, 0.0),
        ([0, 1, 0, 1, 1, 2, 0, 3], [-0.05, -0.9, -0.1, -1.2, -0.8, -2.5, -0.07, -3.1], 1.2554823251787535, 0.7454004556921707),
    ],
)
def test_the_numbers_of_lm_polygraph(groups: list[int], logprobs: list[float], discrete: float, weighted: float) -> None:
    """Its ``SemanticEntropy`` (0.7.0), by frequency; and by likelihood, estimated directly of the groups' normalised sums."""
    assert semantic_entropy(groups) == pytest.approx(discrete, abs=1e-9)
    assert semantic_entropy(groups, logprobs) == pytest.approx(weighted, abs=1e-9)


GROUPS = st.lists(st.tuples(st.integers(0, 5), st.floats(-30, 0)), min_size=1, max_size=20)


@given(GROUPS)
def test_entropy_against_its_definition(drawn: list[tuple[int, float]]) -> None:
    groups, logprobs = [one for one, _ in drawn], [one for _, one in drawn]
    total = sum(math.exp(one) for one in logprobs)
    shares = [sum(math.exp(p) for g, p in drawn if g == group) / total for group in set(groups)]
    assert semantic_entropy(groups, logprobs) == pytest.approx(-sum(p * math.log(p) for p in shares if p), abs=1e-6)
    assert 0 <= semantic_entropy(groups) <= math.log(len(set(groups))) + 1e-9
    assert semantic_entropy(groups[::-1], logprobs[::-1]) == pytest.approx(semantic_entropy(groups, logprobs), abs=1e-9)


def speaker(samples: Sequence[str], capabilities: Capabilities = Capabilities()) -> Scripted:  # noqa: B008
    """Answers with those, and takes answers with the same first letter for the same."""

    def reply(prompt: Prompt) -> list[Reply]:
        if prompt.choices:
            one, other = prompt.choices
            return [Reply("Yes" if one[0] == other[0] else "No")]
        return [Reply(text, (-1.0 - place,), doubt=1.0) for place, text in enumerate(samples)]

    return Scripted(reply, capabilities=capabilities)


async def test_samples_of_one_meaning_are_one_group() -> None:
    model = speaker(["Anna", "Anna B.", "anna", "Bo"])
    found = await SemanticEntropy(Sampling(4)).measure(model, PROMPT, Decoding())
    assert found.uncertainty == pytest.approx(semantic_entropy([0, 0, 0, 1]))
    asked = [prompt.choices for prompt in model.prompts if prompt.choices]
    assert asked == [("Anna", "Anna B."), ("Anna B.", "Anna"), ("Anna", "Bo")]


async def test_likelihoods_count_where_the_model_gives_them() -> None:
    model = speaker(["Anna", "Bo"], Capabilities(logprobs=True))
    found = await SemanticEntropy(Sampling(2)).measure(model, PROMPT, Decoding())
    assert found.uncertainty == pytest.approx(semantic_entropy([0, 1], [-1.0, -2.0]))


class Logits:
    """An NLI model of three labels: a text entails what it contains."""

    def predict(self, pairs: Sequence[tuple[str, str]], show_progress_bar: bool) -> np.ndarray:
        assert not show_progress_bar
        return np.array([[0.0, 2.0, 1.0] if b.removeprefix("Who wrote it? ") in a else [1.0, 0.0, 0.5] for a, b in pairs])


async def test_entailment_has_to_go_both_ways() -> None:
    nli = CrossEncoderEntailment(Logits(), ["contradiction", "Entailment", "neutral"], "nli")
    assert await nli.entail([("Anna B.", "Anna"), ("Anna", "Anna B.")]) == [True, False]
    model = speaker(["Anna B", "Anna", "Cora"])
    found = await SemanticEntropy(Sampling(3), nli).measure(model, PROMPT, Decoding())
    assert found.uncertainty == pytest.approx(math.log(3))
    assert not any(prompt.choices for prompt in model.prompts)
    with refused(ModelUnavailable):
        CrossEncoderEntailment(Logits(), ["LABEL_0"], "other")


@pytest.mark.parametrize(
    ("reply", "probability"),
    [
        ("85 %", 0.85), ("85%.", 0.85), ("85", 0.85), ("Probability: 0.85", 0.85), (".85", 0.85), ("0,85", 0.85),
        ("85/100", 0.85), ("85 out of 100", 0.85), ("I am 90 percent sure, after 2 readings", 0.9), ("1.0", 1.0), ("1", 0.01),
        ("100", 1.0), ("0", 0.0), ("0.5%", 0.005), ("99.5 %", 0.995), ("50%, so 50 %", 0.5),
        ("", None), ("Very likely", None), ("120 %", None), ("-5", None), ("70-80 %", None), ("70 % or 80 %", None),
        ("between 3 and 4", None), ("Q85", None), ("1,000", None)
    ]
)  # fmt: skip
def test_stated_probabilities(reply: str, probability: float | None) -> None:
    assert stated(reply) == (None if probability is None else pytest.approx(probability))


@given(st.text(max_size=40))
def test_whatever_is_said_is_a_share_or_nothing(reply: str) -> None:
    found = stated(reply)
    assert found is None or 0 <= found <= 1


@pytest.mark.parametrize(("reply", "expected"), [("80 %", 0.2), ("I cannot say", math.inf)])
async def test_confidence_in_words(reply: str, expected: float) -> None:
    model = Scripted(lambda prompt: reply if prompt.task == CONFIDENCE else "Anna", capabilities=Capabilities())
    found = await Verbalised().measure(model, PROMPT, Decoding())
    assert found.uncertainty == pytest.approx(expected)
    assert "Anna" in model.prompts[-1].question
