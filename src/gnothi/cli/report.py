"""``gnothi report``: what runs came to, on the terminal, as one HTML file, as CSV or as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnothi.cli import options
from gnothi.cli.saying import say
from gnothi.errors import InvalidSetting, counted
from gnothi.report.terminal import console as terminal
from gnothi.roles import ALWAYS, AT_ONCE, EVERY_SIGNAL, REASONING

if TYPE_CHECKING:
    from gnothi.report.costs import Prices
    from gnothi.report.forecast import Estimate, Forecast


MOST = 10**15
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Count(click.ParamType):  # type: ignore[type-arg]  # generic only from click 8.4 on
    """A whole number, which may be written as 1e6."""

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = float(str(value).replace(",", "").replace("_", ""))
        except ValueError:
            number = 0.0
        if not 1 <= number <= MOST or number != int(number):
            self.fail(f"{value!r:.40} is not a number of questions: expected one like 250000 or 1e6.", param, ctx)
        return int(number)


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
@click.option(
    "--never",
    metavar="NAME",
    help=f"The method that stands for never searching. [default: {EVERY_SIGNAL}, {REASONING} or {AT_ONCE}]",
)
@click.option(
    "--always",
    metavar="NAME",
    help=f"The method that stands for always searching. [default: {ALWAYS}]",
)
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

    A forecast shows 95% intervals in brackets. For hours, both ends are moved out by a quarter.
    """
    from gnothi.report.costs import read_prices
    from gnothi.report.sections import load_runs, name_all
    from gnothi.report.summary import summarise
    from gnothi.report.terminal import summary_table

    prices = read_prices(given)
    if forecast is not None:
        beside = {"--html": html, "--csv": folder, "--never": never, "--always": always}
        if unused := [flag for flag, value in beside.items() if value is not None]:
            raise InvalidSetting(f"{unused[0]}: got it with --forecast, which has no use for it. Leave one of them out.")
        if len(runs) > 1:
            raise InvalidSetting(f"--forecast: got {len(runs)} runs, expected one to estimate from.")
        _show_forecast(runs[0], forecast, devices or 1, prices, as_json)
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
        of = (section.rows, section.dataset, section.trusting, section.foreign())
        found = documents[place] if documents else summarise(*of)
        summary_table.show(terminal.console(), found, name.title)
        if prices is not None:
            summary_table.show_costs(terminal.console(), documents[place])
        if section.missing:
            click.echo(f"unfinished: {len(section.rows)} of {section.expected} answers; the same `gnothi eval` completes it.")
    for line in written:
        click.echo(line)


def _show_forecast(run: Path, questions: int, devices: int, prices: Prices | None, as_json: bool) -> None:
    """Tokens, hours and money that so many questions would take, from a run over some of them."""
    from gnothi.report.forecast import caveats, forecast
    from gnothi.runs.folder import paces, read_config, read_rows

    read_config(run)  # told first where this is no run
    rows, timed = read_rows(run), paces(run)
    found = forecast(rows, timed, questions, devices, prices)
    doubts = caveats(rows, timed)
    if as_json:
        methods = [asdict(one) for one in found]
        terminal.print_json({"questions": questions, "devices": devices, "methods": methods, "doubts": doubts})
        return
    shared = f" on {devices} devices" if devices > 1 else ""
    click.echo(f"{questions:,} questions{shared}, from {run}")
    for one in found:
        click.secho(f"{one.method} ({counted(one.seen, 'question')} seen)", bold=True)
        click.echo("\n".join(terminal.definitions(_lines(one))))
    for doubt in doubts:
        say(f"note: {doubt}")


def _lines(one: Forecast) -> list[tuple[str, str]]:
    lines = [
        ("model calls", _shown(one.calls)),
        ("searches", _shown(one.searches)),
        ("tokens read", _shown(one.read)),
        ("tokens written", _shown(one.written)),
    ]
    if one.hours is not None:
        lines.append(("time", _shown(one.hours, _time)))
    if one.money is not None:
        lines.append(("money", _shown(one.money, "{:,.2f}".format)))
    return lines


def _shown(one: Estimate, form: Callable[[float], str] | None = None) -> str:
    say = form or _count
    low, high = one.between or (one.value, one.value)
    return say(one.value) if low == high else f"{say(one.value)} ({say(low)} to {say(high)})"


def _count(value: float) -> str:
    size, unit = next(((size, unit) for size, unit in UNITS if value >= size), (1.0, ""))
    return f"{value / size:.3g}{unit}" if unit else f"{value:.0f}"


def _time(hours: float) -> str:
    from gnothi.report.numbers import lasting

    return lasting(hours * 3600) if hours < 48 else f"{hours / 24:,.1f} days"
