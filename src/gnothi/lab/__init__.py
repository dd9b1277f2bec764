"""The laboratory: an invented world, and a small model of which it is known what it knows.

``world()`` is the built-in world, the one the shipped model was trained on; ``passages()`` and ``triples()`` are its
library, ``questions()`` its questions with their truths. Nothing here needs torch; training and probing do.
"""

from __future__ import annotations

from functools import cache

from gnothi.lab import corpus
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


@cache
def world() -> World:
    """The built-in world: seed 0, default grid."""
    return build_world()


def passages() -> list[Passage]:
    """The built-in world's library."""
    return corpus.passages(world())


def triples() -> list[Triple]:
    """The built-in world's graph."""
    return corpus.triples(world())
