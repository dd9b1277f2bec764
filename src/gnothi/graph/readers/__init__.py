"""From files to triples: one module per format. Files may be packed with gz."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from gnothi.errors import InvalidInput
from gnothi.graph.readers.base import Parser
from gnothi.graph.readers.conceptnet import ConceptNet
from gnothi.graph.readers.jsonl import JsonLines
from gnothi.graph.readers.ntriples import NTriples
from gnothi.graph.readers.tsv import parser as tsv

_PLAIN = (".tsv", ".jsonl", ".ndjson", ".nt", ".csv")
SUFFIXES = (*_PLAIN, *(f"{suffix}.gz" for suffix in _PLAIN))


def parser(path: Path, first: str, columns: Sequence[str] | None, language: str, known_relations: Collection[str]) -> Parser:
    """The parser for a file that begins with the line ``first``. Raises InvalidInput for a CSV that is not ConceptNet's."""
    name = path.name.lower().removesuffix(".gz")
    if first.startswith("/a/["):
        return ConceptNet(language)
    if name.endswith((".jsonl", ".ndjson")):
        return JsonLines()
    if name.endswith(".nt"):
        return NTriples(language)
    if name.endswith(".csv"):
        raise InvalidInput(
            f"{path}, line 1: got {first[:60]!r}, expected ConceptNet's dump, whose lines begin with /a/[. "
            "Write other tables as TSV with a header: head, relation, tail."
        )
    return tsv(path, first, columns, known_relations)
