"""What ablations and recipes came to, as tables: on a terminal, as Markdown for a page like a README, as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi.errors import counted
from gnothi.metrics import METRICS
from gnothi.report import table_form
from gnothi.report.numbers import share
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


def save_csv(table: Table, path: Path) -> None:
    """One line a variant: all that the table says of it, intervals as ``_low`` and ``_high``."""
    write_csv([_flat(variant) for variant in table.variants], path)


def _flat(variant: Line) -> dict[str, Any]:
    line: dict[str, Any] = {key: getattr(variant, key) for key in ("label", "group", "method", "n", "failures")}
    line["settings"] = " ".join(f"{key}={value}" for key, value in variant.settings.items())
    for name in MEASURES:
        line |= {name: variant.means[name], **bounds(f"{name}_", variant.intervals[name])}
    for metric, test in (variant.difference or {}).items():
        line |= {f"difference_{metric}": test.difference, **bounds(f"difference_{metric}_", test.interval)}
        line |= {f"{key}_{metric}": getattr(test, key) for key in ("p", "p_holm", "test")}
    return line | flat(variant.groups) | {f"paper_{one.dataset}_{one.metric}": one.value for one in variant.paper}


def ablation(table: Table) -> table_form.Table:
    """A row a variant, under headings of their groups. A paper's figures have columns of their own where there is room."""
    name = NAMES[table.metric]
    columns = [Column("")]
    columns += [Column(f"{NAMES[one]} (95%)", SHARE, NAMES[one], below=one == table.metric) for one in METRICS]
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
    columns += [Column(f"paper: {dataset} {NAMES[metric]}", terminal=False) for dataset, metric in table.papers]
    rows = []
    for group in dict.fromkeys(variant.group for variant in table.variants):
        rows += [Row((group,), "italic")] if group else []
        rows += [_row(table, variant) for variant in table.variants if variant.group == group]
    others = [NAMES[metric] for metric in METRICS if metric != table.metric]
    return table_form.Table(columns, rows, spare=(*others, "calls", "srch", "tok.", "p"))


def _row(table: Table, variant: Line) -> Row:
    means, test = variant.means, (variant.difference or {}).get(table.metric)
    known = {(one.dataset, one.metric): f"{one.value:.1f}" if one.value > 1 else share(one.value) for one in variant.paper}
    papers = [known.get(column, "") for column in table.papers]
    return Row(
        (
            Value(variant.label, note=f"({' '.join(figure or '/' for figure in papers)})" if variant.paper else ""),
            *(Value(means[one], variant.intervals[one]) for one in METRICS),
            *(means[one] for one in ("retrieval_rate", "retrievals", "model_calls", "tokens", "gate_auroc")),
            *((Value(test.difference, test.interval), test.p, test.p_holm) if test else ("", "", "")),
            *papers,
        ),
        "bold" if variant.label == table.full else "",
    )


def markdown(table: Table) -> list[str]:
    """The table in lines: heading, a row a variant, what was left out and the study's note."""
    left_out = [f"Left out: {' '.join(one.label.split())} ({' '.join(one.reason.split())})." for one in table.left_out]
    after = [line for one in (*left_out, table.note) if one for line in ("", one)]
    head = f"{_titled(table)}: {counted(table.questions, 'question')} of `{table.dataset}`."
    return [head, "", *ablation(table).markdown(), *after]


def _titled(table: Table) -> str:
    return f"{table.title} ({table.source})" if table.source else table.title


def show(console: Console, table: Table) -> None:
    """A row a variant, intervals below, then what was left out, the study's note, and warnings."""
    paragraph(console, _titled(table), style="bold")
    paragraph(
        console,
        f"{table.dataset}, {counted(table.questions, 'question')}: means per question, 95% intervals below; retr.: share of "
        f"questions with a search; tok.: tokens; diff.: {NAMES[table.metric]} less that of {table.full}; p: paired test, "
        "corrected for all rows (Holm)",
    )
    if table.papers:
        figures = ", ".join(f"{dataset} {NAMES[metric]}" for dataset, metric in table.papers)
        paragraph(console, f"in brackets: the paper's {figures}, with another model, for orientation only")
    ablation(table).show(console)
    for one in table.left_out:
        paragraph(console, f"left out: {one.label} {one.reason}")
    if table.note:
        paragraph(console, f"note: {table.note}")
    for warning in table.warnings:
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
    if test := cell.difference:
        less = SIGNED.plain(test) if cell.metric in SHARES else f"{test.low:+.1f} to {test.high:+.1f}"
    paper = "" if cell.paper is None else cell.paper
    return Value(paper, note=less), Value(cell.ours, cell.interval), less
