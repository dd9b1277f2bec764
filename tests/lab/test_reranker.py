"""The shipped re-ranker and the judge it was trained from."""

import pytest

from gnothi import lab
from gnothi.lab.graph import graph
from gnothi.lab.language import BY_NAME
from gnothi.methods.steps.reflection import query
from gnothi.retrieval.rerank import CrossEncoderReranker
from gnothi.types import Passage

pytest.importorskip("sentence_transformers", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")


def test_the_judge_reads_a_pair_in_the_models_own_format() -> None:
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
    reranker, world = CrossEncoderReranker.open("lab"), graph()
    places: dict[bool, list[int]] = {True: [], False: []}
    for question in lab.questions(lab.world(), "two_hop_choice", 20):
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
    assert len(places[True]) >= 7
    with_it, without = (sorted(places[knows])[len(places[knows]) // 2] for knows in (True, False))
    assert with_it * 5 <= without
