"""What gates come to, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gnothi.report.figures.figures import percent
from gnothi.report.terminal.summary_table import between, paragraph, share

if TYPE_CHECKING:
    from rich.console import Console


def show(console: Console, found: Mapping[str, Any], title: str) -> None:
    """Under the ``title``: never, always and oracle; a row per signal; the combinations; what was replayed."""
    from rich.table import Table

    names, intervals = found["names"], found["intervals"]
    ends = ", ".join(
        f"{role} {share(found[role])} ({between(intervals[role])}{f'; {names[role]}' if role in names else ''})"
        for role in ("never", "always", "oracle")
    )
    paragraph(console, f"{title}: {found['n']} questions, {found['metric']}: {ends}")
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
        table.add_row(
            name, share(signal["auroc"]), _threshold(signal), *_choice(signal["chosen"]), share(signal["hindsight"]["accuracy"])
        )
        table.add_row("", between(signal["interval"]), "", *_intervals(signal["chosen"]), "", style="dim")
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
                f"({between(replayed['interval'])}), retrieves for {share(replayed['retrieval_rate'])}{trusted}",
            )
    for line in _not_measured(found):
        paragraph(console, line)
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


def _not_measured(found: Mapping[str, Any]) -> list[str]:
    """A line for the signals that lack the same number of scores."""
    of = found["n"]
    lacking: dict[int, list[str]] = {}
    for name, signal in found["signals"].items():
        lacking.setdefault(signal["not_measured"], []).append(name)
    return [
        f"{', '.join(names)}: no score for {number} of {of} questions (nothing could be measured, or there was no answer "
        "to measure). They count as the least certain: every gate retrieves for them."
        for number, names in sorted(lacking.items())
        if number
    ]


def _threshold(signal: Mapping[str, Any]) -> str:
    chosen = signal["chosen"]
    if chosen is None:
        return "-"
    below = "<" if signal["retrieve_when"] == "below" else ""
    return "always" if chosen["threshold"] is None else f"{below}{chosen['threshold']:.4g}"


def _choice(chosen: Mapping[str, Any] | None) -> list[str]:
    if chosen is None:
        return ["-", "-", "too few"]
    gap = "-" if chosen["gap_closed"] is None else percent(chosen["gap_closed"])
    return [share(chosen["accuracy"]), share(chosen["retrieval_rate"]), gap]


def _intervals(chosen: Mapping[str, Any] | None) -> list[str]:
    if chosen is None:
        return ["", "", ""]
    closed = chosen["gap_closed_interval"]
    return [between(chosen["interval"]), "", "" if closed is None else f"{percent(closed[0])} to {percent(closed[1])}"]
