"""U against independent references: the Gram matrix of the definition with its determinant by elimination, in float64 and in
exact rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.signals.kinds.gram import Gram, gram_uncertainty
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Capabilities, Decoding, Generation, Prompt, Samples, StateSpec, Task
from tests.messages import refused

PROMPT = Prompt(Task("reason"), "Where was Mira Tolven born?")


def by_definition(states: NDArray[np.float32], alpha: float) -> float:
    z = states.astype(np.float64)
    k, d = z.shape
    centring = np.eye(d) - np.ones((d, d)) / d
    sign, logdet = np.linalg.slogdet(z @ centring @ z.T + alpha * np.eye(k))
    assert sign == 1
    return float(logdet / k)


def exactly(states: NDArray[np.float32], alpha: Fraction) -> float:
    """The determinant in rational arithmetic: no rounding before the logarithm."""
    k, d = states.shape
    rows = [[Fraction(float(value)) for value in row] for row in states]
    rows = [[value - sum(row, Fraction(0)) / d for value in row] for row in rows]
    matrix = [[sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0)) for y in rows] for x in rows]
    for i in range(k):
        matrix[i][i] += alpha
    determinant = Fraction(1)
    for i in range(k):  # positive definite: every pivot is positive
        determinant *= matrix[i][i]
        for j in range(i + 1, k):
            factor = matrix[j][i] / matrix[i][i]
            matrix[j] = [a - factor * b for a, b in zip(matrix[j], matrix[i], strict=True)]
    return float((math.log(determinant.numerator) - math.log(determinant.denominator)) / k)


@st.composite
def random_states(draw: st.DrawFn, max_rows: int = 20, max_features: int = 64) -> NDArray[np.float32]:
    rows, features = draw(st.integers(1, max_rows)), draw(st.integers(1, max_features))
    scale = 10.0 ** draw(st.integers(-3, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    states = rng.standard_normal((rows, features)) * scale
    if draw(st.booleans()):  # some rows equal
        states[rows // 2 :] = states[0]
    return states.astype(np.float32)


@given(random_states())
def test_equals_the_definition_in_float64(states: NDArray[np.float32]) -> None:
    assert gram_uncertainty(states) == pytest.approx(by_definition(states, 1e-3), rel=1e-5)


@given(random_states(max_rows=5, max_features=6))
def test_equals_exact_arithmetic(states: NDArray[np.float32]) -> None:
    alpha = 1e-3
    assert gram_uncertainty(states, alpha) == pytest.approx(exactly(states, Fraction(alpha)), rel=1e-9, abs=1e-12)


@given(arrays(np.float32, (3, 4), elements=st.floats(-1e4, 1e4, width=32)))
def test_degenerate_and_extreme_values_equal_exact_arithmetic(states: NDArray[np.float32]) -> None:
    assert gram_uncertainty(states, 2.0**-10) == pytest.approx(exactly(states, Fraction(1, 1024)), rel=1e-7, abs=1e-7)


def test_the_floor_is_ln_alpha() -> None:
    assert gram_uncertainty(np.zeros((20, 64), np.float32)) == pytest.approx(math.log(1e-3), rel=1e-12)
    assert gram_uncertainty(np.full((20, 64), 7.5, np.float32)) == pytest.approx(-6.907755, rel=1e-6)


def test_equal_rows_have_one_direction_only() -> None:
    row = np.random.default_rng(1).standard_normal(512).astype(np.float32)
    centred = row.astype(np.float64) - row.astype(np.float64).mean()
    expected = (math.log(20 * centred @ centred + 1e-3) + 19 * math.log(1e-3)) / 20
    assert gram_uncertainty(np.tile(row, (20, 1))) == pytest.approx(expected, rel=1e-9)


@given(random_states(), st.integers(0, 2**32))
def test_never_below_the_floor_and_blind_to_order_and_to_a_shift_of_all_features(
    states: NDArray[np.float32], seed: int
) -> None:
    value = gram_uncertainty(states)
    assert value >= math.log(1e-3) - 1e-9
    shuffled = np.random.default_rng(seed).permutation(states)
    assert gram_uncertainty(shuffled) == pytest.approx(value, rel=1e-9, abs=1e-9)
    shifted = states.astype(np.float64) + 0.5
    assert gram_uncertainty(shifted) == pytest.approx(value, rel=1e-6, abs=1e-6)


def test_spreading_the_states_raises_it() -> None:
    rng = np.random.default_rng(0)
    centre, noise = rng.standard_normal(64), rng.standard_normal((20, 64))
    values = [gram_uncertainty((centre + spread * noise).astype(np.float32)) for spread in (0, 0.01, 0.1, 1, 10)]
    assert values == sorted(values)
    assert len(set(values)) == 5


def test_no_states_are_uncertain_and_bad_ones_an_error() -> None:
    assert gram_uncertainty(np.empty((0, 8), np.float32)) == float("inf")
    with refused(InvalidInput):
        gram_uncertainty(np.array([[1.0, np.nan]], np.float32))
    with refused(InvalidInput):
        gram_uncertainty(np.zeros(8, np.float32))


async def test_signal_rises_with_doubt() -> None:
    sure = await Gram().measure(Scripted(lambda _: Reply("In Kestrel", doubt=0.0)), PROMPT, Decoding())
    unsure = await Gram().measure(Scripted(lambda _: Reply("In Kestrel", doubt=1.0)), PROMPT, Decoding())
    assert sure.uncertainty < -6 < unsure.uncertainty
    assert sure.greedy.text == "In Kestrel"


class Recorder(Scripted):
    asked: tuple[int, Decoding, Sequence[StateSpec]] | None = None

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        self.asked = (n, decoding, hidden)
        return await super().sample(prompt, n, decoding, hidden)


async def test_samples_as_the_paper_says() -> None:
    model = Recorder(lambda _: "In Kestrel")
    await Gram().measure(model, PROMPT, Decoding(max_tokens=7, stop=(". ",)))
    assert model.asked == (
        20,
        Decoding(max_tokens=7, temperature=1.0, top_k=50, top_p=0.9, stop=(". ",)),
        (StateSpec(None, "ffn", "fed_eos"),),
    )


async def test_blank_samples_are_dropped() -> None:
    mixed = await Gram().measure(Scripted(lambda _: ["In Kestrel", " ", ""]), PROMPT, Decoding())
    samples = await Scripted(lambda _: ["In Kestrel", " ", ""]).sample(PROMPT, 20, Decoding(), [StateSpec()])
    assert mixed.uncertainty == pytest.approx(gram_uncertainty(samples.states[0][::3]))


async def test_all_blank_is_as_uncertain_as_can_be() -> None:
    measured = await Gram().measure(Scripted(lambda _: " "), PROMPT, Decoding())
    assert measured.uncertainty == float("inf")
    assert measured.score is None


async def test_a_model_that_gives_no_states_is_told() -> None:
    class Stateless(Scripted):
        async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
            del prompt, decoding, hidden
            return Samples((Generation("a"),) * n)

    with refused(InvalidInput):
        await Gram().measure(Stateless(lambda _: "a"), PROMPT, Decoding())
    assert Gram.needs == Capabilities(hidden_states=True)


def test_alpha_must_be_positive() -> None:
    with refused(InvalidSetting):
        Gram(alpha=0)
