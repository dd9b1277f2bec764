"""The invented world: entities, facts, and for each entity how well the model knows it and what the corpus holds on it.

Everything follows from a seed. Two grids meet in every entity: ``familiarity`` (how often training showed its facts:
often, seldom, never) and ``coverage`` (what the corpus says: the truth, nothing, something wrong, or two namesakes).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from gnothi.errors import InvalidSetting
from gnothi.lab.language import INDUSTRIES, PROFESSIONS, RELATIONS, YEARS, Relation

Familiarity = Literal["often", "seldom", "never"]
Coverage = Literal["covered", "absent", "contradicted", "ambiguous"]
FAMILIARITIES: tuple[Familiarity, ...] = ("often", "seldom", "never")
COVERAGES: tuple[Coverage, ...] = ("covered", "absent", "contradicted", "ambiguous")

# How often a fact's object is as familiar as its subject: in life too, well-known films have well-known directors.
_ASSORTATIVITY = 0.6
_COUNTS = {"person": 320, "film": 120, "book": 80, "company": 80, "city": 60, "country": 12}
_GIVEN = (
    "Ada Bram Cleo Doran Edda Falk Greta Hugo Ines Jorun Kasimir Lida Milo Nora Oskar Petra Quill Runa "
    "Silas Thea Ulric Vera Wendel Xenia Yorick Zelda"
).split()
_ONSETS = "b br d dr f g gl h k kr l m n p r s st t tr v z".split()
_VOWELS = "a e i o u au ei".split()
_CODAS = "l m n r s t nd rk lm rn".split()
_ADJECTIVES = (
    "Amber Silent Broken Hidden Golden Paper Winter Crimson Distant Hollow Burning Gentle Iron Velvet Restless Pale"
).split()
_NOUNS = (
    "Harbour Garden Ledger Mirror Orchard Bridge Lantern River Station Castle Letter Voyage Island Shadow Window Meadow"
).split()


@dataclass(frozen=True, slots=True)
class Entity:
    name: str
    type: str
    familiarity: Familiarity
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class Fact:
    """A triple of the world. ``wrong`` is what a contradicting passage or a namesake's passage says instead."""

    subject: str
    relation: str
    object: str
    wrong: str


@dataclass(frozen=True)
class Grid:
    """Shares of the two grids over entities; each sums to 1 (``docs/concepts/laboratory.md`` says why they are these)."""

    often: float = 0.6
    seldom: float = 0.1
    never: float = 0.3
    covered: float = 0.64
    absent: float = 0.08
    contradicted: float = 0.14
    ambiguous: float = 0.14

    def __post_init__(self) -> None:
        for names in (FAMILIARITIES, COVERAGES):
            shares = [getattr(self, name) for name in names]
            if min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
                raise InvalidSetting(f"shares of {', '.join(names)}: got {shares}, expected numbers from 0 that sum to 1.")


@dataclass(frozen=True)
class World:
    """All entities and facts of one seed."""

    seed: int
    grid: Grid
    entities: Mapping[str, Entity]
    facts: tuple[Fact, ...]
    values: Mapping[str, tuple[str, ...]] = field(repr=False)
    """Names of every type, the plain-word types (year, profession, industry) included."""

    @cached_property
    def by_subject(self) -> dict[str, dict[str, Fact]]:
        """subject → relation name → fact."""
        index: dict[str, dict[str, Fact]] = {name: {} for name in self.entities}
        for fact in self.facts:
            index[fact.subject][fact.relation] = fact
        return index

    @cached_property
    def fingerprint(self) -> str:
        """Of what a model of this world learns: the facts, and how well it is meant to know each. Worlds whose libraries alone
        differ have the same."""
        learnt = [
            (self.entities[fact.subject].familiarity, fact.subject, fact.relation, fact.object, fact.wrong)
            for fact in self.facts
        ]
        return hashlib.blake2b(repr(learnt).encode(), digest_size=8).hexdigest()

    def relations_of(self, entity_type: str) -> tuple[Relation, ...]:
        return tuple(relation for relation in RELATIONS if relation.subject == entity_type)


def _surname(rng: np.random.Generator, syllables: int) -> str:
    parts = [str(rng.choice(_ONSETS)) + str(rng.choice(_VOWELS)) for _ in range(syllables)]
    return ("".join(parts) + str(rng.choice(_CODAS))).capitalize()


def _names(rng: np.random.Generator, entity_type: str, count: int, used: set[str]) -> list[str]:
    titles = [f"{adjective} {noun}" for adjective in _ADJECTIVES for noun in _NOUNS]
    rng.shuffle(titles)
    names: list[str] = []
    while len(names) < count:
        if entity_type == "person":
            name = f"{rng.choice(_GIVEN)} {_surname(rng, 2)}"
        elif entity_type == "film":
            name = f"The {titles[len(names)]}"
        elif entity_type == "book":
            name = f"A {titles[len(names)]}"
        elif entity_type == "company":
            name = f"{_surname(rng, 2)} {'Works' if rng.random() < 0.5 else 'Brothers'}"
        elif entity_type == "city":
            name = _surname(rng, 1) + str(rng.choice(["burg", "haven", "mouth", "field"]))
        else:
            name = _surname(rng, 2) + "ia"
        if name.lower() not in used:
            used.add(name.lower())
            names.append(name)
    return names


def _spread(rng: np.random.Generator, levels: tuple[str, ...], shares: list[float], count: int) -> list[str]:
    """``count`` levels in the given shares as exactly as rounding allows, shuffled."""
    edges = np.round(np.cumsum([0.0, *shares]) * count).astype(int)
    spread = [level for level, low, high in zip(levels, edges[:-1], edges[1:], strict=True) for _ in range(high - low)]
    return [spread[i] for i in rng.permutation(count)]


def build_world(seed: int = 0, grid: Grid | None = None) -> World:
    """The world of a seed: the same seed and grid always give the same world."""
    grid = grid or Grid()
    rng = np.random.default_rng([seed, 1])
    used: set[str] = set()
    values: dict[str, tuple[str, ...]] = {kind: tuple(_names(rng, kind, count, used)) for kind, count in _COUNTS.items()}
    values |= {"year": YEARS, "profession": tuple(PROFESSIONS), "industry": tuple(INDUSTRIES)}

    entities: dict[str, Entity] = {}
    for kind in _COUNTS:
        names = values[kind]
        familiarity = _spread(rng, FAMILIARITIES, [getattr(grid, name) for name in FAMILIARITIES], len(names))
        # Coverage is spread within each familiarity level, so that small types fill the whole grid too.
        coverage = [""] * len(names)
        for level in FAMILIARITIES:
            members = [i for i, known in enumerate(familiarity) if known == level]
            for i, state in zip(
                members, _spread(rng, COVERAGES, [getattr(grid, name) for name in COVERAGES], len(members)), strict=True
            ):
                coverage[i] = state
        for name, known, state in zip(names, familiarity, coverage, strict=True):
            entities[name] = Entity(name, kind, known, state)  # type: ignore[arg-type]

    kindred: dict[tuple[str, str], list[str]] = {}
    for entity in entities.values():
        kindred.setdefault((entity.type, entity.familiarity), []).append(entity.name)
    facts: list[Fact] = []
    for entity in entities.values():
        for relation in RELATIONS:
            if relation.subject != entity.type:
                continue
            pool = [value for value in values[relation.object] if value != entity.name]
            kin = [value for value in kindred.get((relation.object, entity.familiarity), ()) if value != entity.name]
            near = kin if kin and rng.random() < _ASSORTATIVITY else pool
            true = near[rng.integers(len(near))]
            rest = [value for value in pool if value != true]
            facts.append(Fact(entity.name, relation.name, true, rest[rng.integers(len(rest))]))
    return World(seed, grid, entities, tuple(facts), values)
