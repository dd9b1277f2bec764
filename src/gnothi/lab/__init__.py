"""The laboratory: an invented world, and a small model of which it is known what it knows.

``world()`` is the built-in world, the one the shipped model was trained on; ``passages()`` and ``triples()`` are the library of
a world, ``questions()`` its questions with their truths. Nothing here needs torch; training and probing do.
"""

from __future__ import annotations

from gnothi.lab import corpus, worlds
from gnothi.lab.corpus import Triple
from gnothi.lab.questions import KINDS, Action, Kind, questions, right_action, training_questions
from gnothi.lab.world import Grid, World, build_world
from gnothi.types import Passage

__all__ = [
    "KINDS",
    "Action",
    "Grid",
    "Kind",
    "World",
    "build_world",
    "passages",
    "questions",
    "right_action",
    "training_questions",
    "triples",
    "world",
]


def world(name: str = "") -> World:
    """The built-in world (seed 0, default grid), or the one of that name: a seed, a lab model's folder, a TOML file. Raises
    UnknownName or InvalidInput."""
    return worlds.find(name)


def passages(of: World | None = None) -> list[Passage]:
    """A world's library; the built-in one's."""
    return corpus.passages(of or world())


def triples(of: World | None = None) -> list[Triple]:
    """A world's graph; the built-in one's."""
    return corpus.triples(of or world())
