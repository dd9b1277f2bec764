"""``gnothi index``: build, embed and search an index of one's own documents, or a knowledge graph."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnothi.cli import contents, graph_index, options
from gnothi.cli.building import UNFINISHED, end, progress, unread
from gnothi.cli.saying import Group, say
from gnothi.errors import IndexUnavailable, InvalidInput, InvalidSetting, counted
from gnothi.events import Event, UnknownKeys, listen
from gnothi.graph.registry import open_graph
from gnothi.report.terminal.console import clean, print_json
from gnothi.retrieval.filtering import filtered, unknown_keys
from gnothi.retrieval.filters import Filters, as_filters
from gnothi.retrieval.ingest.split import DEFAULT_WORDS
from gnothi.retrieval.registry import open_index
from gnothi.retrieval.terms import as_text

if TYPE_CHECKING:
    from gnothi.retrieval.build import BuildReport, Progress
    from gnothi.retrieval.dense.embed import Progress as Embedded
    from gnothi.types import Passage, ScoredPassage


@click.group(cls=Group)
def index() -> None:
    """Index documents, or triples as a knowledge graph, and search them."""


for one in (contents.info, contents.delete):
    index.add_command(one)


@index.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "--out",
    "--to",
    "out",
    required=True,
    metavar="PATH|KIND:NAME",
    help="The index, new or existing: a folder, postgres:..., lancedb:..., elasticsearch:... or opensearch:....",
)
@click.option(
    "--words", default=DEFAULT_WORDS, show_default=True, metavar="N", help="Most words of a passage; 0: documents are not cut."
)
@click.option("--skip-invalid", is_flag=True, help="Leave out invalid lines, and list them.")
@click.option("--text-key", default="", metavar="KEY", help="Records: the key of the text. [default: from the first record]")
@click.option("--title-key", default="", metavar="KEY", help="Records: the key of the title.")
@click.option("--id-key", default="", metavar="KEY", help="Records: the key of the id.")
@click.option("--keep-missing", is_flag=True, help="Keep the passages of files that no longer exist.")
@click.option(
    "--memory-mb",
    default=256,
    show_default=True,
    metavar="N",
    help="Buffer of the writer, in megabytes, at least 64. The build needs more memory than this.",
)
@click.option(
    "--graph", is_flag=True, help="Read triples into a knowledge graph: .tsv, .jsonl, .nt, ConceptNet's .csv; or .gz."
)
@click.option(
    "--templates", metavar="conceptnet|ddb|FILE", help="Graph: sentences for relations, built in or from a TOML file."
)
@click.option("--columns", metavar="NAMES", help="Graph: columns of a TSV without header, such as relation,tail,head,label.")
@click.option(
    "--language",
    metavar="NAME|CODE",
    help="Language of words in Latin letters, such as german; none: no stems. Graph: language of names, ConceptNet's terms and "
    "literals, such as en. [default: english]",
)
@click.option("--fields", metavar="cross|best", help="Score title and text together, or apart as in DRAGIN. [default: cross]")
@options.json
@click.pass_context
def build(
    context: click.Context,
    sources: tuple[str, ...],
    out: str,
    words: int,
    skip_invalid: bool,
    text_key: str,
    title_key: str,
    id_key: str,
    keep_missing: bool,
    memory_mb: int,
    graph: bool,
    templates: str | None,
    columns: str | None,
    language: str | None,
    fields: str | None,
    as_json: bool,
) -> int:
    """Index files and folders: documents, tables, mail, code and collections. With --graph, index triples.

    \b
    gnothi index build my-documents/ --out my-index
    gnothi index build passages.tsv more/ --words 0 --out my-index
    gnothi index build conceptnet-assertions.csv.gz --graph --out my-graph

    Run the same command again to resume, or to update the index after files were added, changed, moved or deleted. Exit code
    1: some files of a folder cannot be read; the others are indexed.
    """
    from gnothi.graph.graph import is_graph
    from gnothi.retrieval.build import build as build_index

    given = {
        f"--{name.replace('_', '-')}": context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
        for name in ("words", "text_key", "title_key", "id_key", "memory_mb", "fields", "templates", "columns")
    }
    graph_index.check_flags(graph, is_graph(out), out, given)
    if graph:
        return graph_index.build(sources, out, templates, columns, language, skip_invalid, keep_missing, as_json)
    with progress(_bar, _line, "What was read is kept: run the same command again to go on.") as on_progress:
        report = build_index(
            sources,
            out,
            words=words,
            skip_invalid=skip_invalid,
            keep_missing=keep_missing,
            memory_mb=memory_mb,
            text_key=text_key,
            title_key=title_key,
            id_key=id_key,
            language=language or "",
            fields=fields or "",
            on_progress=on_progress,
        )
    holds = f"{counted(report.passages, 'passage')} ({report.added:,} added, changed or moved)"
    figures = {key: getattr(report, key) for key in ("passages", "added", "replaced", "empty")}
    return end(out, report, holds, figures, _warnings(report), as_json)


@index.command()
@click.argument("path")
@click.option(
    "--encoder",
    metavar="MODEL",
    help="A sentence-transformers model by folder or hub id, openai:NAME, openai:NAME@ADDRESS or tei:ADDRESS. "
    "[default: as before]",
)
@click.option(
    "--question-encoder", default="", metavar="MODEL", help="The encoder of questions, if it is another one, as in DPR."
)
@click.option("--question-prompt", metavar="TEXT", help="Text to put before each question. [default: as saved with the model]")
@click.option("--passage-prompt", metavar="TEXT", help="Text to put before each passage. [default: as saved with the model]")
@options.json
def embed(
    path: str,
    encoder: str | None,
    question_encoder: str,
    question_prompt: str | None,
    passage_prompt: str | None,
    as_json: bool,
) -> None:
    """Add vectors to the index in folder PATH, for search by meaning.

    \b
    gnothi index embed my-index --encoder sentence-transformers/all-MiniLM-L6-v2
    gnothi index embed my-index

    --index dense:PATH then searches by vectors, and --index hybrid:PATH by words and vectors. After an interruption, or after
    the index has changed, run the command again without --encoder.
    """
    from gnothi.retrieval.dense.embed import embed as make_vectors
    from gnothi.retrieval.dense.encoders import Encoding

    if encoder is None and (question_encoder or question_prompt is not None or passage_prompt is not None):
        raise InvalidSetting("--question-encoder and the prompts need <--encoder MODEL>: got none. Add it, too.")
    encoding = Encoding(encoder, question_encoder, question_prompt, passage_prompt) if encoder is not None else None
    kept = f"What was encoded is kept: gnothi index embed {path} goes on."
    with progress(_embedding_bar, _embedding_line, kept) as on_progress:
        report = make_vectors(path, encoding, on_progress=on_progress)
    if as_json:
        print_json({"path": path} | asdict(report))
        return
    click.echo(
        f"{path}: {counted(report.passages, 'passage')} with vectors of {report.dimension} numbers ({report.encoded:,} "
        f"encoded, {report.dropped:,} dropped) in {report.seconds:.1f} s"
    )


@index.command()
@click.argument("path")
@click.argument("query")
@click.option("-k", default=10, show_default=True, type=click.IntRange(min=1), metavar="N", help="Number of passages.")
@options.filters
@options.json
def search(path: str, query: str, k: int, filters: tuple[str, ...], as_json: bool) -> None:
    """Search the index or graph in folder PATH, or the index of the built-in laboratory: lab.

    dense:PATH and hybrid:PATH search by vectors. shards:PATH searches all indexes in folder PATH as one. In a graph, the
    search finds the nodes that the query names, and the facts around them.
    """
    from gnothi.graph.graph import is_graph

    if not query.strip():
        raise InvalidInput("the query is empty: expected at least one word.")
    if is_graph(path):
        if filters:
            raise InvalidInput("--filter: got it with a graph, whose facts have no metadata. Leave it out.")
        graph_index.search(open_graph(path), query, k, as_json)
        return
    narrowing = as_filters(filters)
    results = asyncio.run(_search(path, query, k, narrowing))
    if as_json:
        found = [asdict(one.passage) | {"score": one.score} for one in results]
        print_json({"query": query, "results": found})
        return
    if not results:
        passed = " that passes the filters" if filters else ""
        say(f"Nothing found: no passage{passed} holds any of these words. {unread(path)}".rstrip())
    if _unfinished(path):
        say(f"warning: {UNFINISHED}")
    _print_results(results)


async def _search(path: str, query: str, k: int, filters: Filters) -> tuple[ScoredPassage, ...]:
    def on_event(event: Event) -> None:
        if isinstance(event, UnknownKeys):
            say(f"warning: {unknown_keys(event)}.")

    async with contextlib.aclosing(open_index(path)) as retriever:
        with listen(on_event):
            return await filtered(retriever, filters).search(query, k)


def _unfinished(spec: str) -> bool:
    """Whether the folder that an index is named by holds a part of it only."""
    from gnothi.retrieval.folder import read_manifest
    from gnothi.retrieval.shards import shards

    try:
        if spec.startswith("shards:"):
            return not all(read_manifest(folder).complete for folder in shards(Path(spec.removeprefix("shards:"))))
        return not read_manifest(Path(spec.removeprefix("dense:").removeprefix("hybrid:").removeprefix("bm25:"))).complete
    except IndexUnavailable:  # not a folder
        return False


def _bar(reached: Progress, seconds: float) -> tuple[float, float, str]:
    label = f"{reached.passages:,} passages, {reached.passages / max(seconds, 1e-3):,.0f}/s"
    return reached.bytes_done, reached.bytes_total, label


def _line(reached: Progress, seconds: float) -> str:
    share = reached.bytes_done / max(reached.bytes_total, 1)
    left = f", about {seconds * (1 - share) / share:.0f} s left" if share else ""
    return f"{reached.passages:,} passages, {share:.0%}, {reached.passages / max(seconds, 1e-3):,.0f} passages/s{left}"


def _embedding_bar(reached: Embedded, seconds: float) -> tuple[float, float, str]:
    return reached.done, reached.total, f"{reached.stage}, {reached.fresh / max(seconds, 1e-3):,.0f}/s"


def _embedding_line(reached: Embedded, seconds: float) -> str:
    left = seconds * (reached.total - reached.done) / max(reached.fresh, 1)
    return f"{reached.stage}: {reached.done:,} of {reached.total:,}, about {left:.0f} s left"


def _warnings(report: BuildReport) -> Iterator[str]:
    if not report.sources:
        from gnothi.retrieval.ingest.discover import expected
        from gnothi.retrieval.ingest.formats import FORMATS

        yield f"warning: found no file to index. Expected {expected(FORMATS)}"
    if report.empty:
        yield f"warning: records or files without text left out: {report.empty:,}"


def _print_results(results: tuple[ScoredPassage, ...]) -> None:
    """Wrapped to the terminal's width; a passage has one line when piped, or its own where it has several, as code does."""
    width = min(shutil.get_terminal_size().columns, 100) if sys.stdout.isatty() else 0
    for rank, result in enumerate(results, 1):
        passage = result.passage
        heading = "  ".join(filter(None, (clean(passage.id), clean(passage.title), clean(_metadata(passage)))))
        click.echo(f"{rank:>2}  {result.score:7.3f}  {heading}")
        for line in passage.text.splitlines():
            indent = " " * (4 + len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip()))
            text = clean(line)
            click.echo(textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent) if width else indent + text)


def _metadata(passage: Passage) -> str:
    """Metadata as text, without the source if the id names it."""
    pairs = [f"{key}={as_text(one)}" for key, one in passage.metadata.items() if key != "source" or str(one) not in passage.id]
    return f"({', '.join(pairs)})" if pairs else ""
