"""A graph's folder: ``gnothi-index.json`` names its format and version and the folder of tables that is in force."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from gnothi.errors import IndexUnavailable
from gnothi.graph.graph import Graph
from gnothi.graph.tables import Tables
from gnothi.graph.templates import Template
from gnothi.retrieval.folder import FILE, kind_of
from gnothi.version import __version__

FORMAT = "gnothi-graph"
FORMAT_VERSION = 1


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
    format: str = FORMAT
    version: int = FORMAT_VERSION
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
            raise _damaged(folder, "a file of its tables is missing") from None
        return open_folder(path)
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(folder, str(error)) from None
    if len(tables) != manifest.facts or tables.nodes != manifest.nodes:
        raise _damaged(folder, "its tables are of another size than it says")
    relations = [(name, Template.of(sentence)) for name, sentence in manifest.relations]
    return Graph(tables, relations, str(path), manifest.lemmatiser, manifest.language)


def read_manifest(path: Path) -> Manifest:
    """Raises IndexUnavailable for a folder that is not there, not a graph, or of another version."""
    try:
        raw = json.loads((path / FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise IndexUnavailable(f"there is no graph at {path}. {_BUILD.format(path)}") from None
    except OSError as error:
        raise IndexUnavailable(f"the graph {path} cannot be read: {error.strerror}. Check its permissions.") from None
    except ValueError:
        raise _damaged(path, f"{FILE} is not JSON") from None
    found = raw.get("format") if isinstance(raw, dict) else type(raw).__name__
    if found != FORMAT:
        raise IndexUnavailable(
            f"{path} is not a graph of Gnothi: got format {found!r}, expected {FORMAT!r}. {_BUILD.format('FOLDER')}"
        )
    if raw.get("version") != FORMAT_VERSION:
        raise IndexUnavailable(
            f"the graph {path} has format version {raw.get('version')!r} (made by Gnothi {raw.get('created_by', '?')}), "
            f"expected version {FORMAT_VERSION}. {_BUILD.format('FOLDER')}"
        )
    try:
        relations = tuple((str(name), Template.of(sentence).sentence) for name, sentence in raw["relations"])
        return Manifest(**(raw | {"relations": relations}))
    except (KeyError, TypeError, ValueError):
        raise _damaged(path, f"a field of {FILE} is missing or of the wrong type") from None


def fingerprint(path: Path) -> str:
    """Of the facts and the sentences that say them; empty where a graph does not say. Raises as ``read_manifest``."""
    manifest = read_manifest(path)
    if not manifest.content:
        return ""
    return hashlib.blake2b(
        repr((manifest.content, manifest.relations, manifest.lemmatiser)).encode(), digest_size=16
    ).hexdigest()


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Replaces the file in one step: a reader sees the old one or the new one, whenever the power goes."""
    temporary = path / (FILE + ".new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(asdict(manifest), file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path / FILE)


def prepare(path: Path) -> Manifest:
    """Make ``path`` ready for a build: an existing graph, or a new folder with a manifest. A folder of others is refused."""
    if path.exists() and not path.is_dir():
        raise IndexUnavailable(f"{path} is a file, expected a folder for the graph. Choose another --out.")
    if not (path / FILE).exists():
        path.mkdir(parents=True, exist_ok=True)
        strangers = sorted(name for name in os.listdir(path) if not name.startswith(FILE))
        if strangers:
            raise IndexUnavailable(
                f"{path} is not a graph of Gnothi and not empty: it holds {strangers[0]!r}. "
                "Choose a new or empty folder; nothing was changed."
            )
        write_manifest(path, Manifest())
    return read_manifest(path)


def _damaged(path: Path, what: str) -> IndexUnavailable:
    return IndexUnavailable(f"the graph {path} is damaged: {what}. {_BUILD.format('FOLDER')}")


_BUILD = "Build one with `gnothi index build SOURCE... --graph --out {}`."
