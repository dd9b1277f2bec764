"""A knowledge graph over tables, in memory or mapped from a folder."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import MALFORMED, IndexUnavailable, InvalidSetting
from gnothi.graph import lemmas
from gnothi.graph.lemmas import LONGEST, STOP_WORDS, Lemmatiser, Word, forms, hashes, words
from gnothi.graph.tables import Tables, arrange
from gnothi.graph.templates import Template, Templates
from gnothi.retrieval.folder import FILE, Kind, damaged, kind_of, prepare_folder, read_fields
from gnothi.typed import typed
from gnothi.types import Fact, Mention, Neighbourhood
from gnothi.version import __version__

# The facts around some nodes, step by step, with a cap for each node.


def check(hops: int, cap: int) -> None:
    """Raises InvalidSetting for numbers that mean nothing."""
    if hops < 0:
        raise InvalidSetting(f"steps around a node: got {hops}, expected 0 or more.")
    if cap < 1:
        raise InvalidSetting(f"facts taken of each node: got {cap}, expected 1 or more.")


def expand(tables: Tables, nodes: Iterable[int], hops: int, cap: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(numbers of the facts, nearer ones first; nodes that have more facts than ``cap``), in order of finding.

    Of each node its first ``cap`` facts are taken. The next step starts from the nodes these lead to.
    """
    frontier = _distinct(np.fromiter(nodes, dtype=np.int64))
    reached = frontier
    facts = np.zeros(0, dtype=np.int64)
    capped = [np.zeros(0, dtype=np.int64)]
    for _ in range(hops):
        if not len(frontier):
            break
        starts = tables.fact_starts[frontier]
        counts = tables.fact_starts[frontier + 1] - starts
        capped.append(frontier[counts > cap])
        counts = np.minimum(counts, cap)
        # Places starts[0], starts[0] + 1, ... of the first node, then those of the second, and so on.
        ends = np.cumsum(counts)
        places = np.arange(ends[-1], dtype=np.int64) + np.repeat(starts - ends + counts, counts)
        fresh = _new(tables.facts[places].astype(np.int64), facts)
        facts = np.concatenate([facts, fresh])
        # Head and tail of each fact in turn: the nodes in the order in which the facts name them.
        ends_of = np.stack([tables.heads[fresh], tables.tails[fresh]], axis=1).reshape(-1).astype(np.int64)
        frontier = _new(ends_of, reached)
        reached = np.concatenate([reached, frontier])
    return facts, np.concatenate(capped)


def _distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each number once, where it first stands."""
    _, first = np.unique(numbers, return_index=True)
    return numbers[np.sort(first)]


def _new(numbers: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    numbers = _distinct(numbers)
    return numbers[~np.isin(numbers, known)]


# Which nodes a text names, from the names alone: no model, no training. Every run of one to four words is looked up as it
# stands and, failing that, by its words' lemmas. The leftmost run with a name wins, of those that start together the longest;
# mentions do not overlap. Runs of nothing but stop words and pronouns are left alone, and a possessive ending is not part of a
# name unless the name has it.


class Linker:
    """Looks up runs of words by a hash of 64 bits, and then compares the words themselves."""

    def __init__(self, tables: Tables, lemma: Lemmatiser) -> None:
        self._tables = tables
        self._lemma = lemma

    def link(self, text: str) -> tuple[Mention, ...]:
        parts = words(text)
        # Where the next word stands that is no stop word, from each word on: a run that ends before it names nothing.
        next_content = [len(parts)] * (len(parts) + 1)
        for place in reversed(range(len(parts))):
            word = parts[place]
            next_content[place] = next_content[place + 1] if STOP_WORDS & {word.form, word.possessor} else place
        runs = [
            (start, end)
            for start in range(len(parts))
            for end in range(min(start + LONGEST, len(parts)), max(start, next_content[start]), -1)
        ]
        if not runs:
            return ()
        nodes = self._nodes(text, parts, runs)
        mentions = []
        free = 0  # the first word that no mention has
        for (start, end), (node, possessor) in zip(runs, nodes, strict=True):
            if node is not None and start >= free:
                last = parts[end - 1]
                mentions.append(Mention(self._tables.name(node), parts[start].start, last.end - 2 * possessor))
                free = end
        return tuple(mentions)

    def _nodes(self, text: str, parts: list[Word], runs: list[tuple[int, int]]) -> list[tuple[int | None, bool]]:
        """For each run the node it names, and whether without its possessive ending."""
        texts = [word.form for word in parts]
        # What a word is when it ends a run: without a possessive ending, its lemma.
        endings = [word.possessor for word in parts]
        lemmas = [self._lemma(ending or form) for ending, form in zip(endings, texts, strict=True)]
        plain = [" ".join(texts[start:end]) for start, end in runs]
        bare = plain
        if any(endings):
            bare = [" ".join([*texts[start : end - 1], endings[end - 1] or texts[end - 1]]) for start, end in runs]
        roots = [" ".join(lemmas[start:end]) for start, end in runs]
        tables = self._tables
        as_it_stands = _lookup(tables.surface_hashes, hashes(plain))
        without_ending = as_it_stands if bare is plain else _lookup(tables.surface_hashes, hashes(bare))
        by_lemma = _lookup(tables.lemma_hashes, hashes(roots))
        nodes: list[tuple[int | None, bool]] = []
        for i, (start, end) in enumerate(runs):
            possessive = bool(endings[end - 1])
            node = None
            if as_it_stands[i] >= 0:
                node = self._surface(as_it_stands[i], plain[i], text[parts[start].start : parts[end - 1].end])
            if node is not None:
                nodes.append((node, False))
                continue
            if possessive and without_ending[i] >= 0:
                node = self._surface(without_ending[i], bare[i], text[parts[start].start : parts[end - 1].end - 2])
            if node is None and by_lemma[i] >= 0:
                candidate = int(tables.lemma_nodes[by_lemma[i]])
                if " ".join(map(self._lemma, forms(tables.name(candidate)))) == roots[i]:
                    node = candidate
            nodes.append((node, possessive))
        return nodes

    def _surface(self, place: int, key: str, text: str) -> int | None:
        """Of the names with this form the one that is written as in the text, else the one with the most facts."""
        tables = self._tables
        first = None
        number = tables.surface_hashes[place]
        while place < len(tables.surface_hashes) and tables.surface_hashes[place] == number:
            node = int(tables.surface_nodes[place])
            name = tables.name(node)
            if name == text:
                return node
            if first is None and " ".join(forms(name)) == key:
                first = node
            place += 1
        return first


def _lookup(table: NDArray[np.uint64], numbers: NDArray[np.uint64]) -> list[int]:
    """The first place of each number in the rising table, -1 where it is not there."""
    if not len(table):
        return [-1] * len(numbers)
    places = np.searchsorted(table, numbers)
    there = table[np.minimum(places, len(table) - 1)] == numbers
    return [int(place) for place in np.where(there, places, -1)]


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


# A graph's folder: its manifest names the folder of tables that is in force.

GRAPH = Kind("gnothi-graph", 1, "graph", "a graph", "gnothi index build {} --graph --out {}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """``tables`` is the name of the folder of tables, empty before the first build is complete; ``relations`` are name and
    sentence of each; ``digest`` tells what the tables were made of, ``content`` what is in them (empty where
    nobody noted it)."""

    tables: str = ""
    nodes: int = 0
    facts: int = 0
    relations: tuple[tuple[str, str], ...] = ()
    lemmatiser: str = ""
    language: str = "en"
    digest: str = ""
    content: str = ""
    complete: bool = False
    format: str = GRAPH.format
    version: int = GRAPH.version
    created_by: str = __version__


def is_graph(path: str | os.PathLike[str]) -> bool:
    """Whether the folder says of itself that it holds a graph."""
    return kind_of(path) == "graph"


def open_folder(path: str | os.PathLike[str]) -> Graph:
    """The graph in a folder. Raises IndexUnavailable when there is none that can be read."""
    folder = Path(path)
    manifest = read_manifest(folder)
    if not manifest.tables:
        raise IndexUnavailable(
            f"the graph {folder} holds nothing yet: its build was interrupted. Run the same build command again."
        )
    try:
        tables = Tables.open(folder / manifest.tables)
    except FileNotFoundError:
        # A build that ended meanwhile put new tables in their place.
        renewed = read_manifest(folder)
        if renewed.tables == manifest.tables:
            raise damaged(folder, GRAPH, "a file of its tables is missing") from None
        return open_folder(path)
    except (OSError, ValueError, EOFError) as error:
        raise damaged(folder, GRAPH, str(error)) from None
    if len(tables) != manifest.facts or tables.nodes != manifest.nodes:
        raise damaged(folder, GRAPH, "its tables are of another size than it says")
    relations = [(name, Template.of(sentence)) for name, sentence in manifest.relations]
    return Graph(tables, relations, str(path), manifest.lemmatiser, manifest.language)


def read_manifest(path: Path) -> Manifest:
    """Raises IndexUnavailable for a folder that is not there, not a graph, or of another version."""
    raw = read_fields(path, GRAPH)
    try:
        relations = tuple((str(name), Template.of(sentence).sentence) for name, sentence in raw["relations"])
        manifest: Manifest = typed(Manifest, raw | {"relations": relations})
        if manifest.tables not in ("", Path(manifest.tables).name):  # nothing outside the folder is opened
            raise ValueError
        return manifest
    except MALFORMED:
        raise damaged(path, GRAPH, f"a field of {FILE} is missing or of the wrong type") from None


def fingerprint(path: Path) -> str:
    """Of the facts and the sentences that say them; empty where a graph does not say. Raises as ``read_manifest``."""
    manifest = read_manifest(path)
    if not manifest.content:
        return ""
    return hashlib.blake2b(
        repr((manifest.content, manifest.relations, manifest.lemmatiser)).encode(), digest_size=16
    ).hexdigest()


def prepare(path: Path) -> Manifest:
    """``prepare_folder`` for a graph."""
    prepare_folder(path, GRAPH, Manifest())
    return read_manifest(path)
