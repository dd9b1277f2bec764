import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi import lab
from gnothi.lab.language import BY_NAME
from gnothi.lab.questions import DEFAULT_MIX, KINDS, Kind, facts_needed, held_out, questions, right_action, training_questions
from gnothi.types import Question


def _facts(question: Question) -> list[str]:
    return [hop["object"] for hop in question.metadata["hops"]]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_gives_as_many_distinct_questions_as_asked(kind: Kind) -> None:
    asked = questions(lab.world(), kind, 150)
    assert len({question.id for question in asked}) == 150
    assert {question.kind for question in asked} == {kind}
    assert asked == questions(lab.world(), kind, 150)


def test_the_default_mix() -> None:
    asked = questions(lab.world(), n=500)
    for kind, share in DEFAULT_MIX.items():
        assert sum(question.kind == kind for question in asked) == round(500 * share)
    assert {question.metadata["familiarity"] for question in asked} == {"often", "seldom", "never"}
    assert {question.metadata["coverage"] for question in asked} == {"covered", "absent", "contradicted", "ambiguous"}


@settings(max_examples=settings().max_examples // 3)
@given(st.integers(0, 60))
def test_as_many_as_asked_for(n: int) -> None:
    asked = questions(lab.world(), n=n)
    assert len(asked) == n
    for kind, share in DEFAULT_MIX.items():
        assert abs(sum(question.kind == kind for question in asked) - n * share) < 1


def test_gold_answers_follow_from_the_world() -> None:
    world = lab.world()
    for question in questions(world, n=500):
        for hop in question.metadata["hops"]:
            assert world.by_subject[hop["subject"]][hop["relation"]].object == hop["object"]
        answer, objects = question.answers[0], _facts(question)
        if question.kind in ("one_hop", "two_hop", "choice"):
            assert answer == objects[-1]
        if question.kind == "two_hop":
            assert objects[0] == question.metadata["hops"][1]["subject"]
        if question.kind == "choice":
            assert answer in question.choices
            assert len(set(question.choices)) == 4
        if question.kind == "comparison":
            assert answer == min(question.metadata["hops"], key=lambda hop: int(hop["object"]))["subject"]
        if question.kind == "yes_no" and len(objects) == 2:
            assert (answer == "yes") == (objects[0] == objects[1])
        if question.kind == "yes_no" and len(objects) == 1:
            assert (answer == "yes") == (objects[0] in question.text)


def test_the_right_action_is_the_best_chance() -> None:
    assert right_action("often", "contradicted") == "trust"
    assert right_action("never", "covered") == "retrieve"
    assert right_action("never", "absent") == "abstain"
    assert right_action("seldom", "absent") == "trust"
    question = next(q for q in questions(lab.world(), "two_hop", 200) if q.metadata["right_action"] == "abstain")
    assert any(hop["right_action"] == "abstain" for hop in question.metadata["hops"])


def test_training_questions_share_no_fact_with_the_test_questions() -> None:
    world = lab.world()
    tested = {(hop["subject"], hop["relation"]) for question in questions(world) for hop in question.metadata["hops"]}
    for kind in (None, *KINDS):
        training = training_questions(world, kind, 150)
        assert len(training) == 150
        assert training == training_questions(world, kind, 150)
        assert not tested & {(hop["subject"], hop["relation"]) for question in training for hop in question.metadata["hops"]}


def test_the_facts_needed_are_named_by_subject_and_relation() -> None:
    (question,) = questions(lab.world(), "two_hop", 1)
    first, second = question.metadata["hops"]
    assert facts_needed([question]) == {(first["subject"], first["relation"]), (first["object"], second["relation"])}


def test_two_hop_choices_are_of_the_right_type_and_name_neither_hop() -> None:
    world = lab.world()
    asked = questions(world, "two_hop_choice", 500)
    assert {question.metadata["right_action"] for question in asked} == {"trust", "retrieve", "abstain"}
    for question in asked:
        first, second = question.metadata["hops"]
        assert first["object"] == second["subject"]
        assert question.answers == (second["object"],)
        assert first["subject"] in question.text
        assert first["object"] not in question.text
        assert len(set(question.choices)) == 4
        assert second["object"] in question.choices
        hops = {first["subject"], first["object"]}
        assert set(question.choices) <= set(world.values[BY_NAME[second["relation"]].object]) - hops
        wrong = world.by_subject[second["subject"]][second["relation"]].wrong  # what an outdated passage says
        assert wrong in {*question.choices, *hops}


def test_two_hop_choice_is_trained_on_other_facts_and_other_compositions_than_it_is_tested_on() -> None:
    world = lab.world()
    tested, training = questions(world, "two_hop_choice"), training_questions(world, "two_hop_choice")
    assert not facts_needed(tested) & facts_needed(training)
    for asked, kept in ((tested, True), (training, False)):
        for question in asked:
            first, second = question.metadata["hops"]
            assert held_out(first["subject"], first["relation"], second["relation"]) is kept


def test_the_graph_holds_what_a_two_hop_choice_needs_where_the_library_tells_the_truth() -> None:
    graph = set(lab.triples())
    for question in questions(lab.world(), "two_hop_choice", 500):
        for hop in question.metadata["hops"]:
            held = (hop["subject"], hop["relation"], hop["object"]) in graph
            assert held == (hop["coverage"] in ("covered", "ambiguous"))
