"""A graph's folder: ``gnothi-index.json`` names its format and version and the folder of tables that is in force."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from gnothi.errors import MALFORMED, IndexUnavailable
from gnothi.graph.graph import Graph
from gnothi.graph.tables import Tables
from gnothi.graph.templates import Template
from gnothi.retrieval.folder import FILE, Kind, damaged, kind_of, prepare_folder, read_fields
from gnothi.typed import typed
from gnothi.version import __version__

GRAPH = Kind("gnothi-graph", 1, "graph", "a graph", "gnothi index build {} --graph --out {}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """``tables`` is the name of the folder of tables, empty before the first build is complete; ``relations`` are name and
    sentence of each; ``digest`` tells what the tables were made of, ``content`` what is in them (empty where
    nobody noted it)."""

    tables: str = ""
    nodes: int = 0
    facts: int = 0
    relations: tuple[tuple[str, str], ...] = ()
    lemmatiser: str = ""
    language: str = "en"
    digest: str = ""
    content: str = ""
    complete: bool = False
    format: str = GRAPH.format
    version: int = GRAPH.version
    created_by: str = __version__


def is_graph(path: str | os.PathLike[str]) -> bool:
    """Whether the folder says of itself that it holds a graph."""
    return kind_of(path) == "graph"


def open_folder(path: str | os.PathLike[str]) -> Graph:
    """The graph in a folder. Raises IndexUnavailable when there is none that can be read."""
    folder = Path(path)
    manifest = read_manifest(folder)
    if not manifest.tables:
        raise IndexUnavailable(
            f"the graph {folder} holds nothing yet: its build was interrupted. Run the same build command again."
        )
    try:
        tables = Tables.open(folder / manifest.tables)
    except FileNotFoundError:
        # A build that ended meanwhile put new tables in their place.
        renewed = read_manifest(folder)
        if renewed.tables == manifest.tables:
            raise damaged(folder, GRAPH, "a file of its tables is missing") from None
        return open_folder(path)
    except (OSError, ValueError, EOFError) as error:
        raise damaged(folder, GRAPH, str(error)) from None
    if len(tables) != manifest.facts or tables.nodes != manifest.nodes:
        raise damaged(folder, GRAPH, "its tables are of another size than it says")
    relations = [(name, Template.of(sentence)) for name, sentence in manifest.relations]
    return Graph(tables, relations, str(path), manifest.lemmatiser, manifest.language)


def read_manifest(path: Path) -> Manifest:
    """Raises IndexUnavailable for a folder that is not there, not a graph, or of another version."""
    raw = read_fields(path, GRAPH)
    try:
        relations = tuple((str(name), Template.of(sentence).sentence) for name, sentence in raw["relations"])
        manifest: Manifest = typed(Manifest, raw | {"relations": relations})
        if manifest.tables not in ("", Path(manifest.tables).name):  # nothing outside the folder is opened
            raise ValueError
        return manifest
    except MALFORMED:
        raise damaged(path, GRAPH, f"a field of {FILE} is missing or of the wrong type") from None


def fingerprint(path: Path) -> str:
    """Of the facts and the sentences that say them; empty where a graph does not say. Raises as ``read_manifest``."""
    manifest = read_manifest(path)
    if not manifest.content:
        return ""
    return hashlib.blake2b(
        repr((manifest.content, manifest.relations, manifest.lemmatiser)).encode(), digest_size=16
    ).hexdigest()


def prepare(path: Path) -> Manifest:
    """``prepare_folder`` for a graph."""
    prepare_folder(path, GRAPH, Manifest())
    return read_manifest(path)
