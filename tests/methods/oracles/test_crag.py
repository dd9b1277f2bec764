"""CRAG's verdicts and strips against its authors' (HuskyInSalt/CRAG, ``CRAG_Inference.py`` and ``utils.py``).

Grades are scripted. A strip of fewer than four words is graded lowest there: the strips here have more. Theirs stand best
first, ours as in the passage: sets are compared.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from gnothi import events
from gnothi.filtering.evaluator import Strips
from gnothi.methods.crag import CorrectiveRAG
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, Question
from tests.methods.oracles.authors import CASES, function

UPPER, LOWER = 0.5, 0.1
GRID = (0.0, 0.05, 0.1, 0.3, 0.5, 0.8, 1.0)
VERDICTS = ("incorrect", "ambiguous", "correct")


class Case:
    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.grades = [draw.choice(GRID[: draw.randint(1, len(GRID))]) for _ in range(draw.randint(1, 6))]
        self.strips = {f"Strip number {number} says this.": draw.random() for number in range(draw.randint(1, 9))}
        self.most = draw.randint(1, 6)


Outcome = tuple[str, set[str]]


def ours(case: Case, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    async def passages(*_: object) -> list[float]:
        return case.grades

    async def strips(_: Question, sentences: Sequence[Passage]) -> list[float]:
        return [case.strips[one.text] for one in sentences]

    monkeypatch.setattr(CorrectiveRAG, "_grades", passages)
    method = CorrectiveRAG(Scripted({}), ScriptedRetriever([]), upper=UPPER, lower=LOWER)
    passage = Passage("p", " ".join(case.strips))
    with events.record():
        verdict = asyncio.run(method._evaluate(Question("q", "Who?"), [passage]))
        refine = Strips(strips, "useful", method.strip_threshold, case.most)
        (kept,) = asyncio.run(refine(Question("q", "Who?"), [passage]))
    return verdict, {text for text in case.strips if text in kept.text}


def restated(case: Case) -> Outcome:
    best = max(case.grades)
    ranked = sorted(case.strips, key=case.strips.__getitem__, reverse=True)
    return VERDICTS[(best >= UPPER) + (best >= LOWER)], set(ranked[: case.most])


def theirs(case: Case) -> Outcome:
    torch = pytest.importorskip("torch")

    class Ids(str):
        def to(self, _: object) -> Ids:
            return self

    class Grader:
        def to(self, _: object) -> Grader:
            return self

        def __call__(self, ids: str, attention_mask: object) -> dict[str, Any]:  # noqa: ARG002
            return {"logits": torch.tensor(case.strips[ids.partition(" [SEP] ")[2]], dtype=torch.float64)}

    def tokenizer(text: str, **_: object) -> dict[str, Ids]:
        return {"input_ids": Ids(text), "attention_mask": Ids(text)}

    flag = function("HuskyInSalt/CRAG", "scripts/CRAG_Inference.py", "process_flag", {})
    select = function("HuskyInSalt/CRAG", "scripts/utils.py", "select_relevants", {"torch": torch})
    (verdict,) = flag(case.grades, len(case.grades), UPPER, LOWER)
    joined, _ = select(list(case.strips), "Who?", tokenizer, Grader(), "cpu", top_n=case.most)
    return VERDICTS[verdict], set(joined.split("; "))


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [restated, theirs])
def test_verdict_and_strips_are_the_same(oracle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [Case(seed) for seed in range(CASES)]
    assert [place for place, case in enumerate(cases) if ours(case, monkeypatch) != oracle(case)] == []
    assert {restated(case)[0] for case in cases} == set(VERDICTS)
