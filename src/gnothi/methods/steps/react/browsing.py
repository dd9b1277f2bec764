"""An index as something to browse: pages are opened by name and searched for words (the environment of ReAct)."""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.filtering.sentences import sentences_of
from gnothi.protocols import Retriever
from gnothi.signals.replies import normalized
from gnothi.types import Passage


class Browser:
    """A reader's place in a library, come with a ``question``. ``seen`` are the passages that were shown, each once, in order.

    A page is the passages of one title among the ``pages`` best ones; a passage without a title is a page of its own.
    """

    def __init__(self, retriever: Retriever, question: str, pages: int, shown: int, language: str) -> None:
        self._retriever = retriever
        self._question = question
        self._pages = pages
        self._shown = shown
        self._language = language
        self._page: list[str] = []
        self._looked_up: tuple[str, int] = ("", 0)
        self._seen: dict[str, Passage] = {}

    @property
    def seen(self) -> tuple[Passage, ...]:
        return tuple(self._seen.values())

    async def search(self, name: str) -> str:
        """Opens the page of that name, else the best one found, and shows its beginning and what else there is. Where nothing
        is found, it names the pages that are there for the question (the code: similar names)."""
        found = await self._found(name)
        if not found:
            titles = ", ".join(dict.fromkeys(one.title for one in await self._found(self._question) if one.title))
            return f"Nothing was found about {name}. " + (f"There is: {titles}." if titles else "Try other words.")
        named = [passage for passage in found if passage.title and normalized(passage.title) == normalized(name)]
        best = (named or found)[0]
        page = [passage for passage in found if passage.title == best.title] if best.title else [best]
        self._open(page)
        shown = " ".join(self._page[: self._shown])
        text = f"{best.title}: {shown}" if best.title else shown
        others = [] if named else list(dict.fromkeys(one.title for one in found if one.title and one.title != best.title))
        return f"{text} See also: {', '.join(others)}." if others else text

    async def _found(self, query: str) -> list[Passage]:
        return [one.passage for one in await self._retriever.search(query, self._pages)]

    def lookup(self, words: str) -> str:
        """The next sentence of the open page that holds the words; each time the same is asked for, the one after."""
        if not self._page:
            return "No page is open. Search first."
        hits = [sentence for sentence in self._page if words.casefold() in sentence.casefold()]
        last, count = self._looked_up
        count = count + 1 if last == words.casefold() else 1
        self._looked_up = (words.casefold(), count)
        if not hits:
            return f"The page does not hold {words}."
        return f"({count} of {len(hits)}) {hits[count - 1]}" if count <= len(hits) else "No more results."

    def _open(self, page: Sequence[Passage]) -> None:
        self._seen |= {passage.id: passage for passage in page if passage.id not in self._seen}
        self._page = [sentence.text for sentence in sentences_of(page, self._language)]
        self._looked_up = ("", 0)
