"""Two promises of a cascade: few errors among the answers given, and little harm by what it searched for.

Each by the test of ``guarantee``, on questions of which the cascade learnt nothing. *Harm* is an answer from memory that was
right, and one from evidence that was taken instead and is wrong: a share of what was taken from evidence. The first half of the
questions says how likely a harm may look for evidence to be taken; with that, the second half says how doubtful an answer may
look to be given. Either promise may fail with half of ε, so both hold with 1 - ε.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from gnothi.errors import InvalidInput
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.cascade import Cascade, Decided
from gnothi.stats.guarantee import EPSILON, Guarantee, guaranteed_threshold, promised


@dataclass(frozen=True, slots=True)
class Promised:
    """The ``cascade`` with the limits of its promises; None for one that was not asked for."""

    cascade: Cascade
    harm: Guarantee | None
    errors: Guarantee | None


def promise(
    cascade: Cascade,
    features: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    target_error: float | None = None,
    target_harm: float | None = None,
    epsilon: float = EPSILON,
    seed: int = 0,
) -> Promised:
    """As ``promised_cascade``; raises PromiseRefused, which says what is lacking, where that is None."""
    found = promised_cascade(cascade, features, first, second, target_error, target_harm, epsilon, seed, guaranteed_threshold)
    assert found is not None  # it would have been refused
    return found


def promised_cascade(
    cascade: Cascade,
    features: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    target_error: float | None = None,
    target_harm: float | None = None,
    epsilon: float = EPSILON,
    seed: int = 0,
    test: Callable[[ArrayLike, ArrayLike, float, float, int], Guarantee | None] = promised,
) -> Promised | None:
    """Of ``features``, shape (n, d), and whether either answer is right, (n,). The whole of the questions and of ``epsilon`` is
    spent on a promise that stands alone. None where it cannot be made; raises InvalidInput where evidence is never taken, so
    that no harm can be tested."""
    x, memory, evidence = np.asarray(features, dtype=np.float64), np.asarray(first, bool), np.asarray(second, bool)
    both = target_error is not None and target_harm is not None
    earlier = np.random.default_rng((seed, len(x))).permutation(len(x)) < (len(x) // 2 if both else len(x))
    rest, share = ~earlier if both else earlier, epsilon / 2 if both else epsilon
    harm = errors = None
    if target_harm is not None:
        harm = test(*_harm(cascade(x[earlier]), memory[earlier], evidence[earlier]), target_harm, share, seed)
        if harm is None:
            return None
        cascade = replace(cascade, harm=harm.threshold)
    if target_error is not None:
        decided = cascade(x[rest])
        wrong = ~np.where(decided.second, evidence[rest], memory[rest])
        errors = test(1 - decided.right, wrong, target_error, share, seed)
        if errors is None:
            return None
        cascade = replace(cascade, doubt=errors.threshold)
    return Promised(cascade, harm, errors)


def _harm(decided: Decided, memory: Mask, evidence: Mask) -> tuple[Floats, Mask]:
    taken = decided.second
    if not taken.any():
        raise InvalidInput(
            f"cannot promise little harm: got {len(taken)} questions, in none of which evidence is taken; expected some. Lower "
            "the price of a search, or promise errors alone."
        )
    return decided.harmed[taken], (memory & ~evidence)[taken]
