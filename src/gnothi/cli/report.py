"""``gnothi report``: what runs came to, on the terminal or as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write one self-contained page.")
@click.option("--json", "as_json", is_flag=True, help="Print the summaries as one JSON document.")
def report(runs: tuple[Path, ...], html: Path | None, as_json: bool) -> None:
    """Show one or several RUNs of `gnothi eval`, finished or not.

    Runs over the same questions are compared with each other.

    \b
    gnothi report runs/lab --html lab.html
    gnothi report runs/delta-5 runs/delta-6
    """
    from gnothi.cli import summary_table, terminal
    from gnothi.evaluation.report import load_runs, write_report

    sections = load_runs(runs)
    if html is not None:
        write_report(sections, html)
    if as_json:
        terminal.print_json([section.summary for section in sections])
        return
    for section in sections:
        summary_table.show(terminal.console(), section.summary)
        if section.expected > len(section.rows):
            click.echo(f"unfinished: {len(section.rows)} of {section.expected} answers; the same `gnothi eval` completes it.")
    if html is not None:
        click.echo(f"page: {html}")
