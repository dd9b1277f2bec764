"""``gnothi export``: a run in the format of another tool."""

from __future__ import annotations

from pathlib import Path

import click

from gnothi.cli.saying import say


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--to",
    "format",
    type=click.Choice(["inspect", "jsonl", "parquet", "ragas"]),
    required=True,
    help="inspect: a log for `inspect view`. ragas: a data set of RAGAS. jsonl, parquet: everything, in RAGAS' columns.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE", help="The file to write."
)
@click.option("--method", "methods", multiple=True, metavar="NAME", help="Only this method's answers (repeat). [default: all]")
def export(run: Path, format: str, out: Path, methods: tuple[str, ...]) -> None:
    """Write a RUN of `gnothi eval`, finished or not, for other tools: answers, gold answers, evidence, decisions, costs.

    \b
    gnothi export runs/lab --to parquet --out lab.parquet
    gnothi export runs/lab --to inspect --method seakr --out logs/lab.eval
    gnothi export runs/lab --to ragas --method seakr --out lab-ragas.jsonl
    """
    from gnothi.errors import counted
    from gnothi.report.export import records
    from gnothi.report.export.inspect import write_inspect
    from gnothi.report.export.records import exported

    found = exported(run, methods)
    write = {
        "inspect": write_inspect,
        "jsonl": records.write_jsonl,
        "parquet": records.write_parquet,
        "ragas": records.write_ragas,
    }[format]
    written = write(found, out)
    click.echo(f"{out}: {counted(written, 'answer')}")
    if left := len(found.records) - written:
        say(f"warning: {counted(left, 'question')} failed and are left out: {format} has no place for them")
    if found.textless:
        say(f"warning: of {counted(found.textless, 'passage')} only the id was recorded: their text is empty")
