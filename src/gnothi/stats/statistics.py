"""How sure a number is: intervals, paired tests, ranking quality (AUROC) and calibration (ECE). Pure functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from gnothi.stats.probabilities import fit_isotonic

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Fit = Callable[[Floats, Mask], Callable[[Floats], Floats]]
"""From scores and what happened, shape (n,), to a curve from scores to probabilities."""

CONFIDENCE = 0.95
RESAMPLES = 2_000
PERMUTATIONS = 10_000
BINS = 10
FOLDS = 5
_CHUNK = 1 << 22  # random numbers held at once


class Interval(NamedTuple):
    """A two-sided confidence interval."""

    low: float
    high: float


class PairedTest(NamedTuple):
    """``difference`` of the means (first minus second), its bootstrap interval, the two-sided p-value and what it rests on."""

    n: int
    difference: float
    interval: Interval | None
    p: float
    test: str


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions that lie close together: their number, mean prediction and the observed share."""

    n: int
    predicted: float
    observed: float


# --- intervals -----------------------------------------------------------------------------------------------------


def mean_interval(
    values: ArrayLike, confidence: float = CONFIDENCE, resamples: int = RESAMPLES, seed: int = 0
) -> Interval | None:
    """Percentile bootstrap interval of the mean (Efron & Tibshirani 1993, chapter 13). None for fewer than two values.

    Where all values are equal the bootstrap says nothing: for all zeros or all ones the Wilson interval of a share is given.
    """
    sample = np.asarray(values, dtype=np.float64)
    if len(sample) < 2:
        return None
    if np.ptp(sample) == 0:
        value = float(sample[0])
        return (
            wilson_interval(round(value * len(sample)), len(sample), confidence)
            if value in (0.0, 1.0)
            else Interval(value, value)
        )
    random = np.random.default_rng(seed)
    per_chunk = max(1, _CHUNK // len(sample))
    means = np.concatenate(
        [
            sample[random.integers(0, len(sample), (min(per_chunk, resamples - start), len(sample)))].mean(axis=1)
            for start in range(0, resamples, per_chunk)
        ]
    )
    return percentiles(means, confidence)


def percentiles(drawn: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Between which that share of what was ``drawn`` lies, as much of the rest on either side."""
    low, high = np.quantile(np.asarray(drawn, dtype=np.float64), [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def wilson_interval(successes: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval of a share (Wilson 1927); never empty, never outside [0, 1]."""
    found = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    return Interval(float(found.low), float(found.high))


# --- paired tests --------------------------------------------------------------------------------------------------


def paired_test(first: ArrayLike, second: ArrayLike) -> PairedTest:
    """Do two methods differ in mean over the same questions? Two-sided sign-flip permutation test (Fisher 1935; Noreen 1989).

    Where all differences that are not zero have the same size (exact match, accuracy) the test has a closed form, McNemar's
    exact test; else 10,000 random sign patterns, p = (1 + as extreme) / (1 + tried).
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise ValueError(f"got shapes {a.shape} and {b.shape}, expected two equal one-dimensional ones with at least one value")
    differences = a - b
    moved = differences[differences != 0]
    mean, interval = float(differences.mean()), mean_interval(differences)
    if not len(moved):
        # A tie in every question: the interval of a constant zero, not that of a share.
        return PairedTest(len(a), 0.0, None, 1.0, "mcnemar exact")
    if np.ptp(np.abs(moved)) == 0:
        p = float(stats.binomtest(int((moved > 0).sum()), len(moved)).pvalue)
        return PairedTest(len(a), mean, interval, p, "mcnemar exact")
    return PairedTest(len(a), mean, interval, _sign_flip(moved), "paired permutation")


def _sign_flip(differences: Floats) -> float:
    random = np.random.default_rng(0)
    total, n = differences.sum(), len(differences)
    # Sums of the same numbers in another order differ in the last bits; they must count as equally extreme.
    observed = abs(total) - 1e-12 * np.abs(differences).sum()
    per_chunk = max(1, _CHUNK // n)
    extreme = 0
    for start in range(0, PERMUTATIONS, per_chunk):
        size = min(per_chunk, PERMUTATIONS - start)
        kept = np.unpackbits(np.frombuffer(random.bytes((size * n + 7) // 8), dtype=np.uint8), count=size * n).reshape(size, n)
        extreme += int((np.abs(2 * (kept.astype(np.float64) @ differences) - total) >= observed).sum())
    return (1 + extreme) / (1 + PERMUTATIONS)


def holm(p: ArrayLike) -> Floats:
    """p-values corrected for their number by Holm's step-down procedure (Holm 1979), in the order given.

    Rejecting where a corrected value is at most alpha keeps the chance of any false rejection at or below alpha, however the
    tests depend on each other. Raises ValueError for values outside [0, 1]."""
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"got {values!r}, expected p-values in [0, 1]")
    order = np.argsort(values, kind="stable")
    stepped = values[order] * np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return corrected


# --- ranking -------------------------------------------------------------------------------------------------------


def auroc(scores: ArrayLike, positive: ArrayLike) -> float | None:
    """Probability that a positive scores above a negative, ties counting half (Mann & Whitney 1947). None without both classes.

    Infinite scores are fine; NaN is a ValueError.
    """
    x, y = _ranked(scores, positive)
    m, n = int(y.sum()), int((~y).sum())
    if not m or not n:
        return None
    ranks = stats.rankdata(x)
    return float((ranks[y].sum() - m * (m + 1) / 2) / (m * n))


def auroc_interval(scores: ArrayLike, positive: ArrayLike, confidence: float = CONFIDENCE) -> Interval | None:
    """DeLong's interval (DeLong et al. 1988, by mid-ranks: Sun & Xu 2014) on the logit scale, so that it stays in [0, 1].

    Perfect separation has no estimated variance: then Wilson's interval for the smaller class is given, which is wide enough.
    None without two of each class.
    """
    x, y = _ranked(scores, positive)
    above, below = x[y], x[~y]
    m, n = len(above), len(below)
    area = auroc(x, y)
    if area is None or min(m, n) < 2:
        return None
    placements_above, placements_below = _placements(x, y)
    variance = placements_above.var(ddof=1) / m + placements_below.var(ddof=1) / n
    if area in (0.0, 1.0) or variance == 0:
        return wilson_interval(round(area * min(m, n)), min(m, n), confidence)
    half = stats.norm.ppf((1 + confidence) / 2) * np.sqrt(variance) / (area * (1 - area))
    centre = np.log(area / (1 - area))
    low, high = 1 / (1 + np.exp(-(centre + np.array([-half, half]))))
    return Interval(float(low), float(high))


def spearman(columns: ArrayLike) -> list[list[float | None]]:
    """Rank correlations between ``columns``, shape (k, n): k rows of k numbers. Infinite values rank highest; None beside a
    column that is the same everywhere."""
    ranks = np.array([stats.rankdata(column) for column in np.asarray(columns, dtype=np.float64)])
    if not ranks.size:
        return []
    ranks -= ranks.mean(axis=1, keepdims=True)
    length = np.sqrt((ranks**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (ranks @ ranks.T) / np.outer(length, length)
    return [[float(value) if np.isfinite(value) else None for value in row] for row in found]


def auroc_difference(
    first: ArrayLike, second: ArrayLike, positive: ArrayLike, confidence: float = CONFIDENCE
) -> PairedTest | None:
    """Do two scores of the same examples differ in AUROC (first minus second)? DeLong's test and interval (DeLong et al. 1988).

    None without two of each class. Where the scores place all examples alike there is no variance: then p is 1."""
    (a, y), (b, _) = _ranked(first, positive), _ranked(second, positive)
    m, n = int(y.sum()), int((~y).sum())
    if min(m, n) < 2:
        return None
    above, below = (one - other for one, other in zip(_placements(a, y), _placements(b, y), strict=True))
    difference = float(above.mean())
    deviation = float(np.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n))
    if deviation == 0:
        return PairedTest(len(y), difference, None, 1.0 if difference == 0 else 0.0, "delong")
    half = float(stats.norm.ppf((1 + confidence) / 2)) * deviation
    p = float(2 * stats.norm.sf(abs(difference) / deviation))
    return PairedTest(len(y), difference, Interval(difference - half, difference + half), p, "delong")


def _placements(x: Floats, y: Mask) -> tuple[Floats, Floats]:
    """Of each positive the share of negatives below it, of each negative the share of positives above it; ties count half."""
    above, below = x[y], x[~y]
    joint = stats.rankdata(np.concatenate([above, below]))
    m, n = len(above), len(below)
    return (joint[:m] - stats.rankdata(above)) / n, 1 - (joint[m:] - stats.rankdata(below)) / m


def risk_coverage(uncertainty: ArrayLike, wrong: ArrayLike) -> tuple[Floats, Floats]:
    """(coverage, risk): the share of wrong answers as ever more of the most certain ones are accepted (El-Yaniv & Wiener 2010).

    Both have one entry per distinct uncertainty: answers of equal uncertainty are accepted together.
    """
    u, w = np.asarray(uncertainty, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
    order = np.argsort(u, kind="stable")
    u, w = u[order], w[order]
    last_of_group = np.append(u[1:] != u[:-1], True) if len(u) else np.zeros(0, dtype=bool)
    accepted = np.arange(1, len(u) + 1)[last_of_group]
    return accepted / max(1, len(u)), np.cumsum(w)[last_of_group] / accepted


def aurc(uncertainty: ArrayLike, wrong: ArrayLike) -> float | None:
    """Area under the risk-coverage curve: the mean risk over accepting the most certain answer, the two most certain ... all
    (Geifman & El-Yaniv 2017). Answers of equal uncertainty count as ordered by chance. Lower is better; None for no answers.
    """
    u, w = np.asarray(uncertainty, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
    if not len(u):
        return None
    order = np.argsort(u, kind="stable")
    u, errors = u[order], np.concatenate([[0.0], np.cumsum(w[order])])
    ends = np.append(np.flatnonzero(u[1:] != u[:-1]) + 1, len(u))
    accepted = np.arange(1, len(u) + 1)
    expected = np.interp(accepted, np.concatenate([[0], ends]), errors[np.concatenate([[0], ends])])
    return float((expected / accepted).mean())


def aurc_interval(
    uncertainty: ArrayLike, wrong: ArrayLike, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Interval | None:
    """Percentile bootstrap interval over answers. None for fewer than two."""
    u, w = np.asarray(uncertainty, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
    if len(u) < 2:
        return None
    random = np.random.default_rng(0)
    drawn = (aurc(u[chosen], w[chosen]) for chosen in (random.integers(0, len(u), len(u)) for _ in range(resamples)))
    return percentiles([area for area in drawn if area is not None], confidence)


def _ranked(scores: ArrayLike, positive: ArrayLike) -> tuple[Floats, Mask]:
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"got shapes {x.shape} and {y.shape}, expected two equal one-dimensional ones")
    if np.isnan(x).any():
        raise ValueError("got a score that is not a number")
    return x, y


# --- calibration ---------------------------------------------------------------------------------------------------


def reliability(predicted: ArrayLike, happened: ArrayLike, bins: int = BINS) -> tuple[Bin, ...]:
    """Equal-width bins over [0, 1] that hold at least one prediction, in order."""
    p, y = np.asarray(predicted, dtype=np.float64), np.asarray(happened, dtype=np.float64)
    if p.shape != y.shape or p.ndim != 1:
        raise ValueError(f"got shapes {p.shape} and {y.shape}, expected two equal one-dimensional ones")
    if len(p) and not (p.min() >= 0 and p.max() <= 1):
        raise ValueError(f"got predictions from {p.min()} to {p.max()}, expected probabilities")
    index = np.minimum((p * bins).astype(int), bins - 1)
    return tuple(
        Bin(int(here.sum()), float(p[here].mean()), float(y[here].mean())) for b in range(bins) if (here := index == b).any()
    )


def ece(predicted: ArrayLike, happened: ArrayLike) -> float | None:
    """Expected calibration error: mean |predicted - observed| over the bins, weighted by their size (Naeini et al. 2015).

    None without predictions.
    """
    found = reliability(predicted, happened)
    total = sum(bin.n for bin in found)
    return sum(bin.n * abs(bin.predicted - bin.observed) for bin in found) / total if total else None


def ece_interval(
    predicted: ArrayLike, happened: ArrayLike, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Interval | None:
    """Of the calibration error that endless questions with such predictions would show: the sizes that no test rejects.

    A perfect curve has an error in every sample, by chance. So what is tested is whether an error like the sample's is usual
    where the true one is e: in each bin the observed share varies as a binomial one around a gap, and the gaps have together
    the size e and one of three shapes, as observed, less what chance explains, or the same in all bins. A perfect curve that is
    not rejected puts the lower end at 0. An error below the median of perfect curves counts as that median, so that luck
    makes no interval short (Cowan et al. 2011, arXiv 1105.3166). Of 95 % intervals, 90 to 99 % held the true error in simulated
    samples of 60 to 500 questions (``tests/stats/test_statistics.py``). None for fewer than two.
    """
    bins, estimate = reliability(predicted, happened), ece(predicted, happened)
    counts = np.array([bin.n for bin in bins], dtype=np.float64)
    if estimate is None or counts.sum() < 2:
        return None
    weights, gaps = counts / counts.sum(), np.array([bin.predicted - bin.observed for bin in bins])
    share = (np.array([bin.observed for bin in bins]) * counts + 1) / (counts + 2)  # never 0 or 1, where nothing would vary
    error = np.sqrt(share * (1 - share) / counts)
    noise = np.random.default_rng(0).standard_normal((resamples, len(bins))) * error
    least = max(estimate, float(np.median(np.abs(noise) @ weights)))
    tail = (1 - confidence) / 2

    def of_shape(shape: Floats) -> Interval:
        def samples(size: float) -> Floats:
            return np.asarray(np.abs(size * shape / (np.abs(shape) @ weights) + noise) @ weights)

        return Interval(
            _switch(lambda size: bool((samples(size) >= estimate).mean() > tail)),
            _switch(lambda size: bool((samples(size) <= least).mean() <= tail)),
        )

    shapes = (gaps, np.sign(gaps) * np.sqrt(np.maximum(gaps**2 - error**2, 0)), np.ones(len(bins)))
    found = [of_shape(shape) for shape in shapes if shape.any()]
    return Interval(min(one.low for one in found), max(one.high for one in found))


def _switch(reached: Callable[[float], bool]) -> float:
    """From where on in [0, 1] a condition holds, that holds from somewhere on; 1 where it never does."""
    if reached(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def folds_of(labels: Mask, folds: int = FOLDS, seed: int = 0) -> NDArray[np.int_]:
    """The fold of each example; every fold has its share of both classes."""
    random = np.random.default_rng(seed)
    found = np.empty(len(labels), dtype=np.int_)
    for one in (False, True):
        places = np.flatnonzero(labels == one)
        found[places] = random.permutation(len(places)) % folds
    return found


def crossfit(fit: Fit, scores: Floats, happened: Mask) -> Floats:
    """Each score as a probability, by a curve that ``fit`` finds for the scores and outcomes of the other folds."""
    fold = folds_of(happened)
    predicted = np.empty(len(scores))
    for held_out in range(FOLDS):
        test = fold == held_out
        predicted[test] = fit(scores[~test], happened[~test])(scores[test])
    return predicted


def crossfit_probabilities(scores: ArrayLike, happened: ArrayLike) -> Floats | None:
    """Each score as a probability that it happens, by isotonic regression fitted on the other folds (Zadrozny & Elkan 2002).

    A score of any scale becomes comparable to a share without being judged on what it was fitted on. Infinite scores are fine.
    None for fewer than ten scores, or fewer than two of either class: then there is nothing to learn for one of the folds.
    """
    x, y = _ranked(scores, happened)
    if len(x) < 2 * FOLDS or min(y.sum(), (~y).sum()) < 2:
        return None
    order = np.unique(x, return_inverse=True)[1]  # all that the regression looks at, and finite
    return crossfit(fit_isotonic, order.astype(np.float64), y)


def mean(values: Iterable[float]) -> float | None:
    """None where there is nothing to average."""
    found = list(values)
    return sum(found) / len(found) if found else None
