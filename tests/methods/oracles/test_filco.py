"""What FILCO keeps, and what it falls back on, against its authors' (zorazrw/filco, ``get_inputs.py``).

Of one passage, as there by default. Measures are scripted; where several sentences stay, theirs stand best first and ours as in
the passage, so that sets are compared.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, get_args

import pytest

from gnothi.filtering.leading import Leading, Measure
from gnothi.filtering.sentences import split
from gnothi.testing.model import Scripted
from gnothi.types import Passage, Prompt, Question, Task
from tests.methods.oracles.authors import CASES, function


class Case:
    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.measure: Measure = draw.choice(get_args(Measure))
        self.sentences = [f"Sentence {number} says this." for number in range(draw.randint(1, 6))]
        grid = {"strinc": (0.0, 0.0, 0.0, 1.0), "lexical": (0.0, 0.2, 0.4, 0.6), "cxmi": (-2.0, -1.0, 0.0, 1.5)}
        values = draw.sample(
            range(100), len(self.sentences)
        )  # no ties above the threshold: they go by the order here and there
        self.scores = [draw.choice(grid[self.measure]) for _ in values]
        if self.measure != "strinc":
            self.scores = [score + value / 1e4 if score else score for score, value in zip(self.scores, values, strict=True)]
        self.threshold = draw.choice([0.0, 0.0, 0.3, 1.0]) if self.measure != "strinc" else 0.0
        self.spans = draw.randint(1, 3) if self.measure != "strinc" else None

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


def ours(case: Case, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    async def scores(*_: object) -> list[float]:
        return case.scores

    monkeypatch.setattr(Leading, "_scores", scores)
    leading = Leading(case.measure, Scripted({}), case.threshold, case.spans)
    kept = asyncio.run(leading(Question("q", "Who?"), Prompt(Task("answer"), "Who?"), [Passage("p", case.text)], ["x"]))
    return set(split(" ".join(one.text for one in kept)))


def restated(case: Case) -> set[str]:
    """The best ones that reach the threshold (strinc: all that hold the answer); the passage where none does."""
    ranked = sorted(zip(case.scores, case.sentences, strict=True), key=lambda one: -one[0])
    if case.measure == "strinc":
        best = {text for score, text in ranked if score}
    else:
        best = {text for score, text in ranked[: case.spans] if score >= case.threshold}
    return best or set(case.sentences)


def theirs(case: Case) -> set[str]:
    file = "get_inputs.py"
    names = {"CONTEXT_PREFIX": "context", "QUESTION_PREFIX": "question", "ANSWER_PREFIX": "answer", "prefix_format": "{}: {}"}
    for name in ("get_sent", "get_context", "get_question", "get_answer"):
        names[name] = function("zorazrw/filco", file, name, names)
    measured = [{"text": text, case.measure: score} for text, score in zip(case.sentences, case.scores, strict=True)]
    example = {"question": "Who?", "answers": ["x"], "ctxs": [{"text": case.text, "sentences": measured}]}
    made, _ = function("zorazrw/filco", file, "get_example_io", names)(
        example, ["filtered"], [], num_sents=case.spans, threshold=case.threshold, filter_criteria=case.measure
    )
    return set(split(made.removeprefix("context: ")))


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [restated, theirs])
def test_the_same_is_kept(oracle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [Case(seed) for seed in range(CASES)]
    assert [place for place, case in enumerate(cases) if ours(case, monkeypatch) != oracle(case)] == []
    assert 100 < sum(restated(case) == set(case.sentences) for case in cases) < 800
