"""A scripted retriever, a graph of a few triples, a re-ranker that counts words. Public, for tests and to try methods out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from gnothi.errors import InvalidSetting
from gnothi.protocols import Count
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.results import check_k, ranked
from gnothi.types import Fact, Mention, Neighbourhood, Passage, ScoredPassage

Script = Sequence[Passage | ScoredPassage]


class ScriptedRetriever:
    """Returns scripted passages.

    ``script`` is either a sequence, which every query finds, or a mapping from a query's text to a sequence; a query that is
    not in the mapping finds nothing. A plain Passage gets the score 1 / rank: the order of the script is that of the results.
    ``queries`` lists every query received, in order of arrival.
    """

    def __init__(self, script: Script | Mapping[str, Script], name: str = "scripted") -> None:
        self._script = script
        self._name = name
        self.queries: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        check_k(k)
        self.queries.append(query)
        if not query.strip():
            return ()
        scripted = self._script.get(query, ()) if isinstance(self._script, Mapping) else self._script
        scored = (
            item if isinstance(item, ScoredPassage) else ScoredPassage(item, 1 / rank) for rank, item in enumerate(scripted, 1)
        )
        return ranked(scored, k)

    def counter(self, filters: Filters = ()) -> Count:  # noqa: ARG002
        """How many of the script's passages hold phrases, letter by letter; filters are left aside."""
        lists = self._script.values() if isinstance(self._script, Mapping) else [self._script]
        listed_passages = (one.passage if isinstance(one, ScoredPassage) else one for listed in lists for one in listed)
        passages = {one.id: one for one in listed_passages}

        async def count(phrases: Sequence[str]) -> int:
            return sum(all(one in f"{passage.title} {passage.text}" for one in phrases) for passage in passages.values())

        return count

    async def aclose(self) -> None:
        """Nothing to release."""


class ListedGraph:
    """A knowledge graph of the triples it was given, in their order. A fact says "head relation tail.".

    It links a name where the text has it as whole words, in any case. ``texts`` lists every text it was to link.
    """

    def __init__(self, triples: Iterable[tuple[str, str, str]], name: str = "listed") -> None:
        self._facts = [
            Fact(head, relation, tail, f"{head} {relation} {tail}.") for head, relation, tail in dict.fromkeys(triples)
        ]
        self._name = name
        self.texts: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    async def link(self, text: str) -> tuple[Mention, ...]:
        self.texts.append(text)
        names = dict.fromkeys(node for fact in self._facts for node in (fact.head, fact.tail) if node)
        longest_first = sorted(names, key=len, reverse=True)
        mentions = []
        place = 0
        while place < len(text):
            node = next((name for name in longest_first if _stands_at(name, text, place)), None)
            if node is not None:
                mentions.append(Mention(node, place, place + len(node)))
            place += len(node) if node else 1
        return tuple(mentions)

    async def neighbourhood(self, nodes: Sequence[str], hops: int, cap: int) -> Neighbourhood:
        if hops < 0 or cap < 1:
            raise InvalidSetting(f"a neighbourhood: got {hops} steps and {cap} facts a node, expected at least 0 and 1.")
        known_nodes = {node for fact in self._facts for node in (fact.head, fact.tail)}
        facts: dict[Fact, None] = {}
        capped: list[str] = []
        frontier = [node for node in dict.fromkeys(nodes) if node in known_nodes]
        reached = set(frontier)
        for _ in range(hops):
            fresh: dict[Fact, None] = {}
            for node in frontier:
                around = [fact for fact in self._facts if node in (fact.head, fact.tail)]
                capped += [node] if len(around) > cap else []
                fresh |= dict.fromkeys(fact for fact in around[:cap] if fact not in facts)
            facts |= fresh
            frontier = [
                node for node in dict.fromkeys(end for fact in fresh for end in (fact.head, fact.tail)) if node not in reached
            ]
            reached |= set(frontier)
        return Neighbourhood(tuple(facts), tuple(capped))

    async def aclose(self) -> None:
        """Nothing to release."""


def _stands_at(name: str, text: str, place: int) -> bool:
    end = place + len(name)
    if text[place:end].lower() != name.lower():
        return False
    return not re.match(r"\w\w", text[max(place - 1, 0) : place + 1]) and not re.match(r"\w\w", text[end - 1 : end + 1])


def overlap(query: str, text: str) -> float:
    """The share of the text's words that the query has; 0 for a text without words."""
    query_words, text_words = set(re.findall(r"\w+", query.lower())), set(re.findall(r"\w+", text.lower()))
    return len(query_words & text_words) / len(text_words) if text_words else 0.0


class FakeReranker:
    """Scores each text by a function of query and text, by their words in common if no other is given.

    ``queries`` lists every query received, in order of arrival.
    """

    def __init__(self, function: Callable[[str, str], float] = overlap, name: str = "overlap") -> None:
        self._function = function
        self._name = name
        self.queries: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        self.queries.append(query)
        return tuple(self._function(query, text) for text in texts)

    async def aclose(self) -> None:
        """Nothing to release."""
