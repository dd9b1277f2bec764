"""What the world's library holds: passages and triples, right, missing, outdated or about a namesake."""

from __future__ import annotations

import random
from collections.abc import Mapping

from gnothi.lab.language import BY_NAME
from gnothi.lab.world import World
from gnothi.types import Passage

Triple = tuple[str, str, str]


def passage_text(subject: str, objects: Mapping[str, str], rng: random.Random) -> str:
    """Sentences stating relation name → object of one subject, in random order and wording."""
    names = list(objects)
    rng.shuffle(names)
    return " ".join(rng.choice(BY_NAME[name].statements).format(s=subject, o=objects[name]) for name in names)


def _accounts(world: World, subject: str) -> list[tuple[str, dict[str, str]]]:
    """What the corpus says of a subject: (kind of account, relation name → object) per passage."""
    facts = world.by_subject[subject].values()
    true = {fact.relation: fact.object for fact in facts}
    wrong = {fact.relation: fact.wrong for fact in facts}
    return {
        "covered": [("true", true)],
        "absent": [],
        "contradicted": [("outdated", wrong)],
        "ambiguous": [("true", true), ("namesake", wrong)],
    }[world.entities[subject].coverage]


def passages(world: World) -> list[Passage]:
    """The library: one passage an account, titled with the subject's name, ids stable."""
    library: list[Passage] = []
    for number, subject in enumerate(world.entities):
        if not world.by_subject[subject]:
            continue
        for kind, objects in _accounts(world, subject):
            rng = random.Random(f"{world.seed}/{subject}/{kind}")
            library.append(Passage(f"lab-{number:04d}-{kind}", passage_text(subject, objects, rng), subject))
    return library


def triples(world: World) -> list[Triple]:
    """The library's graph: (subject, relation name, object) for everything its passages say."""
    return [
        (subject, relation, value)
        for subject in world.entities
        for _, objects in _accounts(world, subject)
        for relation, value in objects.items()
    ]
