from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from gnothi.errors import InvalidSetting
from gnothi.models.sampling import BLOCK, Floats, check, draw, logsumexp, threshold, uniforms
from gnothi.types import Decoding
from tests.messages import refused

Doubles = NDArray[np.float64]
seeds = st.integers(0, 2**32 - 1)


def logits_of(seed: int, rows: int, vocabulary: int, spread: float = 2.0) -> Floats:
    values: Floats = (np.random.default_rng(seed).standard_normal((rows, vocabulary)) * spread).astype(np.float32)
    return values


def rows_of(rows: int, temperature: float, top_k: int, top_p: float) -> tuple[Doubles, NDArray[np.int64], Doubles]:
    return np.full(rows, temperature), np.full(rows, top_k, np.int64), np.full(rows, top_p)


def warped(logits: torch.Tensor, temperature: float, top_k: int, top_p: float) -> torch.Tensor:
    """What the library's own sampler leaves of the logits."""
    warpers: list[Any] = [TemperatureLogitsWarper(temperature)]
    warpers += [TopKLogitsWarper(top_k)] if top_k else []
    warpers += [TopPLogitsWarper(top_p)] if top_p < 1 else []
    for warper in warpers:
        logits = warper(None, logits)
    return logits


@given(seeds, st.integers(2, 300), st.sampled_from([0.3, 1.0, 1.7]), st.integers(0, 60), st.sampled_from([0.05, 0.5, 0.9, 1.0]))
def test_cuts_equal_the_librarys_warpers(seed: int, vocabulary: int, temperature: float, top_k: int, top_p: float) -> None:
    logits = logits_of(seed, 3, vocabulary)
    scaled = logits / temperature
    _, ks, ps = rows_of(3, temperature, top_k, top_p)
    kept = scaled >= threshold(scaled, ks, ps)[:, None]
    expected = warped(torch.from_numpy(logits), temperature, top_k, top_p)
    assert (kept == torch.isfinite(expected).numpy()).all()


def test_draws_follow_the_cut_distribution() -> None:
    logits = np.repeat(logits_of(3, 1, 12), 40_000, axis=0)
    temperature, top_k, top_p = rows_of(len(logits), 0.7, 8, 0.9)
    ids = draw(logits, temperature, top_k, top_p, np.random.default_rng(0).random(len(logits)))
    expected = warped(torch.from_numpy(logits[:1]), 0.7, 8, 0.9).softmax(-1)[0].numpy()
    np.testing.assert_allclose(np.bincount(ids, minlength=12) / len(ids), expected, atol=0.01)


@given(seeds, st.integers(1, 6))
def test_a_row_does_not_see_its_neighbours(seed: int, rows: int) -> None:
    generator = np.random.default_rng(seed)
    logits = logits_of(seed, rows, 80)
    temperature = generator.choice([0.5, 1.0, 2.0], rows)
    top_k = generator.choice(np.array([0, 1, 5, 50, 500]), rows)
    top_p = generator.choice([0.1, 0.9, 1.0], rows)
    uniform = generator.random(rows)
    together = draw(logits, temperature, top_k, top_p, uniform)
    for row in range(rows):
        only = slice(row, row + 1)
        assert draw(logits[only], temperature[only], top_k[only], top_p[only], uniform[only])[0] == together[row]


def test_nearly_equal_tokens_that_swap_places_do_not_change_the_draw() -> None:
    logits = np.array([[0.0, 0.0, 0.0, 0.0, -50.0]])
    swapped = logits + np.array([[0.0, 0.0, 1e-7, 0.0, 0.0]])
    for uniform in (np.arange(40) + 0.5) / 40:
        draws = [draw(values, *rows_of(1, 1.0, 4, 0.999), np.array([uniform])) for values in (logits, swapped)]
        assert draws[0] == draws[1] == uniform // 0.25


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1, 0)])
def test_the_ends_of_the_unit_interval_give_tokens_that_survive(uniform: float) -> None:
    logits = np.array([[-np.inf, 1.0, 2.0, -np.inf]])
    (token,) = draw(logits, *rows_of(1, 1.0, 0, 1.0), np.array([uniform]))
    assert token == (1 if uniform == 0 else 2)


@given(seeds, st.integers(1, 40))
def test_what_draws_from_the_same_row_draws_as_if_alone(seed: int, numbers: int) -> None:
    generator = np.random.default_rng(seed)
    logits = logits_of(seed, 4, 60)
    settings = rows_of(4, 0.9, 20, 0.8)
    source = generator.integers(0, 4, numbers)
    uniform = generator.random(numbers)
    repeated = draw(logits[source], *rows_of(numbers, 0.9, 20, 0.8), uniform)
    assert (draw(logits, *settings, uniform, source) == repeated).all()


def test_streams() -> None:
    assert uniforms(2**63 - 1, 7, 3).shape == (7, BLOCK)
    assert (uniforms(5, 20, 1)[:10] == uniforms(5, 10, 1)).all()
    assert not (uniforms(5, 10, 0) == uniforms(5, 10, 1)).any()
    assert not (uniforms(5, 10, 0) == uniforms(6, 10, 0)).any()
    many = uniforms(1, 700, 0)
    assert len(np.unique(many)) == many.size
    assert abs(many.mean() - 0.5) < 0.01
    assert ((many >= 0) & (many < 1)).all()


@given(seeds, st.floats(0.1, 50))
def test_logsumexp(seed: int, spread: float) -> None:
    logits = logits_of(seed, 4, 30, spread)
    np.testing.assert_allclose(logsumexp(logits), special.logsumexp(logits.astype(np.float64), axis=1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(max_tokens=0),
        Decoding(temperature=-1.0),
        Decoding(temperature=float("nan")),
        Decoding(top_k=-1),
        Decoding(top_p=0.0),
        Decoding(top_p=1.5),
        Decoding(stop=("",)),
    ],
)
def test_settings_that_mean_nothing_are_refused(decoding: Decoding) -> None:
    with refused(InvalidSetting):
        check(decoding)
