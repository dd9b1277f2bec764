"""``gnothi report --forecast``: what many more questions would take, from a run over some of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnothi.cli.saying import say
from gnothi.report.terminal import console as terminal

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


def show(run: Path, questions: int, devices: int, prices: Prices | None, as_json: bool) -> None:
    """Tokens, hours and money that so many questions would take, from a run over some of them."""
    from gnothi.report.forecast import caveats, forecast
    from gnothi.runs.folder import read_config, read_rows
    from gnothi.runs.pace import paces

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
        click.secho(f"{one.method} ({one.seen} questions seen)", bold=True)
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
    low, high = one.between
    return say(one.value) if low == high else f"{say(one.value)} ({say(low)} to {say(high)})"


def _count(value: float) -> str:
    size, unit = next(((size, unit) for size, unit in UNITS if value >= size), (1.0, ""))
    return f"{value / size:.3g}{unit}" if unit else f"{value:.0f}"


def _time(hours: float) -> str:
    from gnothi.report.numbers import lasting

    return lasting(hours * 3600) if hours < 48 else f"{hours / 24:,.1f} days"
