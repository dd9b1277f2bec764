r"""ConceptNet's own dump (``conceptnet-assertions-5.7.0.csv.gz``): five tab-separated columns,
``/a/[...]  /r/IsA  /c/en/dog/n  /c/en/animal  {"weight": 2.0, ...}``. Only facts between two terms of one language are read.
"""

from __future__ import annotations

import json

from gnothi.graph.readers.base import Malformed, Triple, name, number


class ConceptNet:
    header = False

    def __init__(self, language: str) -> None:
        self._prefix = f"/c/{language}/"

    def parse(self, line: str) -> Triple | None:
        fields = line.split("\t")
        if len(fields) != 5:
            raise Malformed(f"got {len(fields)} tab-separated fields, expected 5 (assertion, relation, start, end, details)")
        _, relation, start, end, details = fields
        if not relation.startswith("/r/"):
            raise Malformed(f"its relation is {relation[:60]!r}, expected one that begins with /r/")
        if not start.startswith(self._prefix) or not end.startswith(self._prefix):
            return None
        try:
            weight = json.loads(details)["weight"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Malformed("its fifth column is no JSON object with a weight") from None
        return Triple(self._term(start), name(relation[3:], "relation"), self._term(end), number(weight))

    def _term(self, uri: str) -> str:
        """``/c/en/ice_cream/n/wn/food`` is "ice cream": kinds of words and senses are not told apart."""
        return name(uri[len(self._prefix) :].partition("/")[0].replace("_", " "), "term")
