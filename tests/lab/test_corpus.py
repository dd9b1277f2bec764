from collections import Counter

import pytest

from gnothi import lab
from gnothi.lab.corpus import passages, triples


@pytest.mark.slow
def test_coverage_decides_what_the_library_says() -> None:
    world = lab.world()
    held = {entity: [p for p in passages(world) if p.title == entity] for entity in world.entities}
    for name, entity in world.entities.items():
        if not world.by_subject[name]:
            continue
        facts = world.by_subject[name].values()
        right = [all(fact.object in passage.text for fact in facts) for passage in held[name]]
        wrong = [all(fact.wrong in passage.text for fact in facts) for passage in held[name]]
        expected = {"covered": [True], "absent": [], "contradicted": [False], "ambiguous": [True, False]}[entity.coverage]
        assert right == expected
        assert sum(wrong) >= expected.count(False)


def test_passages_repeat_and_have_their_own_ids() -> None:
    assert lab.passages() == lab.passages()
    assert max(Counter(passage.id for passage in lab.passages()).values()) == 1


def test_triples_say_what_the_passages_say() -> None:
    texts: dict[str, str] = {}
    for passage in lab.passages():
        texts[passage.title] = texts.get(passage.title, "") + passage.text
    for subject, _, value in triples(lab.world()):
        assert value in texts[subject]
