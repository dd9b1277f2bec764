"""BM25 on tantivy: the embedded default.

Score (Robertson and Zaragoza, 2009, section 3.3; tantivy's constants k1 = 1.2, b = 0.75): the sum over query terms of
ln(1 + (N - n + 0.5) / (n + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length)), the length rounded to
tantivy's one-byte scale (exact up to 40 terms). Deleted passages count in N, n and the mean until tantivy merges them away.
With ``fields`` best title and text have such a score each (``analysis.Fields``); N counts passages without a title, too.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tantivy

from gnothi.errors import GnothiError, IndexUnavailable
from gnothi.protocols import Count
from gnothi.retrieval import analysis, languages
from gnothi.retrieval.filtering import Narrows
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.folder import is_panic, read_manifest
from gnothi.retrieval.results import check_k, ranked
from gnothi.retrieval.shards import Stamps, check_distinct, commit_stamps, common, open_engine
from gnothi.types import Passage, ScoredPassage, encodable

# Equal passages in different segments can differ in the last bits of a float32; rounding makes them tie.
_DECIMALS = 4
_SPARE = 32
_PAGE = 10_000
_COUNTED = 500
"""Passages that are read to count a phrase."""
_MEMORY_WRITER_BYTES = 15_000_000


class BM25Index(Narrows):
    """A Retriever over a folder, over several as one, or over passages in memory. Many processes may read a folder while one
    writes it; a search sees the newest commit."""

    def __init__(
        self,
        index: tantivy.Index,
        name: str,
        folders: Sequence[Path] = (),
        stamps: Stamps = (),
        language: str = languages.DEFAULT,
        fields: analysis.Fields = "cross",
    ) -> None:
        self._index = index
        self._schema = index.schema
        self._language, self._fields = language, fields
        self._name = name
        self._folders = folders
        self._stamps = stamps
        self._searcher = index.searcher()
        self._lock = threading.Lock()

    @classmethod
    def open(cls, *paths: str | os.PathLike[str], name: str = "") -> BM25Index:
        """Several paths are searched as one index, see ``retrieval.shards``.

        Raises IndexUnavailable when there is no index, one of another version, or one that cannot be read."""
        folders = [Path(path) for path in paths]
        language, fields = common({folder: read_manifest(folder) for folder in folders})
        for folder in folders:
            if not (folder / "meta.json").exists():
                raise IndexUnavailable(
                    f"the index {folder} holds nothing yet: its build was interrupted. Run the same build command again."
                )
        name = name or str(paths[0])
        stamps = commit_stamps(folders)  # before the files are opened: a commit in between is seen by the first search
        with _reading(name):
            return cls(open_engine(folders, language), name, folders, stamps, language, fields)

    @classmethod
    def in_memory(
        cls,
        passages: Iterable[Passage],
        name: str = "memory",
        language: str = languages.DEFAULT,
        fields: analysis.Fields = "cross",
    ) -> BM25Index:
        """For small corpora: nothing is written. Of passages with the same id the last one stays. Raises IndexUnavailable where
        the system gives too little memory."""
        index = tantivy.Index(analysis.schema(language, fields))
        analysis.register(index, language)
        by_id = {passage.id: passage for passage in passages}
        documents = [analysis.document(one, "", language, fields) for one in by_id.values()]
        try:
            writer = index.writer(_MEMORY_WRITER_BYTES, 1)
            for document in documents:
                writer.add_document(document)
            writer.commit()
            writer.wait_merging_threads()
            index.reload()
            return cls(index, name, language=language, fields=fields)
        except ValueError as error:
            raise IndexUnavailable(
                f"the index {name} cannot be made in memory: {error}. It takes some memory and a few threads: close other "
                "programs or raise the limit (ulimit -a shows it)."
            ) from None

    @property
    def name(self) -> str:
        return self._name

    def __len__(self) -> int:
        """Number of passages."""
        return int(self._current().num_docs)

    def get(self, passage_id: str) -> Passage | None:
        """The passage with this id, None when there is none."""
        searcher = self._current()
        term = tantivy.Query.term_query(self._schema, analysis.ID, encodable(passage_id), "basic")
        with _reading(self._name):
            hits = searcher.search(term, limit=1, count=False).hits
            return analysis.passage(searcher.doc(hits[0][1])) if hits else None

    def passages(self) -> Iterator[Passage]:
        """Every passage of the newest commit, in the order of the index."""
        searcher = self._current()
        for start in range(0, searcher.num_docs, _PAGE):
            with _reading(self._name):
                hits = searcher.search(tantivy.Query.all_query(), limit=_PAGE, offset=start, count=False).hits
                page = [analysis.passage(searcher.doc(address)) for _, address in hits]
            yield from page

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        """Runs in a worker thread; the event loop stays free."""
        return await self.search_among(query, k, ())

    async def search_among(self, query: str, k: int, filters: Filters) -> tuple[ScoredPassage, ...]:
        check_k(k)
        return await asyncio.to_thread(self.search_blocking, query, k, filters)

    def search_blocking(self, query: str, k: int, filters: Filters = ()) -> tuple[ScoredPassage, ...]:
        """``search_among`` for callers without an event loop."""
        check_k(k)
        if k == 0:
            return ()
        searcher = self._current()
        with _reading(self._name):
            parsed = analysis.query(searcher, self._schema, encodable(query), self._language, self._fields)
            if parsed is None:
                return ()
            return self._top(searcher, analysis.among(self._index, parsed, filters) if filters else parsed, k)

    def counter(self, filters: Filters = ()) -> Count:
        async def count(phrases: Sequence[str]) -> int:
            return await asyncio.to_thread(self.count_blocking, phrases, filters)

        return count

    def count_blocking(self, phrases: Sequence[str], filters: Filters = ()) -> int:
        """Passages that hold all of the phrases, each as neighbouring words (by their stems) in title or text. Where more than
        500 passages hold all the words, 500 are read, and their share is taken of all: of these at least one."""
        searcher = self._current()
        wanted = [analysis.words(encodable(phrase), self._language) for phrase in phrases]
        if not wanted or not all(wanted):
            return 0
        with _reading(self._name):
            parsed = analysis.all_of(self._schema, [encodable(phrase) for phrase in phrases], self._language, self._fields)
            having: Any = searcher.search(
                analysis.among(self._index, parsed, filters) if filters else parsed, limit=_COUNTED, count=True
            )
            passages = [analysis.passage(searcher.doc(address)) for _, address in having.hits]
        held = sum(analysis.holds(one, wanted, self._language) for one in passages)
        number = int(having.count or 0)
        return held if number <= len(passages) else max(1, round(number * held / len(passages)))

    async def keys(self) -> list[str]:
        with _reading(self._name):
            return analysis.keys(self._current())

    def ids(self, filters: Filters) -> Iterator[str]:
        """Of all passages that pass the filters, in the order of the index."""
        searcher = self._current()
        with _reading(self._name):
            query = analysis.among(self._index, tantivy.Query.all_query(), filters)
            hits = searcher.search(query, limit=max(int(searcher.num_docs), 1), count=False).hits
        for _, address in hits:
            with _reading(self._name):
                yield analysis.passage(searcher.doc(address)).id

    def _top(self, searcher: tantivy.Searcher, query: tantivy.Query, k: int) -> tuple[ScoredPassage, ...]:
        size = max(int(searcher.num_docs), 1)
        k = min(k, size)
        limit = min(k + _SPARE, size)
        while True:
            hits = searcher.search(query, limit=limit, count=False).hits
            scores = [round(score, _DECIMALS) for score, _ in hits]
            # Tantivy breaks ties by position in the index. To break them by id, every passage tied with the k-th is needed.
            if len(hits) < limit or limit == size or scores[-1] < scores[k - 1]:
                break
            limit = min(limit * 8, size)
        tied = scores[min(k, len(scores)) - 1] if scores else 0.0
        best = [(score, address) for score, (_, address) in zip(scores, hits, strict=True) if score >= tied]
        # In the order of the store, so that each of its blocks is unpacked once.
        best.sort(key=lambda item: (item[1].segment_ord, item[1].doc))
        passages = [ScoredPassage(analysis.passage(searcher.doc(address)), score) for score, address in best]
        if len(self._folders) > 1:
            check_distinct(passages, self._name)
        return ranked(passages, k)

    async def aclose(self) -> None:
        """The files are memory-mapped and released with the object."""

    def _current(self) -> tantivy.Searcher:
        """A searcher over the newest commit: one stat a folder and search, opened anew when another process has committed."""
        if not self._folders:
            return self._searcher
        stamps = commit_stamps(self._folders)
        with self._lock:
            if stamps != self._stamps:
                with _reading(self._name):
                    self._index = open_engine(self._folders, self._language)
                    self._searcher = self._index.searcher()
                self._stamps = stamps
            return self._searcher


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Failures of the engine as IndexUnavailable. On damaged files it may panic, which Python sees as a BaseException."""
    try:
        yield
    except GnothiError:
        raise
    except BaseException as error:
        if not isinstance(error, ValueError | OSError) and not is_panic(error):
            raise
        raise IndexUnavailable(
            f"the index {name} cannot be read: {error}. Expected complete files of the tantivy version that is "
            "installed. Build it again into a new folder with `gnothi index build SOURCE... --out FOLDER`."
        ) from None
