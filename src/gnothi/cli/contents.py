"""``gnothi index info`` and ``delete``: what an index or a graph holds, and taking some of it out."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict
from pathlib import Path

import click

from gnothi.cli import graph_index, options
from gnothi.cli.building import UNFINISHED
from gnothi.cli.running import SOME_FAILED
from gnothi.cli.saying import say
from gnothi.errors import InvalidInput, counted
from gnothi.files import DATABASE_ERRORS
from gnothi.naming import on_the_command_line
from gnothi.report.terminal.console import clean, print_json
from gnothi.retrieval import left_out
from gnothi.retrieval.registry import RETRIEVERS
from gnothi.retrieval.sources import Listing
from gnothi.schemes import split


@click.command()
@click.argument("path")
@click.option("--files", is_flag=True, help="List the indexed files, each with its state.")
@options.json
def info(path: str, files: bool, as_json: bool) -> None:
    """Show what the index or graph in folder PATH holds.

    With --files: passages, bytes, date and state of each file. States: read; partly read (the next build continues it);
    changed, gone or unreadable since.
    """
    from gnothi.graph.graph import is_graph
    from gnothi.retrieval.bm25 import BM25Index
    from gnothi.retrieval.dense.index import content_of
    from gnothi.retrieval.dense.store import read_manifest as read_dense
    from gnothi.retrieval.folder import read_manifest
    from gnothi.retrieval.languages import analysis

    if files:
        _files(path, as_json)
        return
    if is_graph(path):
        graph_index.info(path, as_json)
        return

    folder = _folder(path)
    manifest = read_manifest(folder)
    passages, sources, left = len(BM25Index.open(path)), _sources(folder), left_out.read(folder)
    dense = read_dense(folder)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    facts = {
        "path": path,
        "passages": passages,
        "sources": sources,
        "left_out": [asdict(one) | {"reason": on_the_command_line(one.reason)} for one in left],
        "complete": manifest.complete,
        "bytes": size,
        "version": manifest.version,
        "language": manifest.language,
        "fields": manifest.fields,
        "analyser": analysis(manifest.language),
        "created_by": manifest.created_by,
        "dense": dense
        and {
            "encoder": dense.encoder,
            "question_encoder": dense.question_encoder,
            "fingerprint": dense.fingerprint,
            "dimension": dense.dimension,
            "passages": dense.passages,
            "complete": dense.content == content_of(folder),
        },
    }
    if as_json:
        print_json(facts)
        return
    click.echo(f"{path}: {counted(passages, 'passage')}, {size / 1e6:,.1f} MB on disk")
    if sources is not None:
        click.echo(f"sources: {counted(sources, 'file')}")
    headings = {
        (True, False): "not readable, or not to the end",
        (False, False): "left out, skipped",
        (False, True): "notices on what was read",
    }
    for kind, heading in headings.items():
        listing = Listing()
        for one in left:
            if (one.unreadable, one.read) == kind:
                listing.add(f"{one.path} {one.reason}")
        if listing.count:
            click.echo(f"{heading}: {counted(listing.count, 'notice' if kind[1] else 'file')}")
            for line in listing.first:
                click.echo(f"  {clean(on_the_command_line(line))}")
    click.echo(clean(f"format: version {manifest.version}, by Gnothi {manifest.created_by}"))
    click.echo(clean(f"language: {manifest.language}"))
    click.echo(f"fields: {manifest.fields}")
    click.echo(clean(f"terms: {analysis(manifest.language)}"))
    if dense:
        click.echo(clean(f"vectors: {counted(dense.passages, 'passage')}, {dense.dimension} numbers, by {dense.encoding}"))
        if dense.content != content_of(folder):
            click.echo(f"Not all passages have their vectors: gnothi index embed {path} makes them.")
    if not manifest.complete:
        click.echo(UNFINISHED.capitalize())


def _files(path: str, as_json: bool) -> None:
    from gnothi.graph.building import notes_of
    from gnothi.graph.graph import is_graph
    from gnothi.retrieval.folder import read_manifest
    from gnothi.retrieval.ledger import FILE
    from gnothi.retrieval.listing import sources

    folder = notes_of(path) if is_graph(path) else _folder(path)
    if folder == Path(path):
        read_manifest(folder)
    found = list(sources(folder)) if (folder / FILE).exists() else []
    if as_json:
        print_json({"path": path, "sources": [asdict(one) for one in found]})
        return
    if not found:
        say("No file: all were deleted, a program filled the index, or its first build was interrupted early.")
    for one in found:
        facts = f"{one.passages:>9,}  {one.bytes:>13,}  {one.modified[:16]:16}  {one.state:11}"
        click.echo(f"{facts}  {clean(one.source)}")


@click.command()
@click.argument("path")
@click.argument("names", nargs=-1, required=True, metavar="SOURCE|ID...")
@options.json
def delete(path: str, names: tuple[str, ...], as_json: bool) -> int:
    """Delete files, folders or passages from the index PATH. Name files as in the index or by path, and passages by id.

    The next build reads a deleted file again if it is still on disk. A deleted passage comes back only when its file changes.
    Exit code 1: the index does not hold a name that you gave.
    """
    from gnothi.graph.building import delete_from_graph
    from gnothi.graph.graph import is_graph
    from gnothi.retrieval.folder import read_manifest
    from gnothi.retrieval.listing import Deleted, delete_sources
    from gnothi.retrieval.writer import IndexWriter

    rest, deleted, left = list(dict.fromkeys(names)), 0, 0
    if is_graph(path):
        gone = delete_from_graph(path, rest)
    else:
        if not split(RETRIEVERS, path)[0]:
            manifest = read_manifest(Path(path))
            with IndexWriter(path) as writer:
                rest = [name for name in rest if not writer.delete(name)]
                if len(rest) < len(set(names)):
                    writer.commit(manifest.complete)
                left, deleted = writer.passages, len(set(names)) - len(rest)
        gone = delete_sources(path, rest) if rest else Deleted(passages=left)
        deleted += gone.deleted
    for name in gone.missing:
        say(f"warning: no file or passage has the name {name!r}")
    if gone.there:
        more = f" and {len(gone.there) - 1:,} more are" if len(gone.there) > 1 else " is"
        say(f"{gone.there[0]}{more} still there: a later build of its folder reads it again.")
    if gone.again:
        say(f"Build again: {counted(len(gone.again), 'file')} with passages of the same ids will be read again.")
    if as_json:
        print_json(
            {
                "path": path,
                "deleted": deleted,
                "sources": gone.sources,
                "still_there": gone.there,
                "missing": gone.missing,
                "passages": gone.passages,
            }
        )
    else:
        click.echo(
            f"{path}: {counted(deleted, 'passage')} deleted ({counted(len(gone.sources), 'file')}), {gone.passages:,} left"
        )
    return SOME_FAILED if gone.missing else 0


def _folder(path: str) -> Path:
    if split(RETRIEVERS, path)[0]:
        raise InvalidInput(
            f"index info: got {path!r}, expected the folder of an index. Of a table or index on a server the server's own "
            "programs tell; `gnothi index search` searches it."
        )
    return Path(path)


def _sources(folder: Path) -> int | None:
    """Number of files indexed; None when nothing tells (an index that was filled by a program, or is being written)."""
    from gnothi.retrieval.ledger import FILE

    try:
        database = sqlite3.connect(f"{(folder / FILE).absolute().as_uri()}?mode=ro", uri=True, timeout=0.2)
        try:
            return int(database.execute("SELECT count(*) FROM sources").fetchone()[0])
        finally:
            database.close()
    except DATABASE_ERRORS:
        return None
