"""A calibration in words, for people who ask a set-up: what it rests on, what it promises, and what it does not."""

from __future__ import annotations

import math
from pathlib import Path

from gnothi.calibration.file import Calibration


def in_words(found: Calibration) -> list[str]:
    """Sentences, the promise first where there is one."""
    said = [*_promise(found), *_worth(found), _grounds(found)]
    if math.isinf(found.threshold):
        said.insert(0, "This gate always searches." if found.threshold < 0 else "This gate trusts every score it can measure.")
    return said


def _promise(found: Calibration) -> list[str]:
    promise = found.details.get("guarantee")
    if promise is None:
        return ["No promise was asked for when the threshold was chosen."]
    judged = found.metric == "feedback"
    like = "answers like those that people judged" if judged else "questions like those it was chosen on"
    return [
        f"Promise: at most {promise['target_error']:.0%} of the answers given without a search are wrong, for {like} "
        f"(with probability {1 - promise['epsilon']:.0%} over their draw).",
        "It says nothing of answers after a search, of a single answer, or of other kinds of questions.",
    ]


def _worth(found: Calibration) -> list[str]:
    worth = found.details.get("worth")
    if worth is None:
        return []
    return [
        f"On questions it was not chosen on, the gate answers {worth['accuracy']:.0%} rightly and searches for "
        f"{worth['retrieval_rate']:.0%}; always searching answers {worth['always']:.0%} rightly, never {worth['never']:.0%}."
    ]


def _grounds(found: Calibration) -> str:
    what = "judged answers" if found.metric == "feedback" else "questions"
    data = Path(found.dataset).name  # where it lies is nobody's business
    return f"Chosen on {found.questions} {what} of {data} ({found.metric}), {found.date[:10]}."
