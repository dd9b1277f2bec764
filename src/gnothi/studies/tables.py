"""A study's table as CSV, for spreadsheets, and as Markdown, for a page like a README."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gnothi.metrics import METRICS
from gnothi.runs.folder import replace_file
from gnothi.studies.ablation import MEASURES

NAMES = {"em": "EM", "f1": "F1", "accuracy": "acc."}


def save_csv(found: Mapping[str, Any], path: Path) -> None:
    """One line a variant: all that the document says of it, intervals as ``_low`` and ``_high``."""
    lines = [_flat(variant) for variant in found["variants"]]
    columns = list(dict.fromkeys(column for line in lines for column in line))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    _write(path, text.getvalue())


def save_markdown(found: Mapping[str, Any], path: Path) -> None:
    _write(path, "\n".join(markdown(found)) + "\n")


def _flat(variant: Mapping[str, Any]) -> dict[str, Any]:
    line = {key: variant[key] for key in ("label", "group", "method", "n", "failures")}
    line["settings"] = " ".join(f"{key}={value}" for key, value in variant["settings"].items())
    for name in MEASURES:
        line |= {name: variant[name], **_bounds(name, variant["intervals"][name])}
    for metric, test in (variant["difference"] or {}).items():
        line |= {f"difference_{metric}": test["difference"], **_bounds(f"difference_{metric}", test["interval"])}
        line |= {f"{key}_{metric}": test[key] for key in ("p", "p_holm", "test")}
    for action, group in variant["groups"].items():
        line |= {f"{action}_{key}": value for key, value in group.items()}
    return line | {f"paper_{one['dataset']}_{one['metric']}": one["value"] for one in variant["paper"]}


def _bounds(name: str, interval: Sequence[float] | None) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text)


# --- Markdown --------------------------------------------------------------------------------------------------------


def markdown(found: Mapping[str, Any]) -> list[str]:
    """The table in lines: heading, a row a variant, what was left out and the study's note."""
    variants, metric = found["variants"], found["metric"]
    gates = any(variant["gate_auroc"] is not None for variant in variants)
    papers = paper_columns(variants, metric)
    header = ["", *(f"{NAMES[name]} (95 %)" for name in METRICS), "searched", "searches", "calls", "tokens"]
    header += ["AUROC"] if gates else []
    header += [f"{NAMES[metric]} less full (95 %)", "p", "p, Holm"]
    header += [f"paper: {dataset} {NAMES[name]}" for dataset, name in papers]
    lines = [_row(header), _row(["---"] * len(header))]
    group = ""
    for variant in variants:
        if variant["group"] != group:
            group = variant["group"]
            lines += [_row([f"*{_cell(group)}*", *[""] * (len(header) - 1)])] if group else []
        name = _cell(variant["label"])
        cells = [f"**{name}**" if variant["label"] == found["full"] else name]
        cells += [_with_interval(variant, name) for name in METRICS]
        cells += [share(variant["retrieval_rate"]), *(amount(variant[key]) for key in ("retrievals", "model_calls", "tokens"))]
        cells += [share(variant["gate_auroc"])] if gates else []
        cells += [*_difference(variant, metric), *paper_figures(variant, papers)]
        lines.append(_row(cells))
    of = f"{found['title']} ({found['source']})" if found["source"] else found["title"]
    told = [f"{of}: {found['questions']} questions of `{found['dataset']}`."]
    told += [f"Left out: {_cell(one['label'])} ({_cell(one['reason'])})." for one in found["left_out"]]
    return [*told[:1], "", *lines, *[line for one in (*told[1:], found["note"]) if one for line in ("", one)]]


def paper_columns(variants: Iterable[Mapping[str, Any]], metric: str) -> list[tuple[str, str]]:
    """Data set and metric of the paper's figures that are worth a column: those in the table's metric, else all."""
    every = list(dict.fromkeys((one["dataset"], one["metric"]) for variant in variants for one in variant["paper"]))
    return [column for column in every if column[1] == metric] or every


def paper_figures(variant: Mapping[str, Any], columns: Iterable[tuple[str, str]]) -> list[str]:
    known = {(one["dataset"], one["metric"]): f"{one['value']:g}" for one in variant["paper"]}
    decimals = {
        key: f"{float(text):.1f}" if float(text) > 1 else f"{float(text):.3f}".removeprefix("0") for key, text in known.items()
    }
    return [decimals.get(column, "") for column in columns]


def _with_interval(variant: Mapping[str, Any], name: str) -> str:
    interval = variant["intervals"][name]
    spread = f" ({share(interval[0])}–{share(interval[1])})" if interval else ""
    return share(variant[name]) + spread


def _difference(variant: Mapping[str, Any], metric: str) -> list[str]:
    test = (variant["difference"] or {}).get(metric)
    if test is None:
        return ["", "", ""]
    spread = f" ({signed(test['interval'][0])} to {signed(test['interval'][1])})" if test["interval"] else ""
    return [signed(test["difference"]) + spread, chance(test["p"]), chance(test["p_holm"])]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}".removeprefix("0")


def signed(value: float, digits: int = 3) -> str:
    """With its sign, a true minus, and no zero before the point; nothing has no sign."""
    text = f"{value:+.{digits}f}".replace("0.", ".", 1)
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def amount(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def chance(p: float) -> str:
    return f"{p:.0e}".replace("e-0", "e-") if p < 0.001 else f"{p:.2g}"
