"""``gnothi report``: what runs came to, on the terminal, as one HTML file, as CSV or as JSON."""

from __future__ import annotations

from pathlib import Path

import click

from gnothi.cli import options
from gnothi.cli.forecast import Count
from gnothi.cli.forecast import show as show_forecast
from gnothi.errors import InvalidSetting


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
@click.option("--never", metavar="NAME", help="The method that stands for never searching. [default: panel, cot or direct]")
@click.option("--always", metavar="NAME", help="The method that stands for always searching. [default: rag]")
@click.option(
    "--prices",
    "given",
    multiple=True,
    metavar="KEY=VALUE,...|FILE",
    help="Prices, or a TOML file of them: prompt and generated (per million tokens), call and retrieval (each), hour (of one "
    "device, for --forecast), currency (a name). Repeat to add or override prices.",
)
@click.option(
    "--forecast",
    type=Count(),
    metavar="N",
    help="Estimate from one RUN the tokens, hours and money of N questions (250000, 1e6).",
)
@click.option(
    "--devices",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --forecast: number of machines or GPUs like that of the run. [default: 1]",
)
@options.json
def report(
    runs: tuple[Path, ...],
    html: Path | None,
    folder: Path | None,
    never: str | None,
    always: str | None,
    given: tuple[str, ...],
    forecast: int | None,
    devices: int | None,
    as_json: bool,
) -> None:
    """Show one or several RUNs of `gnothi eval`, finished or not.

    Runs over the same questions are compared. Other runs are shown one after the other.

    \b
    gnothi report runs/lab --html lab.html
    gnothi report runs/gram runs/perplexity --html signals.html
    gnothi report runs/lab --csv numbers --prices prompt=0.15,generated=0.60,currency=EUR
    gnothi report runs/sample --forecast 1e6 --devices 8 --prices hour=2.50

    A forecast shows 95 % intervals in brackets. For hours, both ends are moved out by a quarter.
    """
    from gnothi.report.costs import read_prices
    from gnothi.report.sections import load_runs, name_all
    from gnothi.report.summary import summarise
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal import summary_table

    prices = read_prices(given)
    if forecast is not None:
        beside = {"--html": html, "--csv": folder, "--never": never, "--always": always}
        if unused := [flag for flag, value in beside.items() if value is not None]:
            raise InvalidSetting(f"{unused[0]}: got it with --forecast, which has no use for it. Leave one of them out.")
        if len(runs) > 1:
            raise InvalidSetting(f"--forecast: got {len(runs)} runs, expected one to estimate from.")
        show_forecast(runs[0], forecast, devices or 1, prices, as_json)
        return
    if devices is not None or (prices and prices.hour):
        raise InvalidSetting(
            f"{'--devices' if devices else '--prices hour'}: it goes with --forecast N. Add that, or leave it out."
        )
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
            from gnothi.report.spreadsheet import write_tables

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
