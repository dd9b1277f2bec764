"""A knowledge graph over tables, in memory or mapped from a folder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import IndexUnavailable
from gnothi.graph import lemmas
from gnothi.graph.arranging import arrange
from gnothi.graph.expanding import check, expand
from gnothi.graph.linking import Linker
from gnothi.graph.tables import Tables
from gnothi.graph.templates import Template, Templates
from gnothi.types import Fact, Mention, Neighbourhood


class Graph:
    """A KnowledgeGraph. ``relations`` are name and sentence of each relation by its number in the tables.

    A node is known by its name. Of a node with more than ``cap`` facts those of the largest weight are taken, equally heavy
    ones in order of import. ``language`` is that of the names.
    """

    def __init__(
        self,
        tables: Tables,
        relations: Sequence[tuple[str, Template]],
        name: str,
        lemmatiser: str = lemmas.PLURALS,
        language: str = "en",
    ) -> None:
        self._tables = tables
        self._relations = tuple(relations)
        self._name = name
        self._lemmatiser = lemmatiser
        self._language = language
        self._linker: Linker | None = None

    @classmethod
    def in_memory(
        cls,
        triples: Iterable[tuple[str, str, str]],
        templates: Templates | None = None,
        name: str = "memory",
        lemmatiser: str = lemmas.PLURALS,
    ) -> Graph:
        """From (head, relation, tail): for small graphs; nothing is written."""
        templates = templates or Templates()
        nodes: dict[str, int] = {}
        numbers: dict[str, int] = {}
        rows = []
        for triple in triples:
            head, relation, tail = templates.canonical(*triple)
            rows.append(
                (
                    nodes.setdefault(head, len(nodes)),
                    numbers.setdefault(relation, len(numbers)),
                    nodes.setdefault(tail, len(nodes)),
                )
            )
        array = np.array(rows, dtype=np.int32).reshape(-1, 3)
        tables = arrange(list(nodes), array, np.ones(len(array), dtype=np.float32), lemmas.lemmatiser(lemmatiser))
        return cls(tables, [(relation, templates.template(relation)) for relation in numbers], name, lemmatiser)

    @property
    def name(self) -> str:
        return self._name

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self._tables.nodes

    def __len__(self) -> int:
        """Number of facts."""
        return len(self._tables)

    async def link(self, text: str) -> tuple[Mention, ...]:
        if self._linker is None:  # the first text waits for the lemmatiser's dictionary
            return await asyncio.to_thread(self.link_blocking, text)
        return self.link_blocking(text)

    def link_blocking(self, text: str) -> tuple[Mention, ...]:
        """``link`` for callers without an event loop. Raises MissingDependency where the graph's lemmatiser is missing."""
        if self._linker is None:
            self._linker = Linker(self._tables, lemmas.lemmatiser(self._lemmatiser, self._language))
        with self._reading():
            return self._linker.link(text)

    async def neighbourhood(self, nodes: Sequence[str], hops: int, cap: int) -> Neighbourhood:
        """Runs in a worker thread; the event loop stays free. Raises InvalidSetting for a negative ``hops`` or no ``cap``."""
        return await asyncio.to_thread(self.neighbourhood_blocking, nodes, hops, cap)

    def neighbourhood_blocking(self, nodes: Sequence[str], hops: int, cap: int) -> Neighbourhood:
        """``neighbourhood`` for callers without an event loop."""
        check(hops, cap)
        with self._reading():
            known = [node for node in map(self._tables.node, nodes) if node is not None]
            facts, capped = expand(self._tables, known, hops, cap)
            return Neighbourhood(self._facts(facts), tuple(self._tables.name(node) for node in capped.tolist()))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Numbers that lead nowhere are told as what they are: nobody reads a whole graph to look for them beforehand."""
        try:
            yield
        except (IndexError, ValueError, OverflowError, MemoryError) as error:
            raise IndexUnavailable(
                f"the graph {self._name} is damaged: {error}. Build it again into a new folder with `gnothi index build "
                "SOURCE... --graph --out FOLDER`."
            ) from error

    def _facts(self, numbers: NDArray[np.int64]) -> tuple[Fact, ...]:
        tables = self._tables
        heads, tails = tables.heads[numbers].tolist(), tables.tails[numbers].tolist()
        names = {node: tables.name(node) for node in {*heads, *tails}}
        facts = []
        for head, relation, tail in zip(heads, tables.relations[numbers].tolist(), tails, strict=True):
            label, template = self._relations[relation]
            first, second = names[head], names[tail]
            facts.append(Fact(first, label, second, template.say(first, second)))
        return tuple(facts)

    async def aclose(self) -> None:
        """Mapped files are released with the object."""
