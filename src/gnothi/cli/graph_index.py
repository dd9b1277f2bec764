"""The graph side of ``gnothi index``: build from triples, link and look up, describe."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.cli.building import end, progress
from gnothi.cli.saying import say
from gnothi.errors import InvalidSetting, counted
from gnothi.report.terminal.console import clean, print_json

if TYPE_CHECKING:
    from gnothi.graph.building import GraphProgress, GraphReport
    from gnothi.graph.templates import Templates
    from gnothi.protocols import KnowledgeGraph
    from gnothi.types import Fact, Mention, Neighbourhood

_HOPS, _CAP = 2, 100


def check_flags(graph: bool, out_is_graph: bool, out: str, given: Mapping[str, bool]) -> None:
    """Raises InvalidSetting for flags that go with the other kind of index. ``given`` says which were given, by flag."""
    of_graphs = ("--templates", "--columns")
    of_passages = ("--words", "--text-key", "--title-key", "--id-key", "--memory-mb", "--fields")
    for flag in of_passages if graph else of_graphs:
        if given[flag]:
            other = "an index of passages: leave out --graph" if graph else "a knowledge graph: add --graph"
            raise InvalidSetting(f"{flag} was given, which is for {other}, or leave out {flag}.")
    if out_is_graph and not graph:
        raise InvalidSetting(
            f"{out} is a knowledge graph, and sources would be read as passages: add --graph, or choose another --out."
        )


def build(
    sources: tuple[str, ...],
    out: str,
    templates: str | None,
    columns: str | None,
    language: str | None,
    skip_invalid: bool,
    keep_missing: bool,
    as_json: bool,
) -> int:
    """Build with progress on standard error and print what was done; the exit code."""
    from gnothi.graph.building import build_graph

    kept = "What was read up to some seconds ago is kept: run the same command again to go on."
    with progress(_bar, _line, kept) as on_progress:
        report = build_graph(
            sources,
            out,
            templates=_templates(templates),
            columns=columns.split(",") if columns else None,
            language=language,
            skip_invalid=skip_invalid,
            keep_missing=keep_missing,
            on_progress=on_progress,
        )
    between = f"{counted(report.facts, 'fact')} between {counted(report.nodes, 'node')}"
    figures = {"kind": "graph", **{key: getattr(report, key) for key in ("nodes", "facts", "read")}}
    figures |= {"left_out": report.empty, "without_sentence": report.without_sentence}
    return end(out, report, f"{between} ({counted(report.read, 'triple')} read)", figures, _warnings(report), as_json)


def search(graph: KnowledgeGraph, query: str, k: int, as_json: bool) -> None:
    """Link the query and print the facts around the nodes it names, the likeliest first."""
    mentions, around, ranked = asyncio.run(_look_up(graph, query, k))
    if as_json:
        linked = [{"node": m.node, "start": m.start, "end": m.end, "text": query[m.start : m.end]} for m in mentions]
        results = [
            {"head": fact.head, "relation": fact.relation, "tail": fact.tail, "text": fact.text, "score": score}
            for fact, score in ranked
        ]
        print_json({"query": query, "linked": linked, "facts": len(around.facts), "capped": around.capped, "results": results})
        return
    if not mentions:
        say("Nothing found: the query names no node of this graph.")
        return
    say("linked: " + clean(", ".join(dict.fromkeys(mention.node for mention in mentions))))
    hubs = f"; of {', '.join(around.capped)} only {_CAP} each" if around.capped else ""
    say(f"within {_HOPS} steps: {counted(len(around.facts), 'fact')}{hubs}")
    for rank, (fact, score) in enumerate(ranked, 1):
        source = clean(f"{fact.head} | {fact.relation} | {fact.tail}")
        click.echo(f"{rank:>2}  {score:7.3f}  {clean(fact.text)}  ({source})")


async def _look_up(
    graph: KnowledgeGraph, query: str, k: int
) -> tuple[tuple[Mention, ...], Neighbourhood, list[tuple[Fact, float]]]:
    from gnothi.graph.retriever import overlap

    mentions = await graph.link(query)
    around = await graph.neighbourhood([mention.node for mention in mentions], _HOPS, _CAP)
    scores = overlap(query, [fact.text for fact in around.facts])
    ranked = sorted(zip(around.facts, scores, strict=True), key=lambda pair: -pair[1])  # stable: of equals the nearer first
    await graph.aclose()
    return mentions, around, ranked[:k]


def info(path: str, as_json: bool) -> None:
    """Say what the graph holds."""
    from gnothi.graph.graph import open_folder, read_manifest

    manifest = read_manifest(Path(path))
    open_folder(path)  # says what is wrong with its files
    size = sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())
    facts: dict[str, Any] = {
        "path": path,
        "kind": "graph",
        "nodes": manifest.nodes,
        "facts": manifest.facts,
        "relations": dict(manifest.relations),
        "complete": manifest.complete,
        "language": manifest.language,
        "lemmas": manifest.lemmatiser,
        "bytes": size,
        "version": manifest.version,
        "created_by": manifest.created_by,
    }
    if as_json:
        print_json(facts)
        return
    click.echo(
        f"{path}: a knowledge graph, {counted(manifest.facts, 'fact')} between {counted(manifest.nodes, 'node')}, "
        f"{size / 1e6:,.1f} MB on disk"
    )
    click.echo(clean(f"format: version {manifest.version}, by Gnothi {manifest.created_by}"))
    click.echo(clean(f"linking: names in {manifest.language!r}, lemmas by {manifest.lemmatiser}"))
    click.echo(f"relations: {len(manifest.relations)}")
    for name, sentence in manifest.relations:
        click.echo("  " + clean(f"{name}: {sentence}"))
    if not manifest.complete:
        click.echo("A build is under way or was interrupted: run its command again to complete it.")


def _templates(given: str | None) -> Templates | None:
    from gnothi.graph import templates

    if given is None:
        return None
    return templates.packaged(given) if given in templates.PACKAGED else templates.read(Path(given))


def _bar(reached: GraphProgress, seconds: float) -> tuple[float, float, str]:
    rate = reached.triples / max(seconds, 1e-3)
    label = f"{reached.triples:,} triples, {rate:,.0f}/s" if reached.stage == "reading" else "arranging"
    return reached.done, reached.total, label


def _line(reached: GraphProgress, seconds: float) -> str:
    return f"{reached.stage}: {reached.done / max(reached.total, 1):.0%}, {_bar(reached, seconds)[2]}"


def _warnings(report: GraphReport) -> Iterator[str]:
    if report.empty:
        yield f"{counted(report.empty, 'line')} left out: in another language, marked as false, or without names"
    if report.without_sentence:
        shown = ", ".join(map(clean, report.without_sentence[:10])) + (" ..." if len(report.without_sentence) > 10 else "")
        relations = counted(len(report.without_sentence), "relation")
        yield f"warning: {relations} without a sentence, said by name: {shown}. Give sentences with --templates."
