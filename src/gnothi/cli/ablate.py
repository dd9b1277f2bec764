"""``gnothi ablate``: a study's variants over the same questions, each a run of its own, and the table they come to."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnothi.cli import options
from gnothi.cli.running import SOME_FAILED
from gnothi.cli.saying import say
from gnothi.cli.spending import spending
from gnothi.errors import InvalidSetting

if TYPE_CHECKING:
    from gnothi.studies.ablation import Table


@click.command()
@click.argument("study", required=False, metavar="[STUDY]")
@click.argument("dataset", required=False, metavar="[QUESTIONS]")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where the runs go, one folder a variant; unfinished ones go on.",
)
@click.option("--list", "listed", is_flag=True, help="List the studies, or the variants of STUDY, and run nothing.")
@click.option("--only", multiple=True, metavar="LABEL", help="Only this variant, beside the full method (repeat).")
@options.sources(
    click.option(
        "--model", metavar="lab|PATH|HUB-ID|openai:NAME", help="The model, as for `gnothi eval`. [default: the study's; lab]"
    ),
    options.index,
    options.graph,
)
@options.file(
    "--calibration",
    "A threshold, written by `gnothi calibrate`: of the variants with its signal and settings (repeat, one a signal).",
    "calibrations",
    multiple=True,
)
@options.asking
@options.file("--csv", "Write the table as CSV, with all numbers.", "csv_file")
@options.file("--markdown", "Write the table as Markdown.", "markdown_file")
@options.file("--plot", "Draw the differences with their intervals (PNG, SVG, PDF).")
@options.json
def ablate(
    study: str | None,
    dataset: str | None,
    out: Path | None,
    listed: bool,
    only: tuple[str, ...],
    sources: options.Sources,
    calibrations: tuple[Path, ...],
    asking: options.Asking,
    csv_file: Path | None,
    markdown_file: Path | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """What each part of a method is worth: every variant of STUDY over the same QUESTIONS (default: the study's).

    \b
    gnothi ablate
    gnothi ablate seakr --limit 100 --out runs/seakr
    gnothi ablate my-study.toml questions.jsonl --model PATH --index my-index --out runs/mine --markdown table.md

    STUDY is the name of one that comes along, or a TOML file (docs/how-to/ablate.md). Each variant is a run of its own under
    --out, which `gnothi report` and `gnothi gates` read. The same command again goes on with what is unfinished. Exit code 1:
    some questions failed.
    """
    from gnothi.calibration.file import read as read_calibration
    from gnothi.cli.progress import watching
    from gnothi.report.terminal import console as terminal
    from gnothi.session.execute import budget_of, done, execute
    from gnothi.studies import study as studies
    from gnothi.studies import terminal as shown
    from gnothi.studies.running import claimed_runs, table
    from gnothi.studies.variants import plan_study

    if study is None or listed:
        chosen = [studies.read(study)] if study else [studies.read(name) for name in studies.names()]
        if as_json:
            terminal.print_json([shown.listing(one) for one in chosen])
        else:
            shown.show_studies(chosen, variants=study is not None)
        return 0
    if out is None:
        raise InvalidSetting("--out is missing: expected a folder for the runs, as in --out runs/ablation.")
    found = studies.read(study)
    planned = plan_study(found, sources.request([]), only, [read_calibration(file) for file in calibrations])
    for line in dict.fromkeys(told for plan in planned.plans.values() for told in plan.told):
        say(line)
    remote = any(plan.remote for plan in planned.plans.values())
    budget = budget_of(next(iter(planned.plans.values())))
    with (
        claimed_runs(planned, dataset or found.dataset, asking.format, asking.limit, asking.execution, out) as runs,
        spending(budget, remote, out, partial(done, runs), err=as_json),
    ):
        with watching(found.name) as watch:
            rows = asyncio.run(execute(runs, watch, budget=budget))
        document = table(planned, runs, rows)
        _save(document, csv_file, markdown_file, plot)
        if as_json:
            terminal.print_json(document)
            for warning in document.warnings:
                say(f"warning: {warning}")
        else:
            shown.show(terminal.console(), document)
            click.echo(f"runs: {out}/* (every question: gnothi report {out}/* --html FILE)")
            for file in (csv_file, markdown_file, plot):
                if file is not None:
                    click.echo(f"written: {file}")
    return SOME_FAILED if any(variant.failures for variant in document.variants) else 0


def _save(document: Table, csv_file: Path | None, markdown_file: Path | None, plot: Path | None) -> None:
    from gnothi.studies import export, figure

    if csv_file is not None:
        export.save_csv(document, csv_file)
    if markdown_file is not None:
        export.save_markdown(document, markdown_file)
    if plot is not None:
        figure.save(document, plot)
