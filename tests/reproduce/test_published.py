"""That recipes run the papers' form: what the authors' code does to each question, on real ones where they lie at hand."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gnothi import methods
from gnothi.datasets import load
from gnothi.methods.seakr import CANDIDATES
from gnothi.reproduce import recipe
from gnothi.reproduce.parts import Job, parts
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, Prompt, Question
from tests.methods.oracles.authors import source
from tests.reproduce.planned import made, plans, row

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
    for data in recipe.read(name).data:
        for label, plan in plans(name, data.name).items():
            (method,) = plan.methods
            ours = recipe.read(name).study.variant(label).group.startswith("Ours")
            assert method.values.get("extra_calls", False) is ours, label
            assert name.startswith("iekr/") or (method.values["extract"] == "gnothi") is ours, label


@pytest.mark.parametrize(("data", "folder"), [("2wiki", "2WikiMultihopQA"), ("hotpotqa", "HotpotQA"), ("iirc", "IIRC")])
def test_dragin_has_what_its_authors_published_for_the_data_set(data: str, folder: str) -> None:
    published = json.loads(source("oneal2000/DRAGIN", f"config/Llama2-7b-chat/{folder}/DRAGIN.json"))
    for name in ("seakr/table1", "seakr/table6", "seakr/table8"):
        if data in {one.name for one in recipe.read(name).data}:
            values = row(name, data, "DRAGIN").values
            assert values["theta"] == published["hallucination_threshold"]
            assert values["top_n"] == published["retrieve_keep_top_k"]
            assert values["k"] == published["retrieve_topk"]
            assert values["max_tokens"] == published["generate_max_length"]


def test_all_rows_read_as_many_passages_a_search() -> None:
    for label, plan in plans("seakr/table1", "2wiki").items():
        (method,) = plan.methods
        assert label in ("CoT",) or (method.values.get("k") or method.values["candidates"] or CANDIDATES) == 3


@pytest.mark.parametrize("label", ["SeaKR", "FLARE", "DRAGIN", "Self-RAG"])
def test_a_simple_question_takes_one_search(label: str) -> None:
    unsure = Scripted(lambda _: Reply("It was once, long ago, in Orvel.", (-3.0, -0.1), 9.0), thresholds={"rind": 0.0})
    retriever = ScriptedRetriever([Passage("p", "It was so.")])
    values = {**row("seakr/table2", "nq", label).values, "theta": 0.0, "critic": "judgements", "retrieve": "always"}
    name = row("seakr/table2", "nq", label).name
    known = {key: one for key, one in values.items() if key in methods.spec(name).settings}
    asyncio.run(
        methods.make(name, {"model": unsure, "retriever": retriever}, known | ({"theta": 1.0} if name == "flare" else {}))(
            ONE_HOP
        )
    )
    assert len(retriever.queries) == 1


def test_keqas_reference_is_of_all_four_data_sets(tmp_path: Path) -> None:
    for name in ("keqa/table1", "keqa/table5"):
        for part in parts(Job(recipe=recipe.read(name), out=tmp_path, rehearse=True)):
            (training,) = part.trainings
            assert part.learnt_from(training) == ("lab-train:one_hop", "lab-train:yes_no", "lab-train:two_hop")
            questions = part.lessons(replace(training, limit=5))
            assert len(questions) == len({one.id for one in questions}) == 15
            assert part.study.settings.get("keqa.references") == "best_first"


@pytest.mark.parametrize("name", [one for one in recipe.names() if one.startswith("iekr/") and recipe.read(one).trainings])
def test_iekr_reads_facts_and_trains_readers_as_published(name: str) -> None:
    for training in recipe.read(name).trainings:
        if training.kind == "reader":
            assert training.settings["rank"] == 8
            assert training.settings["learning_rate"] == 3e-5
            assert training.settings["batch"] == 2
    for label, plan in plans(name, recipe.read(name).data[0].name).items():
        (method,) = plan.methods
        assert method.values.get("show", "one") == "one"
        assert method.name == "gkp" or "reader" in method.named, label


@pytest.mark.parametrize("name", ["skill-rag/table1", "skill-rag/table1-qwen3"])
def test_skill_rag_learns_from_the_whole_file_without_a_supervised_stage(name: str) -> None:
    training = next(one for one in recipe.read(name).trainings if one.name == "knowing")
    assert training.limit is None
    assert (training.settings["epochs"], training.settings["balance"], training.settings["warm_start"]) == (1, False, "none")
    assert row(name, "selfaware", "SKILL-RAG").values["titles"] is False
    assert row(name, "selfaware", "SKILL-RAG, our form").values["titles"] is True
