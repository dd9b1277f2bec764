"""How searches are made, whatever method makes them: ``--set index.KEY=VALUE``."""

from __future__ import annotations

from dataclasses import dataclass

from gnothi.fields import check_ranges, setting
from gnothi.protocols import Reranker, Retriever
from gnothi.retrieval.filters import Filters, as_filters


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Of what an index holds, what is searched; and what is found put in a better order."""

    dense_weight: float | None = setting(
        None, "hybrid:PATH: share of the ranking by vectors (none: a half).", at_least=0, at_most=1
    )
    reranker: str | None = setting(None, "Re-ranker of what is found: lab, a folder or a hub id (none: the index's own order).")
    depth: int = setting(50, "Passages that the re-ranker chooses from.", at_least=1)
    filters: tuple[str, ...] = setting((), "Only passages whose metadata pass all of them: --filter KEY=VALUE.")

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.filters:
            as_filters(self.filters)

    @property
    def narrowing(self) -> Filters:
        """The filters, read."""
        return as_filters(self.filters)

    def wrap(self, index: Retriever, reranker: Reranker | None) -> Retriever:
        """The index with these settings."""
        if reranker is None:
            return index
        from gnothi.retrieval.wrappers import Reranked

        return Reranked(index, reranker, self.depth)
