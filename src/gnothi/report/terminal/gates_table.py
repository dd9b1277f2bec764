"""What gates come to, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gnothi.calibration.compare import Compared, Gates
from gnothi.report import tables
from gnothi.report.numbers import between, counted, share
from gnothi.report.terminal.console import paragraph

if TYPE_CHECKING:
    from rich.console import Console

_NOTES = """AUROC: does the signal tell where {truth} is wrong? threshold: best for accuracy{priced} on all questions (retrieve
above it, or below where marked <). acc., retr., gap closed: each threshold is judged on questions that it was not chosen on
(cross-validation); gap: from the better of never and always to the oracle. hindsight: the best accuracy of any threshold on
these very questions. Below: 95 % intervals."""


def show(console: Console, found: Compared, title: str) -> None:
    """Under the ``title``: never, always and oracle; a row per signal; what was replayed."""
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
        tables.reached(found.reached).show(console)
    if not gates.signals:
        paragraph(console, "no signal was recorded, so there is no gate to replay")
        return
    tables.signals(gates).show(console)
    for line in (*_replayed(gates), *_not_measured(gates)):
        paragraph(console, line)
    truth = " and ".join(dict.fromkeys(signal.truth for signal in gates.signals.values()))
    priced = f" less {gates.price:g} a retrieval" if gates.price else ""
    paragraph(console, " ".join(_NOTES.format(truth=truth, priced=priced).split()), style="dim")


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
