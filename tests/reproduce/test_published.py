"""That recipes run the papers' form: what the authors' code does to each question, on real ones where they lie at hand."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from gnothi.datasets import load
from gnothi.reproduce import recipe
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, Prompt, Question
from tests.reproduce.planned import made, plans

SPLITS = [("keqa/table1", "KEQA"), ("keqa/table1", "SearChain"), ("keqa/table3", "KEQA w DPR")]
SPLITS += [
    ("keqa/table4", "KEQA w LLaMA"),
    ("keqa/table5", "KEQA"),
    ("keqa/figure4", "α = 0.4"),
    ("keqa/figure5", "Full, top-5"),
]
SIMPLE = [("seakr/table2", data, "SeaKR") for data in ("nq", "triviaqa", "squad")]
SIMPLE += [("seakr/table3", "nq", "LN-Entropy"), ("seakr/table4", "nq", "Llama-3-8B base"), ("seakr/table6", "nq", "SeaKR")]
SIMPLE += [("seakr/table8", "nq", "SeaKR"), ("seakr/figure3", "nq-train", "N = 1"), ("skill-rag/table1", "selfaware", "SeaKR")]
SIMPLE += [("skill-rag/table1-qwen3", "truthfulqa", "SeaKR")]
ONE_HOP = Question("q", "Who wrote Emma?")
SEVERAL_HOPS = Question("q", "Where was the director of the film that won in the year of his birth buried?")


def reply(prompt: Prompt) -> Reply:
    says = {"decompose": "1. Who was first?\n2. Where is #1?", "reason": "It was so. So the answer is Kestrel."}
    return Reply(says.get(prompt.task.name, "Kestrel"))


def tasks_asked(name: str, data: str, label: str, question: Question) -> list[str]:
    """The names of the tasks that the row's model is asked for, in order."""
    model = Scripted(reply)
    asyncio.run(made(name, data, label, model=model, retriever=ScriptedRetriever([Passage("p", "It was so.")]))(question))
    return [prompt.task.name for prompt in model.prompts]


@pytest.mark.parametrize(("name", "label"), SPLITS)
def test_questions_of_several_hops_are_split_and_those_of_one_hop_are_not(name: str, label: str) -> None:
    for question in (ONE_HOP, SEVERAL_HOPS):
        assert tasks_asked(name, "strategyqa", label, question).count("decompose") == 1
        assert "decompose" not in tasks_asked(name, "nq-dev", label, question)


@pytest.mark.parametrize(("name", "data", "label"), SIMPLE)
def test_seakrs_simple_form_asks_for_a_chain(name: str, data: str, label: str) -> None:
    for question in (ONE_HOP, SEVERAL_HOPS):
        assert set(tasks_asked(name, data, label, question)) == {"reason"}


@pytest.mark.slow
@pytest.mark.parametrize("label", ["KEQA", "SearChain"])
def test_all_real_questions_of_several_hops_are_split_and_none_of_nq(label: str, shared_data: Path) -> None:
    for data, file in (("hotpotqa", "hotpotqa.jsonl"), ("2wiki", "2wikimultihopqa.jsonl")):
        lines = (shared_data / file).read_text("utf-8").splitlines()[:200]
        questions = [Question(one["id"], one["question"]) for one in map(json.loads, lines)]
        assert len(questions) == 200
        assert all("decompose" in tasks_asked("keqa/table1", data, label, one) for one in questions)
    questions = load(str(shared_data / "nq_open.dev.jsonl"))[:200]
    assert len(questions) == 200
    assert not any("decompose" in tasks_asked("keqa/table1", "nq-dev", label, one) for one in questions)


@pytest.mark.slow
def test_seakr_asks_for_a_chain_for_all_real_questions_of_nq(shared_data: Path) -> None:
    questions = load(str(shared_data / "nq_open.dev.jsonl"))[:200]
    assert len(questions) == 200
    assert all(set(tasks_asked("seakr/table2", "nq", "SeaKR", one)) == {"reason"} for one in questions)


@pytest.mark.parametrize("name", [one for one in recipe.names() if "/" in one])
def test_no_row_makes_a_call_that_its_paper_does_not_make(name: str) -> None:
    for source in recipe.read(name).data:
        for label, plan in plans(name, source.name).items():
            (method,) = plan.methods
            assert method.values.get("extra_calls", False) is False, label
            assert name.startswith("iekr/") or method.values["extract"] != "gnothi", label
