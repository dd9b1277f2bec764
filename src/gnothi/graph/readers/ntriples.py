r"""N-Triples (W3C Recommendation, 25 February 2014): ``<subject> <predicate> <object> .`` a line.

A parser of our own: the grammar is one line, and libraries that read a file as a whole cannot go on in its middle after a
kill. The tests hold it against rdflib. Nodes without a name that a text could say are left out: blank nodes, literals in other
languages than the graph's, literals of more than a sentence or two.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from gnothi.graph.readers.base import LABEL, LONGEST_NAME, Malformed, Triple

_ESCAPE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_IRI = rf"<(?:[^\x00-\x20<>\"{{}}|^`\\]|{_ESCAPE})*>"
_BLANK = r"_:[\w:](?:[\w:.\-·]*[\w:\-·])?"
_LITERAL = rf"\"(?:[^\"\\\n\r]|\\[tbnrf\"'\\]|{_ESCAPE})*\"(?:\^\^{_IRI}|@[a-zA-Z]+(?:-[a-zA-Z0-9]+)*)?"
_LINE = re.compile(rf"[ \t]*({_IRI}|{_BLANK})[ \t]*({_IRI})[ \t]*({_IRI}|{_BLANK}|{_LITERAL})[ \t]*\.[ \t]*(?:#.*)?")
_IRI_ALONE = re.compile(_IRI)
_COMMENT = re.compile(r"[ \t]*(?:#.*)?")
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([tbnrf\"'\\]))")
_LETTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_LABELS = frozenset(
    {
        "http://www.w3.org/2000/01/rdf-schema#label",
        "http://www.w3.org/2004/02/skos/core#prefLabel",
        "http://schema.org/name",
    }
)


class NTriples:
    header = False

    def __init__(self, language: str) -> None:
        self._language = language.lower()

    def parse(self, line: str) -> Triple | None:
        found = _LINE.fullmatch(line)
        if found is None:
            if _COMMENT.fullmatch(line):
                return None
            raise Malformed("not N-Triples: expected <subject> <predicate> <object> . on one line")
        subject, predicate, value = found.groups()
        if subject.startswith("_:") or value.startswith("_:"):
            return None
        tail = value if value.startswith("<") else self._literal(value)
        relation = _iri(predicate)[1:-1]
        if relation in _LABELS:
            return Triple(_iri(subject), LABEL, tail) if tail and not value.startswith("<") else None
        if not tail or len(subject) > LONGEST_NAME or len(tail) > LONGEST_NAME:
            return None
        return Triple(_iri(subject), local_name(relation), _iri(tail) if value.startswith("<") else tail)

    def _literal(self, value: str) -> str:
        """Its text on one line; empty for one in another language."""
        text, _, rest = value[1:].rpartition('"')
        if rest.startswith("@") and rest[1:].partition("-")[0].lower() != self._language:
            return ""
        plain = " ".join(_unescaped(text).split())
        # One that stands in angle brackets would be taken for an IRI.
        return plain[1:-1].strip() if plain.startswith("<") and plain.endswith(">") else plain


def local_name(iri: str) -> str:
    """What a reader would call it: the end of the IRI, unquoted, with spaces."""
    end = re.split(r"[/#]", iri.rstrip("/#"))[-1]
    return " ".join(unquote(end).replace("_", " ").split()) or iri


def _iri(text: str) -> str:
    """In its angle brackets. What may not stand in an IRI may not be put there by an escape, either."""
    plain = _unescaped(text)
    if plain != text and not _IRI_ALONE.fullmatch(plain):
        raise Malformed(f"not N-Triples: {text} holds an escaped character that no IRI may have")
    return plain


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text

    def letter(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if not code:
            return _LETTERS.get(found[3], found[3])
        if int(code, 16) > 0x10FFFF or 0xD800 <= int(code, 16) <= 0xDFFF:
            raise Malformed(f"not N-Triples: {found[0]} is no character")
        return chr(int(code, 16))

    return _ESCAPED.sub(letter, text)
