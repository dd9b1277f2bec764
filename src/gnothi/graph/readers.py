"""From files to triples, and what their nodes are called. Files may be packed with gz."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from gnothi.errors import InvalidInput, InvalidSetting, shown
from gnothi.retrieval.ingest.json_file import parse_json

# What every reader of triples gives: a parser of lines. Every line is a place where reading can go on after a kill.

LONGEST_NAME = 1000
LABEL = ""  # as the relation of a triple: the tail is the name by which the head is known


class Triple(NamedTuple):
    """A line's fact. Of facts at a hub those of larger ``weight`` come first. A ``head`` or ``tail`` that is an IRI stands in
    angle brackets and gets a name when the graph is put together."""

    head: str
    relation: str
    tail: str
    weight: float = 1.0


class Malformed(Exception):
    """A line that is not what its format asks for; the message says why, for the user."""


class Parser(Protocol):
    """Reads the lines of one file."""

    @property
    def header(self) -> bool:
        """Whether the first line names the columns and holds no triple."""
        ...

    def parse(self, line: str) -> Triple | None:
        """The triple of a line, None for one that is to be left out. Raises Malformed."""
        ...


def checked_name(text: str, what: str) -> str:
    """A node's or relation's name as it is kept: white space collapsed. Raises Malformed for one that is empty or too long."""
    name = " ".join(text.split())
    if not name:
        raise Malformed(f"its {what} is empty")
    if len(name) > LONGEST_NAME:
        raise Malformed(f"its {what} has {len(name)} characters, expected at most {LONGEST_NAME}")
    return name


def number(value: object) -> float:
    """A weight. Raises Malformed for anything but a finite number."""
    try:
        weight = float(value)  # type: ignore[arg-type]  # whatever is no number is told below
    except (TypeError, ValueError, OverflowError):
        weight = float("nan")
    if isinstance(value, bool) or not abs(weight) < float("inf"):
        raise Malformed(f"its weight is {shown(value)}, expected a finite number")
    return weight


# ConceptNet's own dump (``conceptnet-assertions-5.7.0.csv.gz``): five tab-separated columns, ``/a/[...] /r/IsA /c/en/dog/n
# /c/en/animal {"weight": 2.0, ...}``. Only facts between two terms of one language are read.


class ConceptNet:
    header = False

    def __init__(self, language: str) -> None:
        self._prefix = f"/c/{language}/"

    def parse(self, line: str) -> Triple | None:
        fields = line.split("\t")
        if len(fields) != 5:
            raise Malformed(f"tab-separated fields: got {len(fields)}, expected 5 (assertion, relation, start, end, details)")
        _, relation, start, end, details = fields
        if not relation.startswith("/r/"):
            raise Malformed(f"its relation is {relation[:60]!r}, expected one that begins with /r/")
        if not start.startswith(self._prefix) or not end.startswith(self._prefix):
            return None
        try:
            weight = json.loads(details)["weight"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Malformed("its fifth column is no JSON object with a weight") from None
        return Triple(self._term(start), checked_name(relation[3:], "relation"), self._term(end), number(weight))

    def _term(self, uri: str) -> str:
        """``/c/en/ice_cream/n/wn/food`` is "ice cream": kinds of words and senses are not told apart."""
        return checked_name(uri[len(self._prefix) :].partition("/")[0].replace("_", " "), "term")


# JSON Lines: ``{"head", "relation", "tail"}`` (or subject, predicate, object), perhaps a weight; other keys are ignored.

_OTHERS = {"head": "subject", "relation": "predicate", "tail": "object"}


class JsonLines:
    header = False

    def parse(self, line: str) -> Triple | None:
        try:
            record = parse_json(line)
        except ValueError as error:
            raise Malformed(str(error)) from None
        if not isinstance(record, dict):
            raise Malformed("got JSON that is no object, expected one with head, relation and tail")
        head, relation, tail = (_text(record, key) for key in _OTHERS)
        return Triple(head, relation, tail, number(record.get("weight", 1.0)))


def _text(record: dict[str, object], key: str) -> str:
    value = record.get(key, record.get(_OTHERS[key]))
    if not isinstance(value, str):
        got = "nothing" if value is None else shown(value)
        raise Malformed(f"its {key} is {got}, expected text")
    # Lone surrogates are possible in JSON and impossible in UTF-8.
    return checked_name(value.encode("utf-8", "replace").decode(), key)


# N-Triples (W3C Recommendation, 25 February 2014): ``<subject> <predicate> <object> .`` a line. A parser of our own: the
# grammar is one line, and libraries that read a file as a whole cannot go on in its middle after a kill. The tests hold it
# against rdflib. Nodes without a name that a text could say are left out: blank nodes, literals in other languages than the
# graph's, literals of more than a sentence or two.

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
        match = _LINE.fullmatch(line)
        if match is None:
            if _COMMENT.fullmatch(line):
                return None
            raise Malformed("not N-Triples: expected <subject> <predicate> <object> . on one line")
        subject, predicate, value = match.groups()
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

    def letter(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if not code:
            return _LETTERS.get(match[3], match[3])
        if int(code, 16) > 0x10FFFF or 0xD800 <= int(code, 16) <= 0xDFFF:
            raise Malformed(f"not N-Triples: {match[0]} is no character")
        return chr(int(code, 16))

    return _ESCAPED.sub(letter, text)


# Tab-separated triples: ``head relation tail`` with or without a header, a weight and a truth label if there are any.

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
            checked_name(row[HEAD], HEAD),
            checked_name(row[RELATION], RELATION),
            checked_name(row[TAIL], TAIL),
            number(row.get(WEIGHT, "1")),
        )
        return triple if truth in _TRUE else None


def _tsv_parser(path: Path, first: str, columns: Sequence[str] | None, known_relations: Collection[str]) -> Tsv:
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
    used = [column for column in named if column != OTHER]
    if "" in named or len(set(used)) != len(used) or not set(_USUAL) <= set(used):
        raise InvalidSetting(
            f"<--columns>: got {','.join(columns)!r}, expected the columns in their order, separated by commas: head, relation "
            "and tail, perhaps weight and label (1 true, 0 false: left out), and - for one that is not read."
        )
    return named


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
    return _tsv_parser(path, first, columns, known_relations)


# What nodes are called: names as they are, IRIs by their labels or their ends. Two nodes never have one name.


def node_names(keys: Sequence[str], labels: Mapping[int, int], used: Sequence[bool]) -> list[str]:
    """The names of nodes from how they were read. ``labels`` gives for a node the one whose text it is called by;
    ``used`` tells the nodes that have facts from those that are labels only.

    An IRI whose name is taken has itself added in brackets, which linking does not ask a text to say: "Paris (http://...)".
    """
    if not labels and not any(_is_iri(key) for key in keys):
        return list(keys)
    names_in_use = {key for key, real in zip(keys, used, strict=True) if real and not _is_iri(key)}
    names = []
    for number, key in enumerate(keys):
        if not _is_iri(key) or not used[number]:
            names.append(key)
            continue
        iri = key[1:-1]
        name = keys[labels[number]] if number in labels else local_name(iri)
        while name in names_in_use:
            name = f"{name} ({iri})"
        names_in_use.add(name)
        names.append(name)
    return names


def _is_iri(key: str) -> bool:
    return key.startswith("<") and key.endswith(">") and len(key) > 2
