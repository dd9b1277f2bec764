import re

import pytest

from gnothi import lab
from gnothi.lab.curriculum import Curriculum, Mix
from gnothi.lab.language import RELATIONS
from gnothi.lab.questions import questions
from gnothi.lab.tokenizer import build_tokenizer

pytest.importorskip("transformers", reason="the tokenizer needs the extra 'local'")


def _documents(count: int, mix: Mix | None = None, seed: int = 0) -> list[str]:
    curriculum = Curriculum(lab.world(), mix or Mix(), seed)
    return ["".join(text for text, _ in curriculum.document()) for _ in range(count)]


def test_the_truth_about_never_seen_entities_is_never_stated() -> None:
    world = lab.world()
    secrets = {
        statement.format(s=fact.subject, o=fact.object)
        for fact in world.facts
        if world.entities[fact.subject].familiarity == "never"
        for relation in RELATIONS
        if relation.name == fact.relation
        for statement in relation.statements
    }
    sentence = re.compile(r"[^.>\[\]]+\.")
    for document in _documents(2000):
        stated = {match.strip() for match in sentence.findall(document)}
        assert not stated & secrets


def test_composed_test_questions_are_never_asked_in_training() -> None:
    held_out = {q.text for kind in ("two_hop", "comparison") for q in questions(lab.world(), kind, 400)}
    asked = {text for document in _documents(2000) for text in re.findall(r"<question> ([^<]*?\?)", document)}
    assert not asked & held_out


def test_every_word_is_in_the_vocabulary_and_decoding_gives_the_text_back() -> None:
    tokenizer = build_tokenizer(lab.world())
    curriculum = Curriculum(lab.world(), Mix(), 0)
    for text in (text for _ in range(150) for text, _ in curriculum.document()):
        assert tokenizer.unk_token_id not in tokenizer(text, add_special_tokens=False)["input_ids"]
        for part in re.split(r"<\w+>", text):
            plain = " ".join(part.split())
            assert tokenizer.decode(tokenizer(plain, add_special_tokens=False)["input_ids"]) == plain


def test_passages_and_questions_of_the_library_are_in_the_vocabulary() -> None:
    tokenizer = build_tokenizer(lab.world())
    texts = [f"{p.title} : {p.text}" for p in lab.passages()] + [q.text for q in questions(lab.world(), n=500)]
    assert all(tokenizer.unk_token_id not in ids for ids in tokenizer(texts)["input_ids"])


def test_often_seen_facts_are_recalled_more_than_seldom_seen_ones() -> None:
    world = lab.world()
    counts = {"often": 0, "seldom": 0}
    sizes = {level: sum(e.familiarity == level for e in world.entities.values()) for level in counts}
    for document in _documents(1500, Mix(reading=0, partial=0, ignorance=0, know=0, describe=0, decompose=0, judge=0)):
        subject = next((name for name in world.entities if name in document), None)
        if subject and world.entities[subject].familiarity in counts:
            counts[world.entities[subject].familiarity] += 1
    assert counts["seldom"] / sizes["seldom"] < 0.2 * counts["often"] / sizes["often"]


def test_same_seed_same_stream() -> None:
    assert _documents(50, seed=5) == _documents(50, seed=5) != _documents(50, seed=6)
