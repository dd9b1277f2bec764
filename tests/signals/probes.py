"""Probes that say the same of every prompt."""

from __future__ import annotations

import numpy as np

from gnothi.signals.probe_folder import FittedProbe
from gnothi.signals.wording import WordClassifier
from gnothi.stats.logistic import Logistic
from gnothi.types import StateSpec, Task

HIDDEN_SIZE = 32
"""Of the scripted model."""


def probe_saying(chance: float, words: float | None = None, task: Task | None = None) -> FittedProbe:
    """P(wrong) by states, and by words (None: the same)."""
    logit, worded = (float(np.log(one / (1 - one))) for one in (chance, chance if words is None else words))
    regression = Logistic(np.zeros(HIDDEN_SIZE), logit, np.zeros(HIDDEN_SIZE), np.ones(HIDDEN_SIZE))
    classifier = WordClassifier({}, np.array([[0.0, worded]]))
    return FittedProbe(classifier, (StateSpec(1, "residual", "predicting"),), task, regression, {}, "constant")
