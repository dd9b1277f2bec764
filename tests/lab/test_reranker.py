"""The shipped re-ranker and the judge it was trained from."""

import pytest

from gnothi import lab
from gnothi.lab.graph import graph
from gnothi.lab.language import BY_NAME
from gnothi.methods.reflection import query
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


async def test_knowledge_of_the_first_hop_lifts_the_second() -> None:
    """With the first hop told, the needed fact stands higher than without it: in the middle of the questions, ten times."""
    reranker, world = CrossEncoderReranker.open("lab"), graph()
    places: dict[bool, list[int]] = {True: [], False: []}
    asked = [q for q in lab.questions(lab.world(), "two_hop_choice", 60) if q.metadata["right_action"] == "retrieve"][:12]
    for question in asked:
        hops = question.metadata["hops"]
        first, second = (BY_NAME[hop["relation"]].statements[0].format(s=hop["subject"], o=hop["object"]) for hop in hops)
        around = await world.neighbourhood([hops[0]["subject"], *question.choices], 2, 100)
        facts = [fact.text for fact in around.facts]
        if second not in facts:
            continue
        for told in places:
            knowledge = [Passage("memory", first)] if told else []
            scores = await reranker.score(query(question, knowledge), facts)
            places[told].append(sum(score >= scores[facts.index(second)] for score in scores))
    await reranker.aclose()
    with_it, without = (sorted(places[told])[len(places[told]) // 2] for told in (True, False))
    assert with_it * 10 <= without
