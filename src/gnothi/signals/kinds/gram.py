"""Regularised Gram determinant of hidden states (SeaKR, section 3.1; first as EigenScore in INSIDE, Chen et al. 2023a)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.signals.base import ComputedSignal, Continued, Sampling
from gnothi.types import Capabilities, StateSpec


def gram_uncertainty(states: NDArray[np.floating], alpha: float = 1e-3) -> float:
    """U = (1/k) ln det(Z J Zᵀ + alpha I) of k states Z, shape (k, d), with J = I - 11ᵀ/d centring each state over its features.

    Natural logarithm. At least ln alpha, reached when every state is constant over its features; infinity for no states.
    Computed in float64 from the singular values s of Z J as (1/k) Σ ln(s² + alpha), which keeps full precision where the
    matrix is near singular (equal rows). Raises InvalidInput for states that are not finite.
    """
    if states.ndim != 2:
        raise InvalidInput(f"got states of shape {states.shape}, expected (samples, hidden size).")
    rows = states.shape[0]
    if rows == 0:
        return float("inf")
    if not np.isfinite(states).all():
        raise InvalidInput(
            "got hidden states that are not finite, expected numbers: load the model in bfloat16 or float32, not float16."
        )
    centred = states.astype(np.float64)
    centred -= centred.mean(axis=1, keepdims=True)
    squares = np.zeros(rows)  # a matrix of rank r < k has k - r zeros beyond its singular values
    singular = np.linalg.svd(centred, compute_uv=False)
    squares[: len(singular)] = singular**2
    return float(np.log(squares + alpha).mean())


@dataclass(frozen=True, slots=True)
class Gram(ComputedSignal):
    """U of the states of sampled continuations. Blank samples are dropped; when none is left, nothing is certain."""

    sampling: Sampling = field(default_factory=Sampling)
    state: StateSpec = field(default_factory=StateSpec)
    alpha: float = 1e-3

    name: ClassVar[str] = "gram"
    needs: ClassVar[Capabilities] = Capabilities(hidden_states=True)
    # δ of SeaKR, section 5.3, found for Llama-2-7B-chat. It does not carry over to other models: calibrate.
    default_threshold: ClassVar[float | None] = -6.0

    def __post_init__(self) -> None:
        if self.alpha <= 0:
            raise InvalidSetting(f"setting 'signal.alpha': got {self.alpha}, expected more than 0.")

    @property
    def states(self) -> tuple[StateSpec, ...]:
        return (self.state,)

    def compute(self, continued: Continued) -> float:
        if not continued.samples.states:
            raise InvalidInput("the model returned no hidden states, expected one for each sample.")
        spoken = [bool(generation.text.strip()) for generation in continued.samples.generations]
        return gram_uncertainty(continued.samples.states[0][spoken], self.alpha)
