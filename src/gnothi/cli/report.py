"""``gnothi report``: what runs came to, on the terminal, as one HTML file, as CSV or as JSON."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write one self-contained page.")
@click.option(
    "--csv",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write all numbers as CSV files.",
)
@click.option("--never", metavar="NAME", help="Replay gates between this method and --always. [default: panel, cot or direct]")
@click.option("--always", metavar="NAME", help="What stands for always retrieving. [default: rag]")
@click.option(
    "--price",
    "given",
    multiple=True,
    metavar="KEY=VALUE,...",
    help="Prices: prompt and generated (per million tokens), call and retrieval (each), currency (a name).",
)
@click.option(
    "--prices",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Prices as a TOML file with the same keys; --price is stronger.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print all numbers as one JSON document, a list with one object per data set."
)
def report(
    runs: tuple[Path, ...],
    html: Path | None,
    folder: Path | None,
    never: str | None,
    always: str | None,
    given: tuple[str, ...],
    file: Path | None,
    as_json: bool,
) -> None:
    """Show one or several RUNs of `gnothi eval`, finished or not.

    Runs over the same questions are compared with each other, others stand one below the other.

    \b
    gnothi report runs/lab --html lab.html
    gnothi report runs/gram runs/perplexity --html signals.html
    gnothi report runs/lab --csv numbers --price prompt=0.15,generated=0.60,currency=EUR
    """
    from gnothi.report.costs import read_prices
    from gnothi.report.sections import load_runs, name_all
    from gnothi.report.summary import summarise
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal import summary_table

    prices = read_prices(file, given)
    sections = load_runs(runs)
    written: list[str] = []
    documents = []
    if as_json or html or folder or prices or never or always:
        from gnothi.report.document import document

        documents = [document(section, prices, never, always) for section in sections]
        if html is not None:
            from gnothi.report.page.runs import write_report

            write_report(sections, html, documents)
            written.append(f"page: {html}")
        if folder is not None:
            from gnothi.report.tables import write_tables

            files = write_tables(documents, sections, folder)
            written.append(f"tables: {len(files)} files in {folder}")
    if as_json:
        terminal.print_json(documents)
        return
    for place, (section, name) in enumerate(zip(sections, name_all(sections), strict=True)):
        found = documents[place] if documents else summarise(section.rows, section.dataset, section.trusting)
        summary_table.show(terminal.console(), found, name.title)
        if prices is not None:
            summary_table.show_costs(terminal.console(), documents[place])
        if section.missing:
            click.echo(f"unfinished: {len(section.rows)} of {section.expected} answers; the same `gnothi eval` completes it.")
    for line in written:
        click.echo(line)
