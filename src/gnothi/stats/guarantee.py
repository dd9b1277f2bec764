"""Thresholds with a promise: with probability 1 - ε over the questions they are chosen on, at most a share r of the answers
given without retrieval is wrong. No assumption on scores or model, but that later questions are drawn like those.

Learn then test (Angelopoulos et al. 2021, arXiv 2110.01052, split fixed-sequence testing). Some questions are set aside to
find out where to begin and in which steps to go on; the others test, threshold by threshold upwards, the hypothesis "more
than a share r of what is trusted is wrong", and the first that cannot be rejected ends it. Given how many are trusted, the
wrong ones among them are binomial, so the p-values are exact tails (Clopper and Pearson 1934).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gnothi.errors import InvalidInput, InvalidSetting, PromiseRefused, counted
from gnothi.stats.arrays import Floats, Mask

EPSILON = 0.1
SPLIT = 0.2
"""Share of the questions that only say where to begin."""
STEPS = 20
"""Thresholds in the sequence: quantiles of the scores set aside."""
POWER = 0.8
_SMALLEST_GROUP = 10  # trusted questions below which an estimated error is not extrapolated from


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is promised of ``threshold``, and on what grounds.

    ``n`` questions of the sample, of which ``tested`` were not used to find where to begin; of these the threshold trusts
    ``trusted``, and ``wrong`` of them are wrong; ``p`` is the exact probability of so few if the error were ``target_error``.
    ``accepted``: every threshold for which the promise holds at the same time, rising.
    """

    threshold: float
    target_error: float
    epsilon: float
    n: int
    tested: int
    trusted: int
    wrong: int
    p: float
    accepted: tuple[float, ...]


def tail(wrong: int, trusted: int, target_error: float) -> float:
    """P(at most ``wrong`` of ``trusted``) if each is wrong with probability ``target_error``: the p-value."""
    from scipy import special

    return float(special.bdtr(wrong, trusted, target_error)) if trusted else 1.0


def most_wrong(trusted: int, target_error: float, epsilon: float) -> int:
    """The most wrong answers among ``trusted`` with which the promise can still be made; -1: not even with none."""
    from scipy import stats

    most = int(stats.binom.ppf(epsilon, trusted, target_error))
    return most if tail(most, trusted, target_error) <= epsilon else most - 1


def fewest(target_error: float, epsilon: float) -> int:
    """The fewest trusted questions, all of them right, that support the promise: (1 - r)^m ≤ ε."""
    needed = max(1, math.ceil(math.log(epsilon) / math.log1p(-target_error)))
    while tail(0, needed, target_error) > epsilon:  # where the quotient was rounded down
        needed += 1
    return needed


def guaranteed_threshold(
    scores: ArrayLike, wrong: ArrayLike, target_error: float, epsilon: float = EPSILON, seed: int = 0
) -> Guarantee:
    """The highest threshold t of which it can be promised: P(wrong | score ≤ t) ≤ ``target_error``.

    ``scores`` (higher: less certain) and ``wrong`` (the answer without retrieval is wrong) have shape (n,), one entry per
    question, the questions drawn independently. Infinite scores are above every threshold. Which questions are set aside is
    drawn from ``seed``. Raises PromiseRefused where the sample cannot support it, naming the number of questions that would
    be needed; InvalidInput or InvalidSetting for input that makes no sense.
    """
    threshold = promised(scores, wrong, target_error, epsilon, seed)
    if threshold is None:
        raise PromiseRefused(_refusal(*_checked(scores, wrong, target_error, epsilon), target_error, epsilon))
    return threshold


def check_enough(n: int, target_error: float, epsilon: float = EPSILON) -> None:
    """Raises PromiseRefused for so few questions that nothing could be promised of them, were no answer wrong."""
    _check_shares(target_error, epsilon)
    if n - round(SPLIT * n) < fewest(target_error, epsilon):
        raise PromiseRefused(
            f"cannot guarantee {_promise(target_error, epsilon)}: got {counted(n, 'question')} with a known answer, expected "
            f"at least {_least(target_error, epsilon)}, better several times as many. Give more questions, or "
            "allow a larger error."
        )


def promised(
    scores: ArrayLike, wrong: ArrayLike, target_error: float, epsilon: float = EPSILON, seed: int = 0
) -> Guarantee | None:
    """As ``guaranteed_threshold``; None where the sample cannot support the promise."""
    x, y = _checked(scores, wrong, target_error, epsilon)
    aside = set_aside(len(x), seed)
    others_x, others_y = x[~aside], y[~aside]
    accepted: list[tuple[float, int, int, float]] = []
    for threshold in sequence(x[aside], y[aside], len(others_x), target_error).tolist():
        trusted = others_x <= threshold
        count, missed = int(trusted.sum()), int(others_y[trusted].sum())
        p = tail(missed, count, target_error)
        if p > epsilon:
            break
        accepted.append((threshold, count, missed, p))
    if not accepted:
        return None
    threshold, count, missed, p = accepted[-1]
    passed = tuple(step for step, *_ in accepted)
    return Guarantee(threshold, target_error, epsilon, len(x), len(others_x), count, missed, p, passed)


def sequence(scores: Floats, wrong: Mask, tests: int, target_error: float) -> Floats:
    """Rising thresholds to be tested on ``tests`` other questions: quantiles of ``scores``, from the one on that promises to be
    easiest to show. It depends on nothing but questions that are not tested, which is what makes the tests valid."""
    finite = np.sort(scores[np.isfinite(scores)])
    if not len(finite):
        return finite
    levels = np.unique(np.ceil(np.linspace(0, 1, STEPS + 1)[1:] * len(finite)).astype(int)) - 1
    candidates = np.unique(finite[levels])
    expected = [_expected_tail(scores, wrong, threshold, tests, target_error) for threshold in candidates]
    return candidates[int(np.argmin(expected)) :]


def _expected_tail(scores: Floats, wrong: Mask, threshold: float, tests: int, target_error: float) -> float:
    """The p-value to be expected of a threshold, its error estimated with two more answers, one of them wrong (Laplace)."""
    trusted = scores <= threshold
    count = int(trusted.sum())
    error = (wrong[trusted].sum() + 1) / (count + 2)
    expected = round(tests * count / len(scores))
    return tail(round(expected * error), expected, target_error)


def questions_needed(scores: ArrayLike, wrong: ArrayLike, target_error: float, epsilon: float = EPSILON) -> int | None:
    """About how many questions like these would let the promise be made with probability ``POWER``; None where none would,
    as not even the surest are right often enough.

    A low estimate: it takes the errors seen in this sample for true, and of all thresholds the one that looks best, part of
    which is luck."""
    x, y = _checked(scores, wrong, target_error, epsilon)
    order = np.argsort(x, kind="stable")
    finite = int(np.isfinite(x).sum())
    missed = np.cumsum(y[order])
    best: int | None = None
    for count in range(min(_SMALLEST_GROUP, finite), finite + 1):
        if not count or (count < finite and x[order[count]] == x[order[count - 1]]):
            continue
        error = (missed[count - 1] + 1) / (count + 2)
        trusted = _trusted_needed(error, target_error, epsilon) if error < target_error else None
        if trusted is not None:
            needed = math.ceil(trusted * len(x) / count / (1 - SPLIT))
            best = needed if best is None else min(best, needed)
    return best


def _trusted_needed(error: float, target_error: float, epsilon: float) -> int | None:
    """The fewest trusted questions with which a true ``error`` is shown to be below ``target_error`` that often."""

    def enough(trusted: int) -> bool:
        most = most_wrong(trusted, target_error, epsilon)
        return most >= 0 and tail(most, trusted, error) >= POWER

    high = fewest(target_error, epsilon)
    while not enough(high):
        high *= 2
        if high > 10_000_000:
            return None
    low = high // 2
    while high - low > 1:  # the power rises with the number but for small teeth
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _refusal(scores: Floats, wrong: Mask, target_error: float, epsilon: float) -> str:
    promise, least = _promise(target_error, epsilon), _least(target_error, epsilon)
    needed = questions_needed(scores, wrong, target_error, epsilon)
    got = f"got {counted(len(scores), 'question')}, {int(wrong.sum())} of them wrong from memory"
    if needed is None and len(scores) >= max(least, 2 * _SMALLEST_GROUP):
        return (
            f"cannot guarantee {promise}: {got}, and too few are right even where this signal is surest; more questions will "
            f"hardly help (at least {least} if none is wrong). Allow a larger error, or use another model. Do not try one "
            "signal after another on these questions: the guarantee would fail more often than it says. Choose a signal on "
            "other questions."
        )
    number = (
        f"about {max(needed, least)} or more"
        if needed is not None
        else f"at least {least} (if none of the trusted ones is wrong)"
    )
    luck = "" if needed is None or needed > len(scores) else " (a sample of this size often does; this one does not)"
    return f"cannot guarantee {promise}: {got}, expected {number}{luck}. Give more questions, or allow a larger error."


def _promise(target_error: float, epsilon: float) -> str:
    return f"an error of at most {target_error:g} among questions answered without retrieval (with probability {1 - epsilon:g})"


def _least(target_error: float, epsilon: float) -> int:
    return math.ceil(fewest(target_error, epsilon) / (1 - SPLIT))


def set_aside(n: int, seed: int = 0) -> Mask:
    """Which of n questions only say where to begin: they are not tested."""
    aside = np.zeros(n, dtype=bool)
    aside[np.random.default_rng(seed).permutation(n)[: round(SPLIT * n)]] = True
    return aside


def _checked(scores: ArrayLike, wrong: ArrayLike, target_error: float, epsilon: float) -> tuple[Floats, Mask]:
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(wrong, dtype=bool)
    if x.shape != y.shape or x.ndim != 1 or not len(x) or np.isnan(x).any():
        raise InvalidInput(
            f"cannot calibrate: got {x.shape} scores ({int(np.isnan(x).sum())} not a number) with {y.shape} outcomes, "
            "expected one score per outcome."
        )
    _check_shares(target_error, epsilon)
    return x, y


def _check_shares(target_error: float, epsilon: float) -> None:
    for name, value in (("target error", target_error), ("epsilon", epsilon)):
        if not 0 < value < 1:
            raise InvalidSetting(f"{name}: got {value:g}, expected a share between 0 and 1 (both excluded).")
