"""The table of an ablation on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gnothi.report.numbers import between, chance, counted, number, share, signed, thousands
from gnothi.report.terminal.layout import Row, paragraph, show_table
from gnothi.reproduce.ablation import Line, Table
from gnothi.reproduce.export import NAMES, paper_figures

if TYPE_CHECKING:
    from rich.console import Console


def show(console: Console, found: Table) -> None:
    """A row a variant, intervals below, then what was left out, the study's note, and warnings."""
    name = NAMES[found.metric]
    paragraph(console, f"{found.title} ({found.source})" if found.source else found.title, style="bold")
    paragraph(
        console,
        f"{found.dataset}, {counted(found.questions, 'question')}: means per question, 95 % intervals below; retr.: share of "
        f"questions with a search; tok.: tokens; diff.: {name} less that of {found.full}; p: paired test, corrected for all "
        "rows (Holm)",
    )
    if found.papers:
        what = ", ".join(f"{dataset} {NAMES[metric]}" for dataset, metric in found.papers)
        paragraph(console, f"in brackets: the paper's {what}, with another model, for orientation only")
    headings = ("", *NAMES.values(), "retr.", "srch", "calls", "tok.", "AUROC", "diff.", "p")
    rows: list[Row] = []
    for group in dict.fromkeys(variant.group for variant in found.variants):
        rows += [([group], "italic")] if group else []
        rows += [row for variant in found.variants if variant.group == group for row in _rows(found, variant)]
    others = [heading for metric, heading in NAMES.items() if metric != found.metric]
    show_table(console, headings, rows, spare=(*others, "calls", "srch", "tok.", "p"))
    for one in found.left_out:
        paragraph(console, f"left out: {one.label} {one.reason}")
    if found.note:
        paragraph(console, f"note: {found.note}")
    for warning in found.warnings:
        paragraph(console, f"warning: {warning}", style="yellow")


def _rows(found: Table, variant: Line) -> Iterator[Row]:
    means, test = variant.means, (variant.difference or {}).get(found.metric)
    shares = [share(value) for value in (means["em"], means["f1"], means["accuracy"], means["retrieval_rate"])]
    costs = [number(means["retrievals"]), number(means["model_calls"]), thousands(means["tokens"])]
    difference = [signed(test.difference), chance(test.p_holm)] if test else ["", ""]
    style = "bold" if variant.label == found.full else ""
    yield [variant.label, *shares, *costs, share(means["gate_auroc"]), *difference], style
    papers = " ".join(figure or "/" for figure in paper_figures(variant, found.papers)) if variant.paper else ""
    spreads = [between(variant.intervals[name]) if name == found.metric else "" for name in NAMES]
    bounds = " ".join(signed(bound, digits=2) for bound in test.interval) if test and test.interval else ""
    yield [f"({papers})" if papers else "", *spreads, "", "", "", "", "", bounds, ""], "dim"
