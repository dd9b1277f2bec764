from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi import lab
from gnothi.errors import InvalidSetting
from gnothi.lab.corpus import passages, triples
from gnothi.lab.language import RELATIONS
from gnothi.lab.world import COVERAGES, FAMILIARITIES, Grid, build_world
from gnothi.types import Passage
from tests.messages import refused


def test_same_seed_same_world_other_seed_other_world() -> None:
    assert build_world(3).facts == build_world(3).facts
    assert build_world(3).facts != build_world(4).facts


def test_every_entity_has_every_fact_of_its_type() -> None:
    world = build_world(0)
    for name, entity in world.entities.items():
        assert set(world.by_subject[name]) == {relation.name for relation in RELATIONS if relation.subject == entity.type}


def test_facts_are_of_the_right_type_and_wrong_ones_differ() -> None:
    world = build_world(0)
    types = {relation.name: relation.object for relation in RELATIONS}
    for fact in world.facts:
        assert fact.object in world.values[types[fact.relation]]
        assert fact.wrong in world.values[types[fact.relation]]
        assert len({fact.subject, fact.object, fact.wrong}) == 3


def test_names_are_unique_whatever_their_case() -> None:
    world = build_world(0)
    assert len({name.lower() for name in world.entities}) == len(world.entities)


@settings(max_examples=5)
@given(st.lists(st.integers(1, 20), min_size=7, max_size=7), st.integers(0, 5))
def test_the_grid_is_kept(parts: list[int], seed: int) -> None:
    known, held = parts[:3], parts[3:]
    grid = Grid(*(part / sum(known) for part in known), *(part / sum(held) for part in held))
    world = build_world(seed, grid)
    people = [entity for entity in world.entities.values() if entity.type == "person"]
    familiarity = Counter(entity.familiarity for entity in people)
    coverage = Counter(entity.coverage for entity in people)
    for level in FAMILIARITIES:
        assert familiarity[level] == pytest.approx(getattr(grid, level) * len(people), abs=1)
    for kind in COVERAGES:  # spread within each level of familiarity: at most one off in each
        assert coverage[kind] == pytest.approx(getattr(grid, kind) * len(people), abs=3)


def test_shares_must_sum_to_one() -> None:
    with refused(InvalidSetting):
        Grid(often=0.9)


def test_coverage_decides_what_the_library_says() -> None:
    world = lab.world()
    held: dict[str, list[Passage]] = {name: [] for name in world.entities}
    for passage in passages(world):
        held[passage.title].append(passage)
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
