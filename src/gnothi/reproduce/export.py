"""An ablation's table as CSV, for spreadsheets, and as Markdown, for a page like a README."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gnothi.metrics import METRICS
from gnothi.report.numbers import chance, counted, number, share, signed
from gnothi.report.tables import bounds, flat, write_csv
from gnothi.reproduce.ablation import MEASURES, Line, Table

NAMES = {"em": "EM", "f1": "F1", "accuracy": "acc."}


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


def markdown(found: Table) -> list[str]:
    """The table in lines: heading, a row a variant, what was left out and the study's note."""
    gates = ["AUROC"] if found.gated else []
    header = ["", *(f"{NAMES[name]} (95 %)" for name in METRICS), "searched", "searches", "calls", "tokens", *gates]
    header += [f"{NAMES[found.metric]} less full (95 %)", "p", "p, Holm"]
    header += [f"paper: {dataset} {NAMES[name]}" for dataset, name in found.papers]
    lines = [_row(header), _row(["---"] * len(header))]
    group = ""
    for variant in found.variants:
        if variant.group != group:
            group = variant.group
            lines += [_row([f"*{_cell(group)}*", *[""] * (len(header) - 1)])] if group else []
        name = _cell(variant.label)
        means = variant.means
        cells = [f"**{name}**" if variant.label == found.full else name]
        cells += [_with_interval(variant, metric) for metric in METRICS]
        cells += [share(means["retrieval_rate"])]
        cells += [number(means[name]) for name in ("retrievals", "model_calls", "tokens")]
        cells += [share(means["gate_auroc"])] if gates else []
        lines.append(_row([*cells, *_difference(variant, found.metric), *paper_figures(variant, found.papers)]))
    of = f"{found.title} ({found.source})" if found.source else found.title
    said = [f"Left out: {_cell(one.label)} ({_cell(one.reason)})." for one in found.left_out]
    after = [line for one in (*said, found.note) if one for line in ("", one)]
    return [f"{of}: {counted(found.questions, 'question')} of `{found.dataset}`.", "", *lines, *after]


def paper_figures(variant: Line, columns: Sequence[tuple[str, str]]) -> list[str]:
    """A paper's figures as it prints them: in percent, or as shares."""
    known = {(one.dataset, one.metric): f"{one.value:.1f}" if one.value > 1 else share(one.value) for one in variant.paper}
    return [known.get(column, "") for column in columns]


def _with_interval(variant: Line, name: str) -> str:
    interval = variant.intervals[name]
    spread = f" ({share(interval[0])}–{share(interval[1])})" if interval else ""
    return share(variant.means[name]) + spread


def _difference(variant: Line, metric: str) -> list[str]:
    test = (variant.difference or {}).get(metric)
    if test is None:
        return ["", "", ""]
    spread = f" ({signed(test.interval[0])} to {signed(test.interval[1])})" if test.interval else ""
    return [signed(test.difference) + spread, chance(test.p), chance(test.p_holm)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
