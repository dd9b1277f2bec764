"""The model that ships: that it is the one the recipe makes, and that it can do what the laboratory is for."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import gnothi
from gnothi import lab, methods
from gnothi.events import Decided, Event, Searched, record
from gnothi.lab.language import BY_NAME
from gnothi.lab.named import graph
from gnothi.lab.tokenizer import TASKS, build_tokenizer
from gnothi.lab.training import Recipe
from gnothi.lab.worlds import declaration
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.reflection import query
from gnothi.metrics import score
from gnothi.models import LAB_FOLDER, load_model
from gnothi.models.identity import Identity, identify
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.rerank import CrossEncoderReranker
from gnothi.retrieval.wrappers import Traced
from gnothi.runs.folder import read_rows
from gnothi.seeding import question_scope
from gnothi.signals import probe_folder, registry
from gnothi.signals.probe_folder import LAB, open_probe
from gnothi.stats.auroc import auroc
from gnothi.stats.paired import paired_test
from gnothi.types import Answer, Passage, Question

pytest.importorskip("torch", reason="needs the extra 'local'")


def test_it_is_what_the_default_recipe_makes_in_the_default_world() -> None:
    declared = json.loads((LAB_FOLDER / "gnothi.json").read_text("utf-8"))
    assert declared["recipe"] == asdict(Recipe())
    assert declared["world"] == declaration(lab.world())
    assert declared["tasks"] == sorted(TASKS)
    last = json.loads((LAB_FOLDER / "curve.jsonl").read_text("utf-8").splitlines()[-1])
    assert last["step"] == Recipe().steps


def test_its_tokenizer_is_the_worlds() -> None:
    from transformers import AutoTokenizer

    assert AutoTokenizer.from_pretrained(LAB_FOLDER).get_vocab() == build_tokenizer(lab.world()).get_vocab()


def test_it_is_small_enough_to_ship() -> None:
    assert sum(path.stat().st_size for path in LAB_FOLDER.iterdir()) < 15e6


def test_it_comes_with_a_threshold_for_every_signal() -> None:
    from gnothi.signals import registry
    from gnothi.signals.probe_folder import open_probe

    declared = json.loads((LAB_FOLDER / "gnothi.json").read_text("utf-8"))
    learnt = {name for name in registry.names() if registry.reads_probe(name)}
    assert declared["thresholds"].keys() >= {"gram", "perplexity", "ln_entropy", "energy", "consistency", "self_report"}
    assert declared["thresholds"].keys() <= set(registry.names()) - learnt
    others = {name for name in registry.names() if not registry.counts(name)} - learnt - declared["thresholds"].keys()
    assert all(registry.find(name).default_threshold is not None for name in others), "a gate without a threshold"
    assert set(open_probe("lab").thresholds) == learnt


@pytest.mark.slow
def test_it_recalls_guesses_reads_and_reasons() -> None:
    from benchmarks.lab_abilities import run

    results = asyncio.run(run("lab", 20))
    share = {name: sum(right) / len(right) for name, right in results.items()}
    assert share["closed book, one hop, often seen"] >= 0.9
    assert share["closed book, one hop, never seen"] <= 0.1
    assert share["gold passage, never seen"] >= 0.95
    assert share["gold passage and 2 distractors, never seen"] >= 0.85
    assert share["two hops, both passages, never seen"] >= 0.75
    assert share["lowest U picks the gold passage of three"] >= 0.8
    assert share["judges whether answers mean the same"] >= 0.8
    assert share["judges whether a passage is useful"] >= 0.8
    assert share["decomposes"] >= 0.9


Outcome = tuple[Answer, list[Event]]


async def _answers(name: str, questions: list[Question]) -> list[Outcome]:
    model, index = load_model("lab"), Traced(BM25Index.in_memory(lab.passages()))
    method = methods.create(name, {"model": model, "retriever": index}, {})

    async def one(question: Question) -> Outcome:
        with question_scope(0, question.id), record() as events:
            return await method(question), events

    try:
        return list(await asyncio.gather(*(one(question) for question in questions)))
    finally:
        await index.aclose()
        await model.aclose()


@pytest.mark.slow
def test_seakr_beats_never_and_always_retrieving_at_two_thirds_of_the_searches() -> None:
    questions = lab.questions(lab.world(), n=100, seed=11)
    outcomes = {name: asyncio.run(_answers(name, questions)) for name in ("direct", "cot", "rag", "seakr")}
    em = {
        name: [score(answer.text, question.answers)["em"] for (answer, _), question in zip(given, questions, strict=True)]
        for name, given in outcomes.items()
    }
    for other in ("direct", "rag"):
        test = paired_test(em["seakr"], em[other])
        assert test.difference > 0
        assert test.p < 0.05
    searches = sum(isinstance(event, Searched) for _, events in outcomes["seakr"] for event in events)
    assert searches <= 0.65 * len(questions)
    scores = [
        max(e.score for e in events if isinstance(e, Decided) and e.kind == "retrieve" and e.score is not None)
        for _, events in outcomes["seakr"]
    ]
    area = auroc(scores, [right < 1 for right in em["cot"]])
    assert area is not None
    assert area >= 0.9


def test_the_folder_holds_nothing_else() -> None:
    expected = {"config.json", "curve.jsonl", "generation_config.json", "gnothi.json", "model.safetensors"}
    assert {path.name for path in Path(LAB_FOLDER).iterdir()} == expected | {"tokenizer.json", "tokenizer_config.json"}


@pytest.mark.slow
def test_iekr_by_its_defaults_beats_memory(tmp_path: Path) -> None:
    gnothi.evaluate("lab:choice", ["direct", "iekr"], tmp_path, limit=50, seed=14)
    right = {row.key: row.metrics["em"] for row in read_rows(tmp_path)}
    names = sorted({question for _, question in right})
    found = paired_test([right["iekr", name] for name in names], [right["direct", name] for name in names])
    assert len(names) == 50
    assert found.difference > 0.1
    assert found.p < 0.01


def test_it_is_of_the_shipped_model_and_small() -> None:
    probe = open_probe(LAB)
    assert Identity(**probe.about["model"]) == identify("lab")
    assert sorted(path.name for path in probe_folder.LAB_FOLDER.iterdir()) == ["probe.json", "probe.npz", "question.json"]
    assert sum(path.stat().st_size for path in probe_folder.LAB_FOLDER.iterdir()) < 200_000


def test_it_tells_which_answers_are_wrong() -> None:
    from gnothi.models import load_model

    probe, settings = open_probe(LAB), ReaderSettings()
    asked = lab.questions(lab.world(), "one_hop", 120)

    async def told() -> np.ndarray:
        model = load_model("lab")
        try:
            signals = [registry.create(name, probe=probe) for name in ("probe", "question")]
            return np.array(
                [
                    await asyncio.gather(*(signal.from_prompt(model, settings.reading(one)) for one in asked))  # type: ignore[attr-defined]
                    for signal in signals
                ]
            )
        finally:
            await model.aclose()

    by_state, by_words = asyncio.run(told())
    # Single facts: those often seen are known and those never seen are not, with hardly an exception.
    clear = np.array([one.metadata["familiarity"] != "seldom" for one in asked])
    unknown = np.array([one.metadata["familiarity"] == "never" for one in asked])
    assert (auroc(by_state[clear], unknown[clear]) or 0) > 0.98
    assert (auroc(by_words[clear], unknown[clear]) or 0) > 0.8


def test_the_judge_reads_a_pair_in_the_models_own_format() -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra 'dense'")
    from gnothi.lab.judge import judge

    model = judge()
    (row,) = model.preprocess([("Who directed The Amber Harbour?", "The director of The Amber Harbour is Ada.")])["input_ids"]
    tokenizer = model[0].tokenizer
    assert tokenizer.decode(row).startswith("<bos><question> Who directed The Amber Harbour?<passage> The director")
    assert tokenizer.decode(row).endswith("<useful>")
    assert tokenizer.decode([model[1].true_token_id]).strip() == "Yes"
    assert tokenizer.decode([model[1].false_token_id]).strip() == "No"


def say(subject: str, relation: str, value: str) -> str:
    return BY_NAME[relation].statements[0].format(s=subject, o=value)


def told(subject: str) -> str:
    """What the model says about an entity that it knows."""
    return " ".join(say(subject, fact.relation, fact.object) for fact in lab.world().by_subject.get(subject, {}).values())


async def test_knowledge_of_the_first_hop_lifts_the_second() -> None:
    """With what the model knows in the query, the needed fact stands much higher than without: in the middle, five times."""
    pytest.importorskip("sentence_transformers", reason="needs the extra 'dense'")
    reranker, world = CrossEncoderReranker.open("lab"), graph()
    places: dict[bool, list[int]] = {True: [], False: []}
    for question in lab.questions(lab.world(), "two_hop_choice", 12):
        first, second = question.metadata["hops"]
        around = await world.neighbourhood([first["subject"], *question.choices], 2, 100)
        facts = [fact.text for fact in around.facts]
        needed = say(second["subject"], second["relation"], second["object"])
        if first["familiarity"] != "often" or needed not in facts:
            continue
        internal = [Passage("memory", told(subject)) for subject in (first["subject"], *question.choices)]
        for knows in places:
            scores = await reranker.score(query(question, internal if knows else ()), facts)
            places[knows].append(sum(score >= scores[facts.index(needed)] for score in scores))
    await reranker.aclose()
    assert len(places[True]) >= 4
    with_it, without = (sorted(places[knows])[len(places[knows]) // 2] for knows in (True, False))
    assert with_it * 5 <= without
