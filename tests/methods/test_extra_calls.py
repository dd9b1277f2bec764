"""``extra_calls=false``: each method makes the calls of its paper and no other, however little its answer says."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from gnothi import methods
from gnothi.methods.steps.settings import MethodSettings
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, Prompt, Question

QUESTION = Question("q", "What was George Rankin's occupation?")
SAYS = "George Rankin was there. So the answer is George Rankin."
FOUND = [Passage("p", "George Rankin served.", "George Rankin"), Passage("o", "Another served.", "Another")]
CASES: dict[str, tuple[dict[str, Any], Counter[str]]] = {
    # One measurement of two calls a draft or a strategy, and nothing behind them.
    "seakr": ({"signal.samples": 2, "threshold": 9e9}, Counter(reason=6)),
    "seakr simple": ({"form": "simple", "reason": True, "signal.samples": 2, "threshold": 9e9}, Counter(reason=2)),
    "keqa": ({"decompose": False, "sentences": False, "schedule": "at_once"}, Counter(answer=1)),
    "flare": ({"theta": 0.0}, Counter(reason=2)),
    "dragin": ({"theta": 99.0}, Counter(reason=2)),
    "ircot": ({}, Counter(reason=3)),
    "cot": ({}, Counter(reason=1)),
    "rag": ({"reason": True}, Counter(reason=1)),
    "self_consistency": ({"paths": 2}, Counter(reason=1)),
}


def calls(name: str, settings: dict[str, Any], extra: bool) -> Counter[str]:
    def reply(prompt: Prompt) -> Reply:
        return Reply("George Rankin" if prompt.task.name == "answer" else SAYS.removeprefix(prompt.answer_so_far).strip())

    model = Scripted(reply)
    resources: dict[str, object] = {"model": model, "retriever": ScriptedRetriever(FOUND)}
    method = methods.create(name.partition(" ")[0], resources, {**settings, "extra_calls": extra})
    asyncio.run(method(QUESTION))
    return Counter(prompt.task.name for prompt in model.prompts)


@pytest.mark.parametrize("name", CASES)
def test_no_call_but_the_papers(name: str) -> None:
    settings, expected = CASES[name]
    assert calls(name, settings, False) == expected
    assert calls(name, settings, True) == expected + Counter(answer=1)


def test_every_method_that_can_reason_has_the_setting() -> None:
    for name in methods.names():
        known = methods.spec(name)
        assert issubclass(known.method, MethodSettings) or "extra_calls" not in known.settings
    assert {name for name in methods.names() if "extra_calls" not in methods.spec(name).settings} <= {"panel", "search_r1"}
