"""What recipes need from outside: data sets, corpora, graphs and models, each described once in ``resources.toml``.

    [data.iirc]
    title = "IIRC"
    questions = "iirc/dev.json"          # where it is looked for in the folder of data
    training = "iirc/train.json"         # optional
    beside = ["iirc/names.json"]         # optional: what else must lie there
    home = "https://..."                 # the official page
    get = "which file of it, and what to do with it"
    licence = "CC BY 4.0"
    source = "its page on ..."           # where licence, sizes and prices come from
    unverified = true                    # optional: some of that is from memory
    rehearse = "lab:two_hop"             # the laboratory's questions of the same form
    answerable = true                    # optional: only questions with an answer

``[corpus.NAME]``, ``[graph.NAME]`` have ``files`` and ``index``, the folder that is built of them, a corpus with ``fields``
(``gnothi index build --fields``); ``[model."ID"]``, also of encoders and re-rankers, has ``billions`` of parameters, and
``gated = true`` where the licence has to be accepted first.
``gigabytes`` are downloaded, ``disk`` is what is built of them, ``count`` and ``count_training`` are questions (of a corpus:
passages), and ``price`` is in dollars for a million tokens that are read, and written.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gnothi.errors import UnknownName

FILE = Path(__file__).parent / "resources.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Of which ``kind`` it is says the table it stands in; ``sha256`` by file, where it is known."""

    kind: str
    name: str
    title: str
    home: str
    get: str
    licence: str
    source: str
    unverified: bool = False
    questions: str = ""
    training: str = ""
    beside: tuple[str, ...] = ()
    rehearse: str = ""
    rehearse_training: str = ""
    answerable: bool = False
    files: tuple[str, ...] = ()
    index: str = ""
    fields: str = ""
    encoder: str = ""
    question_encoder: str = ""
    templates: str = ""
    billions: float = 0.0
    gigabytes: float = 0.0
    disk: float = 0.0
    gated: bool = False
    count: int = 0
    count_training: int = 0
    price: tuple[float, ...] = ()
    sha256: Mapping[str, str] = field(default_factory=dict)


@functools.cache
def _read() -> dict[tuple[str, str], Resource]:
    document = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {(kind, name): _resource(kind, name, table) for kind, tables in document.items() for name, table in tables.items()}


def _resource(kind: str, name: str, table: Mapping[str, Any]) -> Resource:
    values: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in table.items()}
    return Resource(kind=kind, name=name, **values)


def find(kind: str, name: str) -> Resource:
    """Raises UnknownName."""
    known = _read()
    if (kind, name) not in known:
        raise UnknownName(f"{kind} of recipes", name, [other for of, other in known if of == kind])
    return known[kind, name]


def model(spec: str) -> Resource | None:
    """What is known of a model; None for one that no paper names."""
    return _read().get(("model", spec))
