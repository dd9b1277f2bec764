"""GKP's choice against its authors' (liujch1998/GKP, ``inference/infer_t5.py``, with its default, ``best_prob``)."""

from __future__ import annotations

import asyncio
import math
import random
from types import SimpleNamespace
from typing import Any

import pytest

from gnothi import methods
from gnothi.testing.model import Scripted
from gnothi.types import Prompt, Question
from tests.methods.oracles.authors import CASES, function

LETTERS = "bcdfghjkmnp"


class Case:
    """Statements, choices, and how likely each choice is after each statement (None: after none), in nats."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.statements = [f"Statement {LETTERS[number]}." for number in range(draw.randint(1, 4))]
        self.choices = tuple(f"{LETTERS[place]} " * draw.randint(1, 4) + "thing" for place in range(draw.randint(2, 5)))
        self.scores = {(shown, choice): draw.uniform(-30, 0) for shown in (None, *self.statements) for choice in self.choices}


def ours(case: Case) -> str:
    def score(prompt: Prompt, text: str) -> float:
        return case.scores[prompt.passages[0].text if prompt.passages else None, text]

    model = Scripted(lambda _: case.statements, scorer=score)
    method = methods.create("gkp", {"model": model}, {"statements": len(case.statements)})
    return asyncio.run(method(Question("q", "Which?", choices=case.choices))).text


def restated(case: Case) -> str:
    """Of all pairs of statement and choice, the one whose choice is likeliest among those after its statement."""
    best, answer = -1.0, ""
    for shown in (None, *case.statements):
        total = sum(math.exp(case.scores[shown, choice]) for choice in case.choices)
        for choice in case.choices:
            if (share := math.exp(case.scores[shown, choice]) / total) > best:
                best, answer = share, choice
    return answer


def theirs(case: Case) -> str:
    torch = pytest.importorskip("torch")

    def score_for_input(_args: Any, _tok: Any, _model: Any, query: str, cands: list[str], knowledge: Any = None) -> Any:  # noqa: ARG001
        scores = torch.tensor([case.scores[knowledge, one] for one in cands], dtype=torch.float64)
        return scores, torch.softmax(scores, dim=0)

    names = {"torch": torch, "score_for_input": score_for_input}
    file = "inference/infer_t5.py"
    names["score_for_query"] = function("liujch1998/GKP", file, "score_for_query", names)
    item = {"query": "Which?", "cands": list(case.choices), "knowledges": case.statements}
    settings = SimpleNamespace(task="csqa", h=1, v=-1, aggfunc="best_prob")
    function("liujch1998/GKP", file, "process_item", names)(settings, None, None, item)
    return str(item["pred"])


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [restated, theirs])
def test_the_choice_is_the_same(oracle: Any) -> None:
    cases = [Case(seed) for seed in range(CASES)]
    assert [place for place, case in enumerate(cases) if ours(case) != oracle(case)] == []
