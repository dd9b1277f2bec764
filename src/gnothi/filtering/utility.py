"""Utility-guided picking: keep the passages that a judge calls useful for the question (KEQA, section 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

from gnothi import events
from gnothi.concurrency import gather
from gnothi.graph.retriever import overlap
from gnothi.protocols import LanguageModel, Reranker
from gnothi.retrieval.wrappers import titled_text
from gnothi.seeding import derive
from gnothi.signals.judge import says_yes
from gnothi.types import Demonstration, Passage, Prompt, Task

References = Literal["nearest", "best_first", "random", "none"]


@dataclass(frozen=True, slots=True)
class Useful:
    """Judges every passage by itself, all at a time; those kept stay in the order in which they came.

    ``task`` is what the judge is asked to do; its demonstrations give way to ``shots`` ones from ``source``, nearest to
    question and passage or random, of each label at least ``at_least``. Without a source, and where it has none, the task's
    own stay; with ``references="none"`` there are none. Emits Picked with kind ``useful``.
    """

    judge: LanguageModel
    task: Task
    source: DemonstrationSource | None = None
    references: References = "nearest"
    shots: int = 8
    at_least: int = 2

    async def __call__(self, question: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        verdicts = await gather(*(self._useful(question, passage) for passage in passages))
        useful = tuple(passage for passage, verdict in zip(passages, verdicts, strict=True) if verdict)
        dropped = tuple(passage for passage, verdict in zip(passages, verdicts, strict=True) if not verdict)
        events.emit(events.Picked("useful", question, useful, dropped))
        return useful

    async def _useful(self, question: str, passage: Passage) -> bool:
        return await says_yes(self.judge, Prompt(await self._task(question, passage), question, (passage,)))

    async def _task(self, question: str, passage: Passage) -> Task:
        if self.references == "none":
            return replace(self.task, demonstrations=())
        if self.source is None:
            return self.task
        if self.references in ("nearest", "best_first"):
            demonstrations = await self.source.nearest(question, passage, self.shots, self.at_least)
            demonstrations = demonstrations if self.references == "nearest" else demonstrations[::-1]
        else:
            demonstrations = await self.source.random(self.shots, self.at_least, derive("references", question, passage))
        return replace(self.task, demonstrations=demonstrations) if demonstrations else self.task


# The passages that fit a question best, by a re-ranker that reads both, or without one by the words they share.


async def best(reranker: Reranker | None, query: str, texts: Sequence[str], most: int | None = None) -> list[int]:
    """Places of the texts that fit the query best, the best first; of equally good ones the earlier. Without a re-ranker, by
    the words they share with the query."""
    if not texts:
        return []
    scores = overlap(query, texts) if reranker is None else await reranker.score(query, texts)
    return sorted(range(len(texts)), key=lambda place: -scores[place])[:most]


@dataclass(frozen=True, slots=True)
class Best:
    """Keeps the ``most`` best passages (None: all), the best first; of equally good ones the earlier. Emits Picked with kind
    ``rerank``."""

    reranker: Reranker | None = None
    most: int | None = None

    async def __call__(self, question: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        if not passages:
            return ()
        order = await best(self.reranker, question, [titled_text(passage) for passage in passages])
        ranked = tuple(passages[place] for place in order)
        most = len(ranked) if self.most is None else self.most
        events.emit(events.Picked("rerank", question, ranked[:most], ranked[most:]))
        return ranked[:most]


@runtime_checkable
class DemonstrationSource(Protocol):
    """Labelled pairs of question and passage; ``answer`` of each demonstration is "Yes" (helpful) or "No".

    Both calls give at most ``n`` demonstrations, the best last (nearest to what the judge reads next), with at least
    ``at_least`` of each label where the source holds as many; none from an empty source.
    """

    async def nearest(self, question: str, passage: Passage, n: int, at_least: int) -> tuple[Demonstration, ...]:
        """The demonstrations most like the pair of ``question`` and ``passage``."""
        ...

    async def random(self, n: int, at_least: int, seed: int) -> tuple[Demonstration, ...]:
        """Demonstrations drawn by chance, for the ablation; the same seed gives the same ones."""
        ...
