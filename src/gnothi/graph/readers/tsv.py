"""Tab-separated triples: ``head relation tail`` with or without a header, a weight and a truth label if there are any."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.graph.readers.base import Malformed, Triple, name, number

HEAD, RELATION, TAIL, WEIGHT, TRUTH, OTHER = "head", "relation", "tail", "weight", "label", "-"
NAMES = {
    "subject": HEAD, "predicate": RELATION, "object": TAIL,
    HEAD: HEAD, RELATION: RELATION, TAIL: TAIL, WEIGHT: WEIGHT, TRUTH: TRUTH, OTHER: OTHER,
}  # fmt: skip
_USUAL = (HEAD, RELATION, TAIL)
_TRUE, _FALSE = frozenset({"1", "true", "yes"}), frozenset({"0", "-1", "false", "no"})


@dataclass(frozen=True)
class Tsv:
    """``columns`` by name; ``-`` is one that is not read. None: head, relation, tail and perhaps a weight."""

    columns: tuple[str, ...] | None
    header: bool = False

    def parse(self, line: str) -> Triple | None:
        fields = line.split("\t")
        columns = self.columns or (*_USUAL, WEIGHT)[: max(len(fields), 3)]
        if len(fields) != len(columns):
            got = f"got {len(fields)} tab-separated field{'' if len(fields) == 1 else 's'}"
            raise Malformed(f"{got}, expected {len(self.columns or _USUAL)} ({', '.join(self.columns or _USUAL)})")
        row = dict(zip(columns, fields, strict=True))
        truth = row.get(TRUTH, "1").strip().lower()
        if truth not in _TRUE | _FALSE:
            raise Malformed(f"its label is {truth!r}, expected 1 (true) or 0 (false)")
        triple = Triple(
            name(row[HEAD], HEAD), name(row[RELATION], RELATION), name(row[TAIL], TAIL), number(row.get(WEIGHT, "1"))
        )
        return triple if truth in _TRUE else None


def parser(path: Path, first: str, columns: Sequence[str] | None, known_relations: Collection[str]) -> Tsv:
    """For a file whose first line is ``first``. Raises InvalidInput where the order of columns is in doubt."""
    fields = first.split("\t")
    named = [NAMES.get(field.strip().lower()) for field in fields]
    header = set(_USUAL) <= set(named)
    if columns is not None:
        return Tsv(check_columns(columns), header)
    if header:
        return Tsv(tuple(column or OTHER for column in named), header=True)
    if len(fields) > 1 and fields[0] in known_relations and fields[1] not in known_relations:
        raise InvalidInput(
            f"{path}, line 1: got the relation {fields[0]!r} in the first column, expected head, relation, tail. Name the "
            "columns in their order, as in <--columns relation,head,tail> (look which of the two comes first)."
        )
    return Tsv(None)


def check_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns by their proper names. Raises InvalidSetting unless head, relation and tail are there, once each."""
    named = tuple(NAMES.get(column.strip().lower(), "") for column in columns)
    read = [column for column in named if column != OTHER]
    if "" in named or len(set(read)) != len(read) or not set(_USUAL) <= set(read):
        raise InvalidSetting(
            f"<--columns>: got {','.join(columns)!r}, expected the columns in their order, separated by commas: head, relation "
            "and tail, perhaps weight and label (1 true, 0 false: left out), and - for one that is not read."
        )
    return named
