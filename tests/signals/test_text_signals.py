"""Perplexity, entropies, energy, consistency and self-report: their numbers and how they measure."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.errors import InvalidSetting, UnknownName
from gnothi.models.sampling import draw
from gnothi.signals import registry
from gnothi.signals.base import Sampling
from gnothi.signals.kinds.consistency import disagreement
from gnothi.signals.kinds.energy import mean_energy
from gnothi.signals.kinds.least_likely import least_likely
from gnothi.signals.kinds.ln_entropy import length_normalized_entropy
from gnothi.signals.kinds.multi_perplexity import mean_perplexity
from gnothi.signals.kinds.perplexity import generation_perplexity, perplexity
from gnothi.signals.kinds.self_report import probability_of_yes
from gnothi.signals.replies import normalized, reply_says_yes, says_nothing
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Capabilities, Decoding, Generation, Passage, Prompt, Task, Token
from tests.messages import refused

INF = float("inf")
PROMPT = Prompt(Task("answer"), "Where was Mira Tolven born?", (Passage("p", "Some text"),), answer_so_far="She was")
BY_THEMSELVES = [name for name in registry.names() if not (registry.reads_probe(name) or registry.counts(name))]
logprobs = st.lists(st.floats(-50, 0), min_size=1, max_size=30)


@given(logprobs)
def test_perplexity_is_the_inverse_geometric_mean_of_the_probabilities(values: list[float]) -> None:
    product = math.prod(math.exp(value) ** (1 / len(values)) for value in values)
    assert perplexity(values) == pytest.approx(1 / product, rel=1e-9)
    assert perplexity(values) >= 1 - 1e-12


def test_perplexity_of_nothing_and_of_the_impossible() -> None:
    assert perplexity([]) == INF
    assert perplexity([-1e9]) == INF
    assert perplexity([-INF]) == INF
    assert generation_perplexity(Generation("text without tokens")) == INF
    assert generation_perplexity(Generation("  ")) == INF


@given(logprobs)
def test_the_weakest_token_counts_alone(values: list[float]) -> None:
    reply = Generation("text", tuple(Token("t", value) for value in values))
    weakest = max(1 - math.exp(value) for value in values)
    assert least_likely(reply) == pytest.approx(weakest)
    assert 0 <= least_likely(reply) <= 1


def test_no_token_is_as_weak_as_can_be() -> None:
    assert least_likely(Generation("text without tokens")) == INF
    assert least_likely(Generation(" ", (Token(" ", 0.0),))) == INF


@settings(max_examples=settings().max_examples // 3)
@given(st.lists(logprobs, min_size=1, max_size=20))
def test_means_over_samples(samples: list[list[float]]) -> None:
    singles = [perplexity(sample) for sample in samples]
    assert mean_perplexity(samples) == pytest.approx(sum(singles) / len(singles))
    assert length_normalized_entropy(samples) == pytest.approx(sum(map(math.log, singles)) / len(singles), abs=1e-9)
    assert length_normalized_entropy([*samples, []]) == length_normalized_entropy(samples)


def test_no_samples_are_uncertain() -> None:
    assert mean_perplexity([[], []]) == INF
    assert length_normalized_entropy([]) == INF
    assert mean_energy([]) == INF
    assert disagreement([]) == INF


def test_length_normalized_entropy_estimates_the_entropy_of_one_token_texts() -> None:
    # One draw per outcome of a fair eight-sided die: the estimate is the entropy itself, ln 8.
    assert length_normalized_entropy([[math.log(1 / 8)]] * 8) == pytest.approx(math.log(8))


def test_a_higher_logsumexp_is_less_uncertain() -> None:
    assert mean_energy([10.0, 20.0]) == -15.0
    assert mean_energy([5.0]) > mean_energy([6.0])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Kestrel", "the kestrel.", "KESTREL", "Orvel"], 0.25),
        (["a", "b", "c", "d"], 0.75),
        (["unknown", "I don't know.", "No, I don’t know", ""], 1.0),
        (["Kestrel", "unknown"], 0.5),
        (["The", "the"], 0.0),
        (["São Paulo", "Sa\u0303o Paulo"], 0.0),
        (["東京", "東京。"], 0.0),
    ],
)
def test_disagreement(texts: list[str], expected: float) -> None:
    assert disagreement(texts) == pytest.approx(expected)


@given(st.lists(st.text(max_size=12), min_size=1, max_size=12))
def test_disagreement_is_a_share_and_blind_to_order(texts: list[str]) -> None:
    value = disagreement(texts)
    assert 0 <= value <= 1
    assert disagreement(texts[::-1]) == value
    assert disagreement([text.upper() for text in map(normalized, texts)]) <= value + 1e-12


@given(st.text(max_size=40))
def test_normalized_is_idempotent(text: str) -> None:
    assert normalized(normalized(text)) == normalized(text)


@pytest.mark.parametrize(
    ("reply", "nothing"),
    [
        ("", True),
        (" \n", True),
        ("Unknown.", True),
        ("No, I don’t know.", True),
        ("So the answer is unknown.", True),
        ("She was born somewhere. So the answer is: unknown", True),
        ("The Unknown Soldier", False),
        ("The answer is unknown to most. So the answer is Kestrel.", False),
        ("So the answer is", False),
        ("no", False),
    ],
)
def test_says_nothing(reply: str, nothing: bool) -> None:
    assert says_nothing(reply) is nothing


@given(st.floats(-100, 0), st.floats(-100, 0))
def test_probability_of_yes_against_its_definition(yes: float, no: float) -> None:
    assert probability_of_yes(yes, no) == pytest.approx(math.exp(yes) / (math.exp(yes) + math.exp(no)))
    assert probability_of_yes(yes, no) + probability_of_yes(no, yes) == pytest.approx(1)


def test_probability_of_yes_at_the_limits() -> None:
    assert probability_of_yes(-INF, -1) == 0
    assert probability_of_yes(-1, -INF) == 1
    assert probability_of_yes(-INF, -INF) == 0.5
    assert probability_of_yes(-1e5, 0) == 0


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        *[(reply, True) for reply in ("Yes, I know.", " **Yes**", "yes", "Sure! Yes", "The answer is yes.", "Yes - no doubt")],
        *[(reply, False) for reply in ("No", "", "Yesterday", "No, yes is wrong.", "I can't say yes", "Yes or no?", "Sure!")],
    ],
)
def test_reply_says_yes(reply: str, says: bool) -> None:
    assert reply_says_yes(reply) is says


def script(sure: bool) -> Scripted:
    def reply(prompt: Prompt) -> Reply | list[Reply]:
        if prompt.task.name == "know":
            return Reply("Yes, I know." if sure else "No, I don't know.")
        if prompt.task.name == "confidence":
            return Reply("95 %" if sure else "20 %")
        if sure:
            return Reply("Kestrel", (-0.01,))
        return [Reply(city, (-2.0,), doubt=1.0) for city in ("Kestrel", "Orvel", "Dunmere", "Heskar")]

    return Scripted(reply)


@pytest.mark.parametrize("name", BY_THEMSELVES)
async def test_every_signal_is_higher_for_a_model_that_does_not_know(name: str) -> None:
    signal = registry.create(name)
    low = await signal.measure(script(sure=True), PROMPT, Decoding())
    high = await signal.measure(script(sure=False), PROMPT, Decoding())
    assert low.uncertainty < high.uncertainty
    assert low.greedy.text == high.greedy.text == "Kestrel"
    if signal.default_threshold is not None:
        assert low.uncertainty <= signal.default_threshold < high.uncertainty


@pytest.mark.parametrize("name", BY_THEMSELVES)
async def test_nothing_said_is_never_more_certain_than_something(name: str) -> None:
    signal = registry.create(name)
    if name in ("self_report", "prompt"):
        pytest.skip("asks about the question, not about the reply")
    blank = await signal.measure(Scripted(lambda _: ""), PROMPT, Decoding())
    assert blank.uncertainty in (INF, 1.0)


@pytest.mark.parametrize("name", BY_THEMSELVES)
async def test_every_signal_asks_for_no_more_than_it_says(name: str) -> None:
    signal = registry.create(name)

    class Limited(Scripted):
        async def score(self, *_: object) -> object:  # type: ignore[override]
            raise AssertionError("scored without need")

    kind = Scripted if signal.needs.scoring else Limited
    measured = await signal.measure(
        kind(lambda prompt: "70" if prompt.task.name == "confidence" else "Yes", capabilities=signal.needs), PROMPT, Decoding()
    )
    assert math.isfinite(measured.uncertainty)


async def test_self_report_asks_about_the_question_with_its_passages() -> None:
    model = script(sure=True)
    await registry.create("self_report").measure(model, PROMPT, Decoding())
    asked = next(prompt for prompt in model.prompts if prompt.task.name == "know")
    assert (asked.question, asked.passages, asked.answer_so_far) == (PROMPT.question, PROMPT.passages, "")


def test_registry() -> None:
    with refused(UnknownName):
        registry.create("consistancy")
    assert registry.within(Capabilities()) == ("consistency", "prompt", "semantic_entropy", "verbalised")
    assert registry.within(Capabilities(True, True, True, True)) == tuple(BY_THEMSELVES)
    assert {registry.find(name).name for name in registry.names()} == set(registry.names())


@pytest.mark.parametrize("settings", [{"samples": 0}, {"temperature": 0.0}])
def test_sampling_refuses_what_makes_no_sense(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidSetting):
        Sampling(**settings)  # type: ignore[arg-type]


def test_ln_entropy_is_that_of_the_model_only_where_samples_are_not_cut() -> None:
    """Malinin and Gales (2020): an expectation under p itself. Cut samples leave out what is unlikely: it is lower."""
    logits = np.array([[3.0, 2.0, 1.0, 0.5, 0.0, -1.0]])
    p = np.exp(logits[0]) / np.exp(logits[0]).sum()
    entropy = -float(p @ np.log(p))
    uniform = (np.arange(20_000) + 0.5) / 20_000

    def estimate(top_k: int, top_p: float) -> float:
        source = np.zeros(len(uniform), dtype=np.int64)
        ids = draw(logits, np.ones(1), np.array([top_k]), np.array([top_p]), uniform, source)
        return length_normalized_entropy([[float(np.log(p[one]))] for one in ids])

    assert estimate(0, 1.0) == pytest.approx(entropy, rel=1e-3)
    assert estimate(2, 1.0) < estimate(0, 0.9) < 0.9 * entropy


def test_samples_can_be_drawn_from_the_model_as_it_is() -> None:
    uncut = Sampling(top_k=0, top_p=1.0).decoding(Decoding(max_tokens=5, stop=("x",)))
    assert uncut == Decoding(max_tokens=5, stop=("x",), temperature=1.0, top_k=0, top_p=1.0)
