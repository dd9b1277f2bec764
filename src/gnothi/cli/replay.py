"""``gnothi calibrate --replay`` and ``--learn``: what any gate would have come to, on what was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnothi.cli.saying import say
from gnothi.errors import UnknownName

if TYPE_CHECKING:
    from gnothi.calibration.learned_records import Prices
    from gnothi.calibration.replay import Replay
    from gnothi.training.gate import Targets


@dataclass(frozen=True, slots=True)
class Reading:
    """How what was recorded is read: when an answer is right, what stands for never and always retrieving, and which signals
    rise with certainty."""

    metric: str | None
    never: str | None
    always: str | None
    surer: tuple[str, ...]

    def all(self, paths: Sequence[Path]) -> list[Replay]:
        from gnothi.calibration.compare import read

        return [read(path, self.metric, self.never, self.always, self.surer) for path in paths]


def replay(
    files: Sequence[Path],
    thresholds: Mapping[str, float],
    search_cost: float,
    reading: Reading,
    plot: Path | None,
    html: Path | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Every threshold of every signal. Raises UnknownName for one of ``thresholds`` that no file has, and as ``read``."""
    from gnothi.calibration.compare import document
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal import gates_table
    from gnothi.report.titles import name_all

    replays = reading.all(files)
    known = {name for replay in replays for signal in replay.signals for name in signal.names}
    for name in thresholds:
        if name not in known:
            raise UnknownName("signal of what was recorded", name, known)
    documents = [document(replay, search_cost, thresholds) for replay in replays]
    titles = [name.title for name in name_all(documents)]
    if plot is not None:
        from gnothi.report.figures.frontier import save

        save(documents, plot)
    written: list[str] = []
    if html is not None:
        from gnothi.report.page.replays import write_page

        write_page(replays, documents, html)
        written.append(f"page: {html}")
    if folder is not None:
        from gnothi.report.page.replays import write_csv

        written.append(f"tables: {len(write_csv(replays, documents, folder))} files in {folder}")
    if as_json:
        terminal.print_json(documents)
    else:
        screen = terminal.console()
        for number, (found, name) in enumerate(zip(documents, titles, strict=True)):
            if number:
                click.echo()
            gates_table.show_gates(screen, found, name)
        for line in written:
            click.echo(line)
    for found, name in zip(documents, titles, strict=True):
        for warning in found.warnings:
            say(f"warning: {name}: {warning}")


def learn(
    files: Sequence[Path],
    judged: Sequence[Path],
    prices: Prices,
    reading: Reading,
    plot: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """What a gate of all signals comes to on questions that it did not learn from."""
    from gnothi.calibration import learned
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal import gates_table

    found = learned.learn(reading.all(files), reading.all(judged), prices)
    if plot is not None:
        from gnothi.report.figures.learned import save

        save(found, plot)
    if html is not None:
        from gnothi.report.page.replays import write_learned

        write_learned(found, html)
    if as_json:
        terminal.print_json(found)
        return
    screen = terminal.console()
    for number, one in enumerate(found):
        if number:
            click.echo()
        gates_table.show_learned(screen, one)
    if html is not None:
        click.echo(f"page: {html}")


def learn_gate(
    runs: Sequence[Path], out: Path, prices: Prices, metric: str, never: str | None, targets: Targets, as_json: bool
) -> None:
    """Write the gate that runs of the method ``cascade`` teach. Raises as ``gnothi.training.gate.train``."""
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal import gates_table
    from gnothi.training.gate import train

    found = train(runs, out, prices, metric, never, targets)
    if as_json:
        terminal.print_json(found)
        return
    screen = terminal.console()
    for one in found.other:
        gates_table.show_learned(screen, one)
        click.echo()
    for what, kept in (("harm among answers taken from evidence", found.harm), ("errors among answers given", found.errors)):
        if kept is not None:
            held = f"{kept.wrong} of {kept.trusted} in the test"
            click.echo(f"guaranteed: {what} at most {kept.target_error:g}, with probability {1 - kept.epsilon:g} ({held})")
    click.echo(f"gate: {out}")
