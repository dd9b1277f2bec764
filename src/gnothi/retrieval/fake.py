"""A scripted retriever and a re-ranker that counts words. Public, for tests and for trying out methods."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from gnothi.retrieval.results import check_k, ranked
from gnothi.types import Passage, ScoredPassage

Script = Sequence[Passage | ScoredPassage]


class ScriptedRetriever:
    """Returns what it was told.

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
        found = self._script.get(query, ()) if isinstance(self._script, Mapping) else self._script
        scored = (
            item if isinstance(item, ScoredPassage) else ScoredPassage(item, 1 / rank) for rank, item in enumerate(found, 1)
        )
        return ranked(scored, k)

    async def aclose(self) -> None:
        """Nothing to release."""


def overlap(query: str, text: str) -> float:
    """The share of the text's words that the query has; 0 for a text without words."""
    asked, told = set(re.findall(r"\w+", query.lower())), set(re.findall(r"\w+", text.lower()))
    return len(asked & told) / len(told) if told else 0.0


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
