"""How a fact is said: a sentence for each relation, from a small TOML file.

    [relations]
    IsA = "{head} is a kind of {tail}."

    [merged]                  # optional: relations that are read as another one
    InstanceOf = "IsA"
    HasA = "-PartOf"          # a minus sign exchanges head and tail

A relation without a sentence gets one made of its name: ``capitalOf`` becomes "{head} capital of {tail}.".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from gnothi.errors import MALFORMED, InvalidInput

CONCEPTNET = "conceptnet"
MEDICAL = "ddb"
PACKAGED = (CONCEPTNET, MEDICAL)
_PLACE = re.compile(r"\{([^{}]*)\}")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+|\d+")


@dataclass(frozen=True)
class Template:
    """A sentence with a place for head and tail, in either order, cut where they stand."""

    before: str
    between: str
    after: str
    tail_first: bool = False

    @classmethod
    def of(cls, sentence: str) -> Template:
        """Raises ValueError unless ``{head}`` and ``{tail}`` stand in the sentence once each and nothing else in braces."""
        pieces = _PLACE.split(sentence)
        if sorted(pieces[1::2]) != ["head", "tail"] or any(brace in piece for piece in pieces[::2] for brace in "{}"):
            raise ValueError(f"got {sentence!r}, expected a sentence with {{head}} and {{tail}}, once each")
        return cls(pieces[0], pieces[2], pieces[4], pieces[1] == "tail")

    def say(self, head: str, tail: str) -> str:
        """The sentence; its first letter is a capital."""
        first, second = (tail, head) if self.tail_first else (head, tail)
        text = f"{self.before}{first}{self.between}{second}{self.after}"
        # A name written with capitals of its own stays as it is: "iPhone", "e.V.". So does a letter that has no capital ("ß").
        capital = text[:1].upper()
        return capital + text[1:] if len(capital) == 1 and (self.before or first.islower()) else text

    @property
    def sentence(self) -> str:
        places = ("{tail}", "{head}") if self.tail_first else ("{head}", "{tail}")
        return f"{self.before}{places[0]}{self.between}{places[1]}{self.after}"


def default(relation: str) -> Template:
    """A readable sentence from a relation's name."""
    name = relation.rstrip("/#").rpartition("#")[2].rpartition("/")[2]
    words = [part if part.isupper() and len(part) > 1 else part.lower() for part in _PARTS.findall(name)]
    return Template("", f" {' '.join(words) or relation} ", ".")


@dataclass(frozen=True)
class Templates:
    """``sentences`` by relation; ``merged`` says which relation another one is read as, and whether head and tail change
    places."""

    sentences: Mapping[str, Template] = field(default_factory=dict)
    merged: Mapping[str, tuple[str, bool]] = field(default_factory=dict)

    @classmethod
    def of(cls, sentences: Mapping[str, str]) -> Templates:
        return cls({relation: Template.of(sentence) for relation, sentence in sentences.items()})

    def template(self, relation: str) -> Template:
        return self.sentences.get(relation) or default(relation)

    def as_dict(self) -> dict[str, dict[str, str]]:
        """As a TOML file has it, ready for JSON."""
        merged = {name: f"{'-' if exchanged else ''}{target}" for name, (target, exchanged) in self.merged.items()}
        return {"relations": {name: template.sentence for name, template in self.sentences.items()}, "merged": merged}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Templates:
        """The inverse of ``as_dict``. Raises ValueError."""
        return _parsed(document)

    def canonical(self, head: str, relation: str, tail: str) -> tuple[str, str, str]:
        """The triple as it is kept."""
        target, exchanged = self.merged.get(relation, (relation, False))
        return (tail, target, head) if exchanged else (head, target, tail)


def read(path: Path) -> Templates:
    """The templates of a TOML file. Raises InvalidInput that names the file and what is wrong in it."""
    try:
        return _parsed(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidInput(
            f"cannot read the templates {path}: {error.strerror}. Expected {', '.join(PACKAGED)} or a TOML file."
        ) from None
    except MALFORMED as error:
        raise InvalidInput(
            f"the templates {path}: {error}. Expected a table [relations] with lines such as "
            'IsA = "{head} is a kind of {tail}." and, to merge relations, a table [merged] with lines such as HasA = "-PartOf".'
        ) from None


def conceptnet() -> Templates:
    """ConceptNet's relations merged to 17, as usual in question answering over it (Feng et al., 2020; QA-GNN), in our words."""
    return packaged(CONCEPTNET)


def packaged(name: str) -> Templates:
    """The templates of that name that come along, one of ``PACKAGED``: sentences in our words. ``ddb``: the Disease Database
    part of UMLS and DrugBank, with the relations as QA-GNN's graph of both spells them."""
    return _parsed(tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8")))


def _parsed(document: Any) -> Templates:
    if not isinstance(document, dict):
        raise ValueError("got no tables")
    if unknown := document.keys() - {"relations", "merged"}:
        raise ValueError(f"got a table or key {sorted(unknown)[0]!r}")
    sentences = {}
    for relation, sentence in _strings(document, "relations"):
        try:
            sentences[relation] = Template.of(sentence)
        except ValueError as error:
            raise ValueError(f"relation {relation!r}: {error}") from None
    merged = {relation: (target.removeprefix("-"), target.startswith("-")) for relation, target in _strings(document, "merged")}
    for relation, (target, _) in merged.items():
        if target in merged or relation in sentences:
            raise ValueError(f"relation {relation!r} is merged into {target!r}: merges may not be chained or have a sentence")
    return Templates(sentences, merged)


def _strings(document: Mapping[str, Any], name: str) -> list[tuple[str, str]]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise ValueError(f"got {name} = {table!r}, expected a table")
    for key, value in table.items():
        if not isinstance(value, str):
            raise ValueError(f"{name}: got {key} = {value!r}, expected text")
    return list(table.items())
