"""Studies on a terminal: what there is, and the table of one that was run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from gnothi.config import as_text
from gnothi.report.terminal import console as terminal
from gnothi.report.terminal.summary_table import between, number, paragraph, share, thousands

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

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
        click.echo(f"{study.name}: {study.title}")
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
                click.echo(f"  {group}" if group else "")
            mark = "*" if variant.label == study.full else " "
            for line in terminal.definitions([(f"{mark} {variant.label}", _described(variant))]):
                click.echo(line)
        click.echo("\n* the full method, against which the others are held")


def _titled(study: Study) -> str:
    source = f" [{study.source}]" if study.source else ""
    return f"{study.title}{source}" + (f"; needs gnothi[{study.extra}]" if study.extra else "")


def _described(variant: Variant) -> str:
    settings = " ".join(f"{key}={as_text(value)}" for key, value in variant.settings.items())
    resources = " ".join(f"--{key} {getattr(variant, key)}" for key in ("model", "index", "graph") if getattr(variant, key))
    needs = "; ".join(f"needs {key}: {how}" for key, how in variant.needs.items())
    return "; ".join(part for part in (f"{variant.method} {settings} {resources}".strip(), needs, variant.note) if part)


_LEAST, _MOST = 16, 44  # columns of the labels


def show(console: Console, found: Mapping[str, Any]) -> None:
    """A row a variant, intervals below, then what was left out, the study's note, and warnings."""
    from gnothi.studies.tables import NAMES, paper_columns

    variants, metric = found["variants"], found["metric"]
    papers = paper_columns(variants, metric)
    source = f" ({found['source']})" if found["source"] else ""
    paragraph(console, f"{found['title']}{source}", style="bold")
    paragraph(
        console,
        f"{found['dataset']}, {found['questions']} questions: means per question, 95 % intervals below; retr.: share of "
        f"questions with a search; tok.: tokens; diff.: {NAMES[metric]} less that of {found['full']}; p: paired test, "
        "corrected for all rows (Holm)",
    )
    if papers:
        what = ", ".join(f"{dataset} {NAMES[name]}" for dataset, name in papers)
        paragraph(console, f"in brackets: the paper's {what}, with another model, for orientation only")
    for number_of, group in enumerate(dict.fromkeys(variant["group"] for variant in variants)):
        if group:
            paragraph(console, group, style="italic")
        console.print(_table(console, found, [one for one in variants if one["group"] == group], papers, header=number_of == 0))
    for one in found["left_out"]:
        paragraph(console, f"left out: {one['label']} {one['reason']}")
    if found["note"]:
        paragraph(console, f"note: {found['note']}")
    for warning in found["warnings"]:
        paragraph(console, f"warning: {warning}", style="yellow")


def _table(
    console: Console,
    found: Mapping[str, Any],
    variants: Sequence[Mapping[str, Any]],
    papers: Sequence[tuple[str, str]],
    header: bool,
) -> Table:
    """Variants of one group; tables of all groups have the same columns."""
    from rich.table import Table

    from gnothi.studies.tables import NAMES, chance, paper_figures, signed

    metric = found["metric"]
    gates = any(variant["gate_auroc"] is not None for variant in found["variants"])
    widths = {"EM": 4, "F1": 4, "acc.": 4, "retr.": 5, "srch": 4, "calls": 5, "tok.": 5, "AUROC": 5, "diff.": 9, "p": 6}
    widths[NAMES[metric]] = 7
    if not gates:
        del widths["AUROC"]
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_header=header)
    room = console.width - sum(widths.values()) - len(widths)
    table.add_column("", overflow="fold", width=max(_LEAST, min(room, _MOST)))
    for heading, width in widths.items():
        table.add_column(heading, justify="right", no_wrap=True, width=width)
    for variant in variants:
        test = (variant["difference"] or {}).get(metric)
        cells = [variant["label"], *(_share(variant[name]) for name in (*NAMES, "retrieval_rate"))]
        tokens = "-" if variant["tokens"] is None else thousands(variant["tokens"])
        cells += [number(variant["retrievals"]), number(variant["model_calls"]), tokens]
        cells += [_share(variant["gate_auroc"])] if gates else []
        cells += [signed(test["difference"]), chance(test["p_holm"])] if test else ["", ""]
        table.add_row(*cells, style="bold" if variant["label"] == found["full"] else None)
        bounds = test["interval"] if test else None
        figures = " ".join(figure or "/" for figure in paper_figures(variant, papers)) if variant["paper"] else ""
        spreads = [f"({figures})" if figures else ""]
        spreads += [between(variant["intervals"][name]) if name == metric else "" for name in NAMES]
        spreads += ["", "", "", "", *([""] if gates else [])]
        spreads += [" ".join(signed(bound, digits=2) for bound in bounds) if bounds else ""]
        table.add_row(*spreads, style="dim")
    return table


def _share(value: float | None) -> str:
    """In four columns."""
    return share(value)[:4] if value is not None and value >= 0.9995 else share(value)
