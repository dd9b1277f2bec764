"""Named-entity recognisers before a graph's own linking: they say where names stand, the graph says which nodes they are.

Useful where a graph has names that are common words too, and texts are about people and places. Both kinds come with extras.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from gnothi.errors import MissingDependency, ModelUnavailable, UnknownName
from gnothi.protocols import KnowledgeGraph
from gnothi.types import Mention, Neighbourhood

Span = tuple[int, int]
LABELS = ("person", "organisation", "place", "work", "event", "thing")
KINDS = ("spacy:NAME", "gliner:NAME")


class Recogniser(Protocol):
    """Finds the places of a text that name something."""

    @property
    def name(self) -> str: ...

    def spans(self, text: str) -> Sequence[Span]:
        """First character and the one after the last of each, in order. Called by one thread at a time."""
        ...


class RecognisedGraph:
    """A KnowledgeGraph that links only inside the places a recogniser found. What it finds and the graph does not know is left
    aside."""

    def __init__(self, graph: KnowledgeGraph, recogniser: Recogniser) -> None:
        self._graph = graph
        self._recogniser = recogniser
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._graph.name

    async def link(self, text: str) -> tuple[Mention, ...]:
        mentions: list[Mention] = []
        for start, end in await asyncio.to_thread(self._spans, text):
            if mentions and start < mentions[-1].end:
                continue
            found = await self._graph.link(text[start:end])
            mentions += (Mention(mention.node, start + mention.start, start + mention.end) for mention in found)
        return tuple(mentions)

    def _spans(self, text: str) -> list[Span]:
        with self._lock:
            return sorted(self._recogniser.spans(text), key=lambda span: (span[0], -span[1]))

    async def neighbourhood(self, nodes: Sequence[str], hops: int, cap: int) -> Neighbourhood:
        return await self._graph.neighbourhood(nodes, hops, cap)

    async def aclose(self) -> None:
        """Closes the graph. Idempotent."""
        await self._graph.aclose()


class Spacy:
    """A spaCy pipeline: the entities of its ``ner`` or ``entity_ruler``, and with ``chunks`` its noun phrases, too."""

    def __init__(self, pipeline: Any, chunks: bool = False) -> None:
        self._pipeline = pipeline
        self._chunks = chunks

    @classmethod
    def load(cls, name: str) -> Spacy:
        """Raises MissingDependency without spaCy, ModelUnavailable without the pipeline."""
        try:
            import spacy
        except ImportError:
            raise MissingDependency("spacy", "spacy", "Recognising names with spaCy") from None
        try:
            return cls(spacy.load(name))
        except OSError:
            raise ModelUnavailable(
                f"spaCy has no pipeline {name!r}: expected one that is installed, or a folder. Install it with: "
                f"python -m spacy download {name}"
            ) from None

    @property
    def name(self) -> str:
        return f"spacy:{self._pipeline.meta['lang']}_{self._pipeline.meta['name']}"

    def spans(self, text: str) -> Sequence[Span]:
        document = self._pipeline(text)
        found = [*document.ents, *(document.noun_chunks if self._chunks else ())]
        return [(span.start_char, span.end_char) for span in found]


class Gliner:
    """A GLiNER model (Zaratiana et al., 2024): kinds of names told by ``labels``, scores from ``threshold`` on."""

    def __init__(self, model: Any, name: str, labels: Sequence[str] = LABELS, threshold: float = 0.5) -> None:
        self._model = model
        self._name = name
        self._labels = list(labels)
        self._threshold = threshold

    @classmethod
    def load(cls, name: str) -> Gliner:
        """Raises MissingDependency without GLiNER, ModelUnavailable where the model cannot be loaded."""
        try:
            from gliner import GLiNER
        except ImportError:
            raise MissingDependency("gliner", "gliner", "Recognising names with GLiNER") from None
        try:
            return cls(GLiNER.from_pretrained(name), name)
        except (OSError, ValueError) as error:
            raise ModelUnavailable(
                f"GLiNER cannot load {name!r}: {error}. Expected a folder or a hub id of a GLiNER model."
            ) from None

    @property
    def name(self) -> str:
        return f"gliner:{self._name}"

    def spans(self, text: str) -> Sequence[Span]:
        if not text.strip():
            return []
        found = self._model.predict_entities(text, self._labels, threshold=self._threshold)
        return [(int(entity["start"]), int(entity["end"])) for entity in found]


def open_recogniser(spec: str) -> Recogniser:
    """What ``spacy:NAME`` or ``gliner:NAME`` names. Raises UnknownName, MissingDependency or ModelUnavailable."""
    kind, _, name = spec.partition(":")
    if name and kind == "spacy":
        return Spacy.load(name)
    if name and kind == "gliner":
        return Gliner.load(name)
    raise UnknownName("recogniser", spec, KINDS)
