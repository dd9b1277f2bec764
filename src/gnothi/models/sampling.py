"""Drawing next tokens for many rows at once, as pure functions of arrays.

A row's draws depend on its own logits and its own stream of uniform numbers, never on its neighbours. The inverse of the
cumulative distribution is taken in the order of token ids, not of probabilities: two tokens of nearly equal probability may
swap places in a sort when the batch around them changes the last bit of a logit, their ids do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import InvalidSetting, ModelUnavailable
from gnothi.types import Decoding, StateSpec

Floats = NDArray[np.floating]


def check(decoding: Decoding) -> None:
    """Raise InvalidSetting for settings that mean nothing."""
    problems = {
        "max_tokens": (decoding.max_tokens, decoding.max_tokens >= 1, "at least 1"),
        "temperature": (decoding.temperature, 0 <= decoding.temperature < float("inf"), "a number from 0 (greedy) up"),
        "top_k": (decoding.top_k, decoding.top_k >= 0, "0 (off) or more"),
        "top_p": (decoding.top_p, 0 < decoding.top_p <= 1, "more than 0 and at most 1 (off)"),
        "stop": (decoding.stop, all(decoding.stop), "strings that are not empty"),
    }
    for name, (got, fine, expected) in problems.items():
        if not fine:
            raise InvalidSetting(f"decoding setting {name!r}: got {got!r}, expected {expected}.")


def not_finite() -> ModelUnavailable:
    """The error for a model whose probabilities are no numbers."""
    return ModelUnavailable(
        "the model's probabilities are NaN or infinite, expected finite numbers. Use <--set model.dtype=float32>; if they "
        "still are, its weights are damaged: load another copy."
    )


def check_states(hidden: Sequence[StateSpec]) -> None:
    """Raise InvalidSetting for states that a prompt does not have before anything is said."""
    for spec in hidden:
        if spec.position != "predicting":
            raise InvalidSetting(
                f"hidden states of a prompt: got the position {spec.position!r}, expected 'predicting': nothing is generated."
            )


BLOCK = 16
"""Tokens for which a sample's random numbers are drawn at a time."""


def uniforms(seed: int, samples: int, block: int) -> NDArray[np.float64]:
    """The numbers in [0, 1) that choose tokens ``block`` · BLOCK and following, for the first samples under ``seed``.

    Shape (samples, BLOCK). A counter-based generator keyed by (seed, block): the first rows of more samples are those of fewer.
    """
    key = np.array([seed & (2**64 - 1), block], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key)).random((samples, BLOCK))


def logsumexp(logits: Floats) -> NDArray[np.float64]:
    """log of the sum of exponentials over the last axis, shape (rows,)."""
    top = logits.max(axis=-1, keepdims=True)
    total = np.exp(logits - top).sum(axis=-1, dtype=np.float64)
    result: NDArray[np.float64] = np.log(total) + top[..., 0]
    return result


def threshold(scaled: Floats, top_k: NDArray[np.int64], top_p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The smallest logit a token may have to be drawn, per row; -inf where no cut applies.

    ``scaled`` (rows, vocabulary) are logits divided by the temperature. Top-k comes first; top-p then keeps, among the k, the
    smallest set of most likely tokens whose share of the k's probability reaches p. Tokens tied with the last one stay.
    """
    vocabulary = scaled.shape[1]
    limit = np.full(len(scaled), -np.inf)
    for k in np.unique(top_k):
        rows = np.flatnonzero(top_k == k)
        chosen = scaled if len(rows) == len(scaled) else scaled[rows]
        if 0 < k < vocabulary:
            chosen = np.partition(chosen, vocabulary - k, axis=1)[:, vocabulary - k :]
            limit[rows] = chosen[:, 0]
        cut = top_p[rows] < 1
        if cut.any():
            limit[rows[cut]] = _nucleus(chosen[cut], top_p[rows[cut]])
    return limit


def _nucleus(scaled: Floats, top_p: NDArray[np.float64]) -> NDArray[np.float64]:
    ordered = np.sort(scaled, axis=1)[:, ::-1]
    weights = np.exp(ordered - ordered[:, :1], dtype=np.float64)
    before = np.cumsum(weights, axis=1) - weights
    count = (before < top_p[:, None] * weights.sum(axis=1, keepdims=True)).sum(axis=1)
    result: NDArray[np.float64] = ordered[np.arange(len(ordered)), np.maximum(count, 1) - 1].astype(np.float64)
    return result


def draw(
    logits: Floats,
    temperature: NDArray[np.float64],
    top_k: NDArray[np.int64],
    top_p: NDArray[np.float64],
    uniform: NDArray[np.float64],
    source: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """One token id per uniform number. ``logits`` (rows, vocabulary); temperature > 0, top_k and top_p have an entry per row.

    Number i draws from row ``source[i]``; without ``source`` there is one number per row.
    """
    scaled = logits if (temperature == 1).all() else logits / temperature[:, None]
    vocabulary = scaled.shape[1]
    limit = threshold(scaled, top_k, top_p)
    flat = np.flatnonzero(scaled >= limit[:, None])
    row = flat // vocabulary
    weights = np.exp(scaled.reshape(-1)[flat].astype(np.float64) - scaled.max(axis=1)[row])
    # One running sum over all rows' survivors, which lie row after row and by token id inside a row.
    running = np.cumsum(weights)
    ends = np.searchsorted(row, np.arange(len(scaled)), side="right")
    starts = np.concatenate([[0], ends[:-1]])
    before = np.concatenate([[0.0], running])[starts]
    after = running[ends - 1]
    if source is not None:
        starts, ends, before, after = starts[source], ends[source], before[source], after[source]
    at = np.searchsorted(running, before + uniform * (after - before), side="right")
    ids: NDArray[np.int64] = flat[np.clip(at, starts, ends - 1)] % vocabulary
    return ids
