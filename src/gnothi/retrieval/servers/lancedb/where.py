"""Filters as a condition of LanceDB's: on a column that holds a passage's terms (``retrieval.terms``) between spaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gnothi.retrieval import terms
from gnothi.retrieval.filters import Filter, Filters, Span
from gnothi.retrieval.servers.lancedb.table import TERMS
from gnothi.types import Value


def joined(metadata: Mapping[str, Value]) -> str:
    """What stands in the column."""
    return f" {' '.join(terms.terms(metadata))} "


def condition(filters: Filters) -> str:
    """Terms are letters and digits: there is nothing to escape."""
    return _all(map(_one, filters))


def keys(held: Iterable[str]) -> set[str]:
    """Of the metadata of passages with these columns."""
    return {terms.key_of(term) for one in held for term in one.split() if term[0] == terms.key_term("")}


def _one(given: Filter) -> str:
    some = " OR ".join(map(_span, given.spans))
    return _all([_has(terms.key_term(given.key) + " "), f"NOT ({some})"]) if given.negated else f"({some})"


def _span(span: Span) -> str:
    low, high = span
    if low == high:
        return _has(low + " ")
    stem, mark, begin = low.partition("x")
    of_kind = stem + mark
    value = f"split_part(split_part({TERMS}, ' {of_kind}', 2), ' ', 1)"
    return f"({_has(of_kind)} AND {value} >= '{begin}' AND {value} <= '{high.removeprefix(of_kind)}')"


def _has(term: str) -> str:
    return f"{TERMS} LIKE '% {term}%'"


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(conditions)
