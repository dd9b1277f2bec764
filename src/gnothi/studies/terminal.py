"""Studies on a terminal: what there is, and the table of one that was run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from gnothi.config import as_text
from gnothi.report.numbers import between, chance, counted, number, share, signed, thousands
from gnothi.report.terminal import console as terminal
from gnothi.report.terminal.layout import Row, paragraph, show_table
from gnothi.studies.ablation import Line, Table
from gnothi.studies.export import NAMES, paper_figures

if TYPE_CHECKING:
    from rich.console import Console

    from gnothi.studies.study import Study, Variant


def listing(study: Study) -> dict[str, Any]:
    """For ``--json``."""
    found = asdict(study)
    return {
        **found,
        "variants": [{**one, "folder": own.folder} for one, own in zip(found["variants"], study.variants, strict=True)],
    }


def show_studies(studies: Sequence[Study], variants: bool) -> None:
    """Names and titles, or with ``variants`` everything about each."""
    if not variants:
        for line in terminal.definitions([(study.name, _titled(study)) for study in studies]):
            click.echo(line)
        click.echo("\nThe variants of one: gnothi ablate NAME --list. Run it: gnothi ablate NAME --out FOLDER")
        return
    for study in studies:
        click.echo(terminal.clean(f"{study.name}: {study.title}"))
        common = " ".join(f"{key}={as_text(value)}" for key, value in study.settings.items())
        install = f"pip install 'gnothi[{study.extra}]'" if study.extra else ""
        about = [
            ("source", study.source),
            ("install", install),
            ("data set", study.dataset),
            ("all set", common),
            ("note", study.note),
        ]
        for line in terminal.definitions([(key, value) for key, value in about if value]):
            click.echo(line)
        click.echo()
        group = ""
        for variant in study.variants:
            if variant.group != group:
                group = variant.group
                click.echo(f"  {terminal.clean(group)}" if group else "")
            mark = "*" if variant.label == study.full else " "
            for line in terminal.definitions([(f"{mark} {variant.label}", _described(variant))]):
                click.echo(line)
        click.echo("\n* the full method, against which the others are held")


def _titled(study: Study) -> str:
    source = f" [{study.source}]" if study.source else ""
    return f"{study.title}{source}" + (f"; needs gnothi[{study.extra}]" if study.extra else "")


def _described(variant: Variant) -> str:
    shift = f" threshold{variant.shift:+g}" if variant.shift else ""
    settings = " ".join(f"{key}={as_text(value)}" for key, value in variant.settings.items()) + shift
    resources = " ".join(f"--{key} {getattr(variant, key)}" for key in ("model", "index", "graph") if getattr(variant, key))
    needs = "; ".join(f"needs {key}: {how}" for key, how in variant.needs.items())
    return "; ".join(part for part in (f"{variant.method} {settings} {resources}".strip(), needs, variant.note) if part)


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
