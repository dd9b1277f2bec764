"""That recipes run the papers' form: what the authors' code does to each question, on real ones where they lie at hand."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gnothi import methods
from gnothi.config import Given, Settings
from gnothi.datasets import load
from gnothi.methods.seakr import CANDIDATES
from gnothi.reproduce import learning, recipe
from gnothi.reproduce.parts import Job, parts
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.training.reader.stages import ReaderTraining
from gnothi.training.self_knowledge.settings import SelfKnowledgeSettings
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
            assert name.startswith("iekr/") or (method.values.get("extract") == "gnothi") is ours, label


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


@pytest.mark.parametrize("name", [one for one in recipe.names() if "/" in one])
def test_every_row_is_run_where_the_paper_has_it(name: str) -> None:
    found = recipe.read(name)
    for data in found.data:
        wanted = {label for label, row in found.rows.items() if data.name not in row.without}
        assert set(plans(name, data.name)) == wanted, data.name


def test_seakrs_numbers_were_chosen_on_three_thousand_questions() -> None:
    """Appendix E."""
    assert recipe.read("seakr/figure3").questions == 3000
    for name in ("seakr/table3", "seakr/table4", "seakr/table6"):
        assert recipe.read(name).calibrate_on == 3000
        assert recipe.read(name).calibration == "nq-train"


@pytest.mark.parametrize(
    ("name", "data"), [("seakr/table2", "nq"), ("seakr/table2", "squad"), ("seakr/table6", "nq"), ("seakr/table8", "nq")]
)
def test_dragin_has_what_was_published_for_2wikimultihopqa_where_nothing_was(name: str, data: str) -> None:
    published, values = row("seakr/table1", "2wiki", "DRAGIN").values, row(name, data, "DRAGIN").values
    assert values["theta"] == published["theta"]  # whatever the model's folder says
    assert (values["top_n"], values["k"], values["max_tokens"]) == (25, 3, published["max_tokens"])


@pytest.mark.parametrize("name", ["keqa/table1", "keqa/table5"])
def test_flare_has_what_its_authors_published_for_the_data_set(name: str) -> None:
    """Its tables 7 and 9, which have StrategyQA and 2WikiMultiHopQA; the other sets have the latter's."""
    published = {"strategyqa": (0.4, 0.4, 3)}
    for data in recipe.read(name).data:
        values = row(name, data.name, "FLARE").values
        assert (values["theta"], values["beta"], values["k"]) == published.get(data.name, (0.8, 0.4, 2)), data.name


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


@pytest.mark.parametrize("name", [one for one in recipe.names() if one.startswith("seakr/")])
def test_seakrs_rows_read_passages_without_titles(name: str) -> None:
    found = recipe.read(name)
    for data in found.data:
        for label, plan in plans(name, data.name).items():
            ours = found.study.variant(label).group.startswith("Ours")
            assert all((one.passages == "titled") is ours for one in plan.models.values()), label


KEQAS = [one for one in recipe.names() if one.startswith("keqa/") and recipe.read(one).corpus]


@pytest.mark.parametrize("name", KEQAS)
def test_keqas_rows_are_asked_as_its_code_asks(name: str) -> None:
    """Passages without titles; replies of any length; yes or no for StrategyQA alone; no rule of ours for what is read."""
    for data in recipe.read(name).data:
        for label, plan in plans(name, data.name).items():
            (method,) = plan.methods
            if recipe.read(name).study.variant(label).group.startswith("Ours"):
                continue
            assert method.values.get("yes_no", data.name == "strategyqa") is (data.name == "strategyqa"), label
            chains = {"keqa": 1024, "cot": 1024, "rowen": 512, "searchain": 1024, "slimplm": 1024, "ircot": 300}  # IRCoT's code
            assert method.values["max_tokens"] == chains.get(method.name, method.values["max_tokens"]), label
            assert method.values.get("reason") != "auto" or method.name == "self_rag", label  # which has a form of its own
            titled = method.name == "ircot"  # as its own code shows them
            assert all((one.passages == "titled") is titled for one in plan.models.values()), label
            zero_shot = method.name in ("direct", "rag")
            assert all((one.demonstrations == "zero-shot") is zero_shot for one in plan.models.values()), label


def test_keqas_costs_count_every_try() -> None:
    """Algorithm 1 makes all of them."""
    assert row("keqa/table5", "nq-dev", "KEQA").values["schedule"] == "in_turn"


def test_llamas_tries_are_drawn_as_its_folder_says() -> None:
    """KEQA's code asks it by a pipeline of transformers, which takes what ``generation_config.json`` holds."""
    for data in ("nq-dev", "strategyqa"):
        llama, gpt = (row("keqa/table4", data, f"KEQA w {one}").values for one in ("LLaMA", "GPT-4"))
        assert (llama["temperature"], llama["top_p"]) == (0.6, 0.9)
        assert (gpt["temperature"], gpt["top_p"]) == (1.0, None)


@pytest.mark.parametrize("name", [one for one in recipe.names() if one.startswith("iekr/") and recipe.read(one).trainings])
def test_iekr_reads_facts_and_trains_readers_as_published(name: str) -> None:
    for training in recipe.read(name).trainings:
        if training.kind == "reader" and training.name != "reader-ours":
            assert training.settings["rank"] == 8
            assert training.settings["learning_rate"] == 3e-5
            assert training.settings["batch"] == 2
    for label, plan in plans(name, recipe.read(name).data[0].name).items():
        (method,) = plan.methods
        assert method.values.get("show", "one") == ("subjects" if label == "IEKR (ours)" else "one")
        assert "reader" in method.named, label


IEKR = [name for name in recipe.names() if name.startswith("iekr/")]


@pytest.mark.parametrize("name", [name for name in IEKR if recipe.read(name).trainings])
def test_iekr_chooses_by_the_probability_of_the_whole_answer(name: str) -> None:
    """Equations 1 and 6 to 8: the product over its tokens. Readers are chosen by it, too."""
    found = recipe.read(name)
    ways = {one.settings["choice_score"] for one in found.trainings if one.kind == "reader" and not one.name.endswith("-ours")}
    for data in found.data:
        for label, plan in plans(name, data.name).items():
            values = plan.methods[0].values
            if not found.study.variant(label).group.startswith("Ours"):
                ways |= {values["choice_score"]} if "choice_score" in values else set()
                assert values["choose"] == "likelihood" if "choose" in values else plan.methods[0].name == "flare"
    assert ways == {"sum"}


@pytest.mark.parametrize("name", IEKR)
def test_iekrs_rows_read_knowledge_without_titles_and_learn_to(name: str, tmp_path: Path) -> None:
    """Equations 3 and 5, and FLARE's code."""
    found = recipe.read(name)
    for data in found.data:
        for label, plan in plans(name, data.name).items():
            ours = found.study.variant(label).group.startswith("Ours")
            assert all((one.passages == "titled") is ours for one in plan.models.values()), label
    for part in parts(Job(recipe=found, out=tmp_path, data=tmp_path)):
        for training in part.trainings:
            if training.kind == "reader":
                given = learning.trainable(part, training, (), collect_only=True).plan.settings.given
                assert (given["model.passages"].value == "titled") is training.name.endswith("-ours"), training.name


@pytest.mark.parametrize("name", [name for name in IEKR if recipe.read(name).trainings])
def test_iekrs_readers_see_every_question_three_times(name: str) -> None:
    found = recipe.read(name)
    for training in found.trainings:
        if training.kind == "reader" and not training.name.endswith("-ours"):
            given = {key: training.settings[key] for key in ("epochs", "batch", "evaluate_every", "patience")}
            settings = ReaderTraining(**given)
            assert settings.epochs == 3
            for data in found.data:  # they do not end for want of a better validation
                assert settings.in_all(data.count_training) < settings.patience * settings.evaluate_every


@pytest.mark.parametrize("name", IEKR)
def test_iekr_asks_what_the_model_knows_in_the_papers_words(name: str) -> None:
    assert recipe.read(name).study.settings["model.demonstrations"] == "iekr"


@pytest.mark.parametrize(("name", "data"), [("iekr/table3", "obqa"), ("iekr/table10", "medqa"), ("iekr/table11", "2wiki")])
def test_flare_beside_iekr_runs_as_its_authors_code(name: str, data: str) -> None:
    values = row(name, data, "FLARE").values
    assert (values["follows"], values["search_first"]) == ("code", True)
    # A reader taught to answer at once names no "answer is": by FLARE's own rule it would have said nothing.
    assert values["extract"] == ("flare" if name == "iekr/table11" else "ircot")
    assert (values["theta"], values["beta"], values["k"]) == (0.8, 0.4, 2)


def test_iekrs_open_answers_follow_flares_framework() -> None:
    for question in (ONE_HOP, SEVERAL_HOPS):
        assert "reason" in tasks_asked("iekr/table11", "2wiki", "IEKR", question)
    (plan, other) = plans("iekr/table11", "2wiki").values()
    assert plan.sources.model == other.sources.model == plans("iekr/table5", "medqa")["IEKR"].sources.model
    assert row("iekr/table11", "2wiki", "IEKR").values["extract"] == "flare"


@pytest.mark.parametrize("name", ["skill-rag/table1", "skill-rag/table1-qwen3"])
def test_skr_compares_questions_as_its_authors_code(name: str) -> None:
    assert "pooler_output" in source("THUNLP-MT/SKR", "source/knn.py")
    (training,) = (one for one in recipe.read(name).trainings if one.kind == "knowledge-reference")
    assert training.given["encoder"].startswith("pooler:")


@pytest.mark.parametrize("name", ["skill-rag/table1", "skill-rag/table1-qwen3"])
def test_skill_rag_learns_from_the_whole_file_without_a_supervised_stage(name: str) -> None:
    found = recipe.read(name)
    training = next(one for one in found.trainings if one.name == "knowing")
    assert training.limit is None
    settings = SelfKnowledgeSettings(**{key: training.settings[key] for key in ("epochs", "evaluate_every", "patience")})
    (count,) = (data.count_training for data in found.data if data.name == "triviaqa-unfiltered")
    assert (
        settings.in_all(count) < settings.patience * settings.evaluate_every
    )  # it does not end for want of a better validation
    assert (training.settings["epochs"], training.settings["balance"], training.settings["warm_start"]) == (1, False, "none")
    assert training.settings["validation"] == 0.01  # what is kept apart to choose a checkpoint is not learnt from
    assert row(name, "selfaware", "SKILL-RAG").values["titles"] is False
    assert row(name, "selfaware", "SKILL-RAG (ours)").values["titles"] is True


@pytest.mark.parametrize("name", ["skill-rag/table1", "skill-rag/table1-qwen3"])
def test_seakrs_row_completes_plain_text_where_the_others_have_the_models_template(name: str) -> None:
    """A row's form of prompts is its own: the model is opened anew for it, not shared with rows of another form."""
    found = plans(name, "selfaware")
    forms = {label: plan.models[plan.sources.model].renderer for label, plan in found.items()}  # type: ignore[attr-defined]
    assert forms.pop("SeaKR") == "plain"
    assert forms.pop("Self-RAG") == "instruction"
    assert set(forms.values()) == {"auto"}
    assert found["SeaKR"].sources != found["Standard RAG"].sources == found["CRAG"].sources
    for label, plan in found.items():  # the rest of its form, too: no titles, and the answer alone is read of a chain
        seakr, values = label == "SeaKR", plan.methods[0].values
        assert all((one.passages == "text") is seakr for one in plan.models.values()), label
        assert (values["extract"] == "seakr") is (values.get("follows") == "code") is seakr, label


def test_adaptive_rags_strategies_are_asked_for_labels_as_they_answer(tmp_path: Path) -> None:
    job = Job(recipe=recipe.read("seakr/table8"), out=tmp_path, data=tmp_path)
    answering = row("seakr/table8", "hotpotqa", "Adaptive-RAG").values
    for part in parts(job):
        plan = learning.asking(part, part.trainings[0])
        _, once, steps = plan.methods
        assert [one.name for one in plan.methods] == ["direct", "rag", "ircot"]
        assert plan.models[plan.sources.model].renderer == "plain"  # type: ignore[attr-defined]
        assert all(one.values["extra_calls"] is False and one.values["extract"] == "ircot" for one in plan.methods)
        assert (once.values["k"], once.values["reason"]) == (answering["k"], answering["reason"])
        for key, ours in (
            ("k", "steps_k"),
            ("max_steps", "max_steps"),
            ("max_passages", "max_passages"),
            ("follows", "follows"),
        ):
            assert steps.values[key] == answering[ours]


def test_what_is_said_on_the_command_line_reaches_trainings(tmp_path: Path) -> None:
    given = Settings(
        {"rag.k": Given("7", "--set", 2), "model.dtype": Given("float32", "--set", 2), "seakr.candidates": Given(2, "--set", 2)}
    )
    job = Job(recipe=recipe.read("skill-rag/table1"), out=tmp_path, data=tmp_path, settings=given)
    part = parts(job)[0]
    known = next(one for one in part.trainings if one.name == "known")
    plan = learning.asking(part, known)
    assert [(one.name, one.values["extract"]) for one in plan.methods] == [("direct", "whole"), ("rag", "whole")]
    assert plan.methods[1].values["k"] == 7
    assert plan.models[plan.sources.model].dtype == "float32"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [one for one in recipe.names() if one.startswith("keqa/")])
def test_keqas_labels_are_by_plain_prompts_as_its_answers(name: str, tmp_path: Path) -> None:
    part = parts(Job(recipe=recipe.read(name), out=tmp_path, data=tmp_path))[0]
    for training in part.trainings:
        plan = learning.trainable(part, training, (), collect_only=True).plan
        heard = plan.settings.given["model.renderer"].value
        assert heard == "plain"
