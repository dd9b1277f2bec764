"""``gnothi gates``: any threshold of any recorded signal, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.errors import InvalidSetting, UnknownName

if TYPE_CHECKING:
    from rich.console import Console


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True), metavar="RUN|FILE...")
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="SIGNAL=VALUE",
    help="Replay this threshold of a signal, in the units of the record (repeat).",
)
@click.option(
    "--price", default=0.0, show_default=True, help="What a retrieval costs, as a share of right answers, where one is chosen."
)
@click.option("--metric", metavar="NAME", help="When an answer is right. [default: contained for files, em for runs]")
@click.option("--never", metavar="NAME", help="What stands for never retrieving. [default: no_retrieval; panel, cot or direct]")
@click.option("--always", metavar="NAME", help="What stands for always retrieving. [default: one_retrieval; rag]")
@click.option(
    "--surer",
    multiple=True,
    metavar="SIGNAL",
    help="A signal of a file that rises with certainty, not with doubt (repeat). [known: energy_score]",
)
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Draw the frontiers (PNG, SVG, PDF)."
)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write one self-contained page.")
@click.option(
    "--csv",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write all numbers as CSV files.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, a list with one object per file.")
def gates(
    files: tuple[Path, ...],
    thresholds: tuple[str, ...],
    price: float,
    metric: str | None,
    never: str | None,
    always: str | None,
    surer: tuple[str, ...],
    plot: Path | None,
    html: Path | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Replay gates on what was recorded: runs of `gnothi eval`, or files of outcomes with and without retrieval.

    \b
    gnothi gates runs/lab
    gnothi gates recorded/trivia.test.jsonl --threshold perplexity=1.3
    gnothi gates recorded/*.test.jsonl --always multi_retrieval --json
    gnothi gates runs/lab recorded/*.test.jsonl --html gates.html

    For each signal: how well it tells wrong answers (AUROC), and what the best threshold is worth on questions that it was not
    chosen on (cross-validation), between never, always and the oracle, which picks the better of the two for each question.
    """
    from gnothi.cli import terminal
    from gnothi.evaluation.gates import document, read
    from gnothi.evaluation.rows import jsonable

    wanted = _thresholds(thresholds)
    replays = [read(path, metric, never, always, surer) for path in files]
    known = {signal.name for replay in replays for signal in replay.signals}
    for name in wanted:
        if name not in known:
            raise UnknownName("signal of what was recorded", name, known)
    documents = [document(replay, price, wanted) for replay in replays]
    if plot is not None:
        from gnothi.evaluation.frontier_figure import save

        save(documents, plot)
    written: list[str] = []
    if html is not None:
        from gnothi.evaluation.gates_page import write_page

        write_page(replays, documents, html)
        written.append(f"page: {html}")
    if folder is not None:
        from gnothi.evaluation.gates_page import write_csv

        written.append(f"tables: {len(write_csv(replays, documents, folder))} files in {folder}")
    if as_json:
        terminal.print_json(jsonable(documents))  # a threshold may be infinite
    else:
        screen = terminal.console()
        for number, found in enumerate(documents):
            if number:
                click.echo()
            show(screen, found)
        for line in written:
            click.echo(line)
    for found in documents:
        for warning in found["warnings"]:
            click.echo(f"warning: {found['dataset']}: {warning}", err=True)


def _thresholds(given: Sequence[str]) -> dict[str, float]:
    found = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            name = ""
        if not name.strip():
            raise InvalidSetting(f"--threshold: got {text!r}, expected SIGNAL=VALUE, as in --threshold perplexity=1.3.")
    return found


# --- on the terminal -------------------------------------------------------------------------------------------------


def show(console: Console, found: Mapping[str, Any]) -> None:
    """Never, always and oracle; a row per signal; the combinations; what was replayed."""
    from rich.table import Table

    from gnothi.cli.summary_table import paragraph, share

    names, intervals = found["names"], found["intervals"]
    ends = ", ".join(
        f"{role} {share(found[role])} ({_between(intervals[role])}{f'; {names[role]}' if role in names else ''})"
        for role in ("never", "always", "oracle")
    )
    paragraph(console, f"{found['dataset']}: {found['n']} questions, {found['metric']}: {ends}")
    for name, other in found["others"].items():
        searches = "" if other["searches"] is None else f", {other['searches']:.2f} searches a question"
        paragraph(console, f"{name}: {share(other['accuracy'])}{searches}; oracle of never and it {share(other['oracle'])}")
    if not found["signals"]:
        paragraph(console, "no signal was recorded: there is no gate to replay")
        return
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("signal", overflow="fold")
    for heading in ("AUROC", "threshold", "acc.", "retr.", "gap closed", "hindsight"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, signal in found["signals"].items():
        table.add_row(name, share(signal["auroc"]), _threshold(signal), *_choice(signal["chosen"]), _hindsight(signal))
        table.add_row("", _between(signal["interval"]), "", *_intervals(signal["chosen"]), "", style="dim")
    for name, combined in found["combinations"].items():
        table.add_row(f"all: {name}", "", "", *_choice(combined), "")
        table.add_row("", "", "", *_intervals(combined), "", style="dim")
    console.print(table)
    for name, signal in found["signals"].items():
        if replayed := signal.get("replayed"):
            error = replayed["error_among_trusted"]
            trusted = "" if error is None else f"; of the {replayed['trusted']} trusted {error:.1%} are wrong"
            paragraph(
                console,
                f"{name} at {replayed['threshold']:g}: accuracy {share(replayed['accuracy'])} "
                f"({_between(replayed['interval'])}), retrieves for {share(replayed['retrieval_rate'])}{trusted}",
            )
    truth = " and ".join(dict.fromkeys(signal["truth"] for signal in found["signals"].values()))
    priced = f" less {found['price']:g} a retrieval" if found["price"] else ""
    paragraph(
        console,
        f"AUROC: tells where {truth} is wrong. threshold: best for accuracy{priced} on all questions (retrieve "
        "above it, or below where marked <). acc., retr., gap closed: of thresholds chosen on other questions than they are "
        "judged on (cross-validation); gap: from the better of never and always to the oracle. hindsight: the best accuracy "
        "any threshold has here, chosen on these very questions. all: logistic regressions of all signals, trained to tell "
        "wrong answers, or where retrieval helps. Below: 95 % intervals.",
        style="dim",
    )


def _threshold(signal: Mapping[str, Any]) -> str:
    chosen = signal["chosen"]
    if chosen is None:
        return "-"
    below = "<" if signal["retrieve_when"] == "below" else ""
    return "always" if chosen["threshold"] is None else f"{below}{chosen['threshold']:.4g}"


def _choice(chosen: Mapping[str, Any] | None) -> list[str]:
    from gnothi.cli.summary_table import share

    if chosen is None:
        return ["-", "-", "too few"]
    gap = "-" if chosen["gap_closed"] is None else _percent(chosen["gap_closed"])
    return [share(chosen["accuracy"]), share(chosen["retrieval_rate"]), gap]


def _intervals(chosen: Mapping[str, Any] | None) -> list[str]:
    if chosen is None:
        return ["", "", ""]
    closed = chosen["gap_closed_interval"]
    return [_between(chosen["interval"]), "", "" if closed is None else f"{_percent(closed[0])} to {_percent(closed[1])}"]


def _percent(value: float) -> str:
    return f"{round(value, 2) + 0.0:.0%}"  # adding 0 turns -0 into 0


def _hindsight(signal: Mapping[str, Any]) -> str:
    from gnothi.cli.summary_table import share

    return share(signal["hindsight"]["accuracy"])


def _between(interval: Sequence[float] | None) -> str:
    from gnothi.cli.summary_table import between

    return between(interval)
