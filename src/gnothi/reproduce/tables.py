"""What ablations and recipes came to, as tables: on a terminal, as Markdown for a page like a README, as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi.metrics import METRICS
from gnothi.report import table_form
from gnothi.report.numbers import counted, share
from gnothi.report.spreadsheet import bounds, flat, write_csv
from gnothi.report.table_form import CHANCE, NUMBER, SHARE, SIGNED, THOUSANDS, Column, Row, Value
from gnothi.report.terminal.console import paragraph
from gnothi.reproduce.ablation import MEASURES, Line, Table
from gnothi.reproduce.outcome import SHARES, Cell, OnData

if TYPE_CHECKING:
    from rich.console import Console

NAMES = {
    "em": "EM", "f1": "F1", "accuracy": "acc.", "retrievals": "searches", "model_calls": "requests", "paper_calls": "calls",
    "paper_tokens": "tokens without judges", "tokens": "tokens", "seconds": "seconds", "retrieval_rate": "searched",
    "gate_auroc": "AUROC",
}  # fmt: skip


# --- ablations -----------------------------------------------------------------------------------------------------------


def save_csv(found: Table, path: Path) -> None:
    """One line a variant: all that the table says of it, intervals as ``_low`` and ``_high``."""
    write_csv([_flat(variant) for variant in found.variants], path)


def _flat(variant: Line) -> dict[str, Any]:
    line: dict[str, Any] = {key: getattr(variant, key) for key in ("label", "group", "method", "n", "failures")}
    line["settings"] = " ".join(f"{key}={value}" for key, value in variant.settings.items())
    for name in MEASURES:
        line |= {name: variant.means[name], **bounds(f"{name}_", variant.intervals[name])}
    for metric, test in (variant.difference or {}).items():
        line |= {f"difference_{metric}": test.difference, **bounds(f"difference_{metric}_", test.interval)}
        line |= {f"{key}_{metric}": getattr(test, key) for key in ("p", "p_holm", "test")}
    return line | flat(variant.groups) | {f"paper_{one.dataset}_{one.metric}": one.value for one in variant.paper}


def ablation(found: Table) -> table_form.Table:
    """A row a variant, under headings of their groups. A paper's figures have columns of their own where there is room."""
    name = NAMES[found.metric]
    columns = [Column("")]
    columns += [Column(f"{NAMES[one]} (95%)", SHARE, NAMES[one], below=one == found.metric) for one in METRICS]
    columns += [
        Column("searched", SHARE, "retr."),
        Column("searches", NUMBER, "srch"),
        Column("calls", NUMBER),
        Column("tokens", THOUSANDS, "tok."),
        Column("AUROC", SHARE),
        Column(f"{name} less full (95%)", SIGNED, "diff."),
        Column("p", CHANCE, terminal=False),
        Column("p, Holm", CHANCE, "p"),
    ]
    columns += [Column(f"paper: {dataset} {NAMES[metric]}", terminal=False) for dataset, metric in found.papers]
    rows = []
    for group in dict.fromkeys(variant.group for variant in found.variants):
        rows += [Row((group,), "italic")] if group else []
        rows += [_row(found, variant) for variant in found.variants if variant.group == group]
    others = [NAMES[metric] for metric in METRICS if metric != found.metric]
    return table_form.Table(columns, rows, spare=(*others, "calls", "srch", "tok.", "p"))


def _row(found: Table, variant: Line) -> Row:
    means, test = variant.means, (variant.difference or {}).get(found.metric)
    known = {(one.dataset, one.metric): f"{one.value:.1f}" if one.value > 1 else share(one.value) for one in variant.paper}
    papers = [known.get(column, "") for column in found.papers]
    return Row(
        (
            Value(variant.label, note=f"({' '.join(figure or '/' for figure in papers)})" if variant.paper else ""),
            *(Value(means[one], variant.intervals[one]) for one in METRICS),
            *(means[one] for one in ("retrieval_rate", "retrievals", "model_calls", "tokens", "gate_auroc")),
            *((Value(test.difference, test.interval), test.p, test.p_holm) if test else ("", "", "")),
            *papers,
        ),
        "bold" if variant.label == found.full else "",
    )


def markdown(found: Table) -> list[str]:
    """The table in lines: heading, a row a variant, what was left out and the study's note."""
    said = [f"Left out: {' '.join(one.label.split())} ({' '.join(one.reason.split())})." for one in found.left_out]
    after = [line for one in (*said, found.note) if one for line in ("", one)]
    head = f"{_titled(found)}: {counted(found.questions, 'question')} of `{found.dataset}`."
    return [head, "", *ablation(found).markdown(), *after]


def _titled(found: Table) -> str:
    return f"{found.title} ({found.source})" if found.source else found.title


def show(console: Console, found: Table) -> None:
    """A row a variant, intervals below, then what was left out, the study's note, and warnings."""
    paragraph(console, _titled(found), style="bold")
    paragraph(
        console,
        f"{found.dataset}, {counted(found.questions, 'question')}: means per question, 95% intervals below; retr.: share of "
        f"questions with a search; tok.: tokens; diff.: {NAMES[found.metric]} less that of {found.full}; p: paired test, "
        "corrected for all rows (Holm)",
    )
    if found.papers:
        what = ", ".join(f"{dataset} {NAMES[metric]}" for dataset, metric in found.papers)
        paragraph(console, f"in brackets: the paper's {what}, with another model, for orientation only")
    ablation(found).show(console)
    for one in found.left_out:
        paragraph(console, f"left out: {one.label} {one.reason}")
    if found.note:
        paragraph(console, f"note: {found.note}")
    for warning in found.warnings:
        paragraph(console, f"warning: {warning}", style="yellow")


# --- recipes -------------------------------------------------------------------------------------------------------------


def outcome(one: OnData) -> table_form.Table:
    """Of every row and metric the paper's figure, and ours; what the metric differs by from the full method. Rows stand under
    headings of their groups."""
    columns = [Column("")]
    for metric in one.metrics:
        form, name = SHARE if metric in SHARES else NUMBER, NAMES[metric]
        columns.append(Column(f"{name}: paper", form, f"({name})"))
        columns.append(Column(f"{name}: ours (95%)", form, name, below=metric in SHARES))
        columns.append(Column(f"{name}: ours less paper (95%)", terminal=False))
    columns += [
        Column(f"{NAMES[one.metric]} less {one.full} (95%)", SIGNED, terminal=False),
        Column("p", CHANCE, terminal=False),
    ]
    rows = []
    for group in dict.fromkeys(row.group for row in one.rows):
        rows += [Row((group,), "italic")] if group else []
        for row in (row for row in one.rows if row.group == group):
            cells = [value for cell in row.cells for value in _three(cell)]
            test = row.difference
            rows.append(Row((row.label, *cells, *((Value(test.difference, test.interval), test.p) if test else ("", "")))))
    return table_form.Table(columns, rows)


def _three(cell: Cell) -> tuple[Value, Value, str]:
    """The paper's figure, with the interval of the difference as its note; ours; that interval by itself."""
    less = ""
    if found := cell.difference:
        less = SIGNED.plain(found) if cell.metric in SHARES else f"{found.low:+.1f} to {found.high:+.1f}"
    paper = "" if cell.paper is None else cell.paper
    return Value(paper, note=less), Value(cell.ours, cell.interval), less
