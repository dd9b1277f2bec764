"""What gates come to, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gnothi.calibration.compare import Compared, Gates, Signal, Worth
from gnothi.report.numbers import between, counted, percent, share
from gnothi.report.terminal.layout import Row, paragraph, show_table

if TYPE_CHECKING:
    from rich.console import Console

_NOTES = """AUROC: does the signal tell where {truth} is wrong? threshold: best for accuracy{priced} on all questions (retrieve
above it, or below where marked <). acc., retr., gap closed: each threshold is judged on questions that it was not chosen on
(cross-validation); gap: from the better of never and always to the oracle. hindsight: the best accuracy of any threshold on
these very questions. all: logistic regressions of all signals, trained to tell wrong answers, or where retrieval helps. Below:
95 % intervals."""


def show(console: Console, found: Compared, title: str) -> None:
    """Under the ``title``: never, always and oracle; a row per signal; the combinations; what was replayed."""
    gates = found.gates
    ends = ", ".join(
        f"{role} {share(value)} ({between(gates.intervals[role])}{f'; {gates.names[role]}' if role in gates.names else ''})"
        for role, value in (("never", gates.never), ("always", gates.always), ("oracle", gates.oracle))
    )
    paragraph(console, f"{title}: {counted(gates.n, 'question')}, {gates.metric}: {ends}")
    for name, other in gates.others.items():
        searches = "" if other.searches is None else f", {other.searches:.2f} searches a question"
        paragraph(console, f"{name}: {share(other.accuracy)}{searches}; oracle of never and this {share(other.oracle)}")
    if found.reached:
        rows: list[Row] = [
            ([name, str(one.n), *map(share, (one.found, one.read, one.answered))], "") for name, one in found.reached.items()
        ]
        show_table(console, ("method", "n", "answer found", "answer read", "answered"), rows)
    if not gates.signals:
        paragraph(console, "no signal was recorded, so there is no gate to replay")
        return
    headings = ("signal", "AUROC", "threshold", "acc.", "retr.", "gap closed", "hindsight")
    show_table(console, headings, list(_rows(gates)), spare=("hindsight", "gap closed"))
    for line in (*_replayed(gates), *_not_measured(gates)):
        paragraph(console, line)
    truth = " and ".join(dict.fromkeys(signal.truth for signal in gates.signals.values()))
    priced = f" less {gates.price:g} a retrieval" if gates.price else ""
    paragraph(console, " ".join(_NOTES.format(truth=truth, priced=priced).split()), style="dim")


def _rows(gates: Gates) -> Iterator[Row]:
    for name, signal in gates.signals.items():
        worth = signal.chosen.worth if signal.chosen else None
        yield [name, share(signal.auroc), _threshold(signal), *_worth(worth), share(signal.hindsight.accuracy)], ""
        yield ["", between(signal.interval), "", *_intervals(worth), ""], "dim"
    for name, combined in gates.combinations.items():
        yield [f"all: {name}", "", "", *_worth(combined.worth), ""], ""
        yield ["", "", "", *_intervals(combined.worth), ""], "dim"


def _replayed(gates: Gates) -> Iterator[str]:
    for name, signal in gates.signals.items():
        if one := signal.replayed:
            error = one.error_among_trusted
            trusted = "" if error is None else f"; of the {one.trusted} trusted {error:.1%} are wrong"
            yield (
                f"{name} at {one.threshold:g}: accuracy {share(one.accuracy)} ({between(one.interval)}), retrieves for "
                f"{share(one.retrieval_rate)}{trusted}"
            )


def _not_measured(gates: Gates) -> Iterator[str]:
    """A line for the signals that lack the same number of scores."""
    lacking: dict[int, list[str]] = {}
    for name, signal in gates.signals.items():
        lacking.setdefault(signal.not_measured, []).append(name)
    for number, names in sorted(lacking.items()):
        if number:
            yield (
                f"{', '.join(names)}: no score for {number} of {counted(gates.n, 'question')} (nothing could be measured, or "
                "there was no answer to measure). They count as the least certain, so every gate retrieves for them."
            )


def _threshold(signal: Signal) -> str:
    if signal.chosen is None:
        return "-"
    below, threshold = "<" if signal.retrieve_when == "below" else "", signal.chosen.threshold
    return "always" if threshold is None else f"{below}{threshold:.4g}"


def _worth(worth: Worth | None) -> list[str]:
    if worth is None:
        return ["-", "-", "too few"]
    return [share(worth.accuracy), share(worth.retrieval_rate), percent(worth.gap_closed)]


def _intervals(worth: Worth | None) -> list[str]:
    if worth is None:
        return ["", "", ""]
    closed = worth.gap_closed_interval
    return [between(worth.interval), "", "" if closed is None else f"{percent(closed[0])} to {percent(closed[1])}"]
