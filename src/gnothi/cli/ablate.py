"""``gnothi ablate``: a study's variants over the same questions, each a run of its own, and the table they come to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.cli import options
from gnothi.cli.spending import spending
from gnothi.errors import InvalidSetting, RunStopped
from gnothi.types import Question

if TYPE_CHECKING:
    from gnothi.cli.evaluate import Job
    from gnothi.report.summary import Summary
    from gnothi.runs.folder import RunFolder
    from gnothi.runs.outcomes import Outcome
    from gnothi.runs.rows import Row
    from gnothi.runs.runner import Answer
    from gnothi.studies.ablation import Table
    from gnothi.studies.study import Study
    from gnothi.studies.variants import Plan, Planned

_file = partial(click.Path, path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True)
class Run:
    """A variant with its questions and the folder that its answers go to; ``trusting`` holds its method if the gate was told
    never to fire."""

    planned: Planned
    job: Job
    folder: RunFolder
    trusting: Sequence[str]

    @property
    def label(self) -> str:
        return self.planned.variant.label

    @property
    def missing(self) -> int:
        rows = self.folder.rows
        return sum(key not in rows or rows[key].failed for key in self.job.keys)


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
@click.option(
    "--model", metavar="lab|PATH|HUB-ID|openai:NAME", help="The model, as for `gnothi eval`. [default: the study's; lab]"
)
@options.index
@options.graph
@options.settings
@options.spending
@options.asking
@click.option("--csv", "csv_file", type=_file(), metavar="FILE", help="Write the table as CSV, with all numbers.")
@click.option("--markdown", "markdown_file", type=_file(), metavar="FILE", help="Write the table as Markdown.")
@click.option("--plot", type=_file(), metavar="FILE", help="Draw the differences with their intervals (PNG, SVG, PDF).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def ablate(
    study: str | None,
    dataset: str | None,
    out: Path | None,
    listed: bool,
    only: tuple[str, ...],
    model: str | None,
    index: str | None,
    graph: str | None,
    config: Path | None,
    overrides: tuple[str, ...],
    cache: bool | None,
    max_cost: float | None,
    max_tokens: int | None,
    limit: int | None,
    seed: int,
    format: str | None,
    concurrency: int,
    workers: int,
    max_failures: int | None,
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

    STUDY is the name of one that comes along, or a TOML file (docs/ablations.md). Each variant is a run of its own under
    --out, which `gnothi report` and `gnothi gates` read. The same command again goes on with what is unfinished. Exit code 1:
    some questions failed.
    """
    from gnothi.cli.evaluate import SOME_FAILED, Job, check_workers
    from gnothi.report.terminal import console as terminal
    from gnothi.session.resources import load_questions, model_specs
    from gnothi.studies import study as studies
    from gnothi.studies import terminal as ablation_table
    from gnothi.studies.variants import plan

    if study is None or listed:
        chosen = [studies.read(study)] if study else [studies.read(name) for name in studies.names()]
        if as_json:
            terminal.print_json([ablation_table.listing(one) for one in chosen])
        else:
            ablation_table.show_studies(chosen, variants=study is not None)
        return 0
    if out is None:
        raise InvalidSetting("--out is missing: expected a folder for the runs, as in --out runs/ablation.")
    found = studies.read(study)
    planned = plan(found, options.read(config, overrides, cache), model, index, graph, only)
    models = list(
        dict.fromkeys(spec for one in planned.variants for spec in model_specs(one.model, [one.variant.method], one.settings))
    )
    budget = options.budget(models, max_cost, max_tokens)
    check_workers(workers, models)
    dataset = dataset or found.dataset
    questions = load_questions(dataset, format, limit)
    job = partial(
        Job,
        dataset=dataset,
        questions=questions,
        limit=limit,
        format=format,
        seed=seed,
        concurrency=concurrency,
        workers=workers,
        max_failures=max_failures,
    )
    with contextlib.ExitStack() as stack:
        runs = _claim(stack, found, planned, job, out)
        stack.enter_context(spending(budget, models, out, partial(_done, runs), err=as_json))
        try:
            rows = _complete(found, runs)
        except RunStopped:
            for run in runs:
                if run.folder.rows:
                    _summarise(run, list(run.folder.rows.values()))
            raise
        document = _document(found, runs, rows, planned)
        _save(document, csv_file, markdown_file, plot)
        if as_json:
            terminal.print_json(document)
            for warning in document.warnings:
                click.echo(f"warning: {warning}", err=True)
        else:
            ablation_table.show(terminal.console(), document)
            click.echo(f"runs: {out}/* (every question: gnothi report {out}/* --html FILE)")
            for file in (csv_file, markdown_file, plot):
                if file is not None:
                    click.echo(f"written: {file}")
    return SOME_FAILED if any(variant.failures for variant in document.variants) else 0


def _save(document: Table, csv_file: Path | None, markdown_file: Path | None, plot: Path | None) -> None:
    from gnothi.studies import export as ablation_tables
    from gnothi.studies import figure as ablation_figure

    if csv_file is not None:
        ablation_tables.save_csv(document, csv_file)
    if markdown_file is not None:
        ablation_tables.save_markdown(document, markdown_file)
    if plot is not None:
        ablation_figure.save(document, plot)


def _claim(stack: contextlib.ExitStack, study: Study, plan: Plan, shared: Callable[..., Job], out: Path) -> list[Run]:
    """The folders of all variants, open for writing: what does not fit is refused before the first question. ``shared`` makes
    a variant's job of what is its own."""
    from gnothi.calibration.from_run import trusts_all
    from gnothi.cli.evaluate import resolved_settings, run_config
    from gnothi.runs.folder import EXECUTION, RunFolder

    runs = []
    places = {variant.label: place for place, variant in enumerate(study.variants, start=1)}
    for one in plan.variants:
        variant = one.variant
        job = shared(methods=[variant.method], model=one.model, index=one.index, graph=one.graph, settings=one.settings)
        told = {"study": study.name, "label": variant.label, "place": places[variant.label]}
        resolved = resolved_settings(job.methods, job.settings)
        described = run_config(job, resolved) | {f"{EXECUTION}{key}": value for key, value in told.items()}
        folder = stack.enter_context(RunFolder(out / variant.folder, described))
        runs.append(Run(one, job, folder, [name for name in job.methods if trusts_all(resolved, name)]))
    return runs


def _done(runs: Sequence[Run]) -> str:
    wanted = sum(len(run.job.keys) for run in runs)
    return f"{wanted - sum(run.missing for run in runs)} of {wanted} answers are"


def _complete(study: Study, runs: Sequence[Run]) -> dict[str, list[Row]]:
    """All rows by label; models and indexes are opened only where something is missing, once for all that share them."""
    if any(run.missing for run in runs):
        asyncio.run(_run(study, runs))
    return {run.label: run.folder.finish(run.job.keys) for run in runs}


async def _run(study: Study, runs: Sequence[Run]) -> None:
    from gnothi.cli.progress import RunProgress
    from gnothi.report.terminal import console as terminal
    from gnothi.runs.runner import run as answer_all

    wanted, missing = sum(len(run.job.keys) for run in runs), sum(run.missing for run in runs)
    with contextlib.ExitStack() as shown:
        progress: RunProgress | None = None
        for opening in dict.fromkeys(run.planned.opening for run in runs if run.missing):
            group = [run for run in runs if run.planned.opening == opening and run.missing]
            with terminal.Waiting(f"opening model {opening.model} ...") as waiting:
                async with _answering(group) as answer:
                    waiting.stop()
                    progress = progress or shown.enter_context(RunProgress(wanted, wanted - missing, study.name))
                    for run in group:
                        await answer_all(
                            _as(run, answer),
                            run.job.methods,
                            run.job.questions,
                            run.folder,
                            concurrency=run.job.concurrency,
                            max_failures=run.job.max_failures,
                            on_row=partial(_advance, progress, run.label),
                        )


def _advance(progress: Any, label: str, row: Row) -> None:
    progress.advance(row.failed, label)


def _as(run: Run, answer: Answer) -> Answer:
    """Answers of the variant, in rows that bear its method's name: as `gnothi eval` writes them."""

    async def named(method: str, question: Question) -> Outcome:
        found = await answer(run.label, question)
        return replace(found, row=replace(found.row, method=method))

    return named


@contextlib.asynccontextmanager
async def _answering(group: Sequence[Run]) -> AsyncIterator[Answer]:
    from gnothi.runs.runner import here
    from gnothi.runs.workers import workers
    from gnothi.studies.variants import open_variants

    opened = partial(open_variants, [run.planned for run in group])
    job = group[0].job
    if job.workers == 1:
        async with opened() as methods:
            yield here(methods, job.seed)
    else:
        async with workers(job.workers, opened, job.seed) as several:
            yield several


def _summarise(run: Run, rows: Sequence[Row]) -> Summary:
    from gnothi.report.summary import summarise

    summary = summarise(rows, run.job.dataset, run.trusting)
    run.folder.write_summary(summary)
    return summary


def _document(study: Study, runs: Sequence[Run], rows: Mapping[str, list[Row]], plan: Plan) -> Table:
    from gnothi.studies import ablation

    summaries = {run.label: _summarise(run, rows[run.label]) for run in runs}
    folders = {run.label: run.folder.path for run in runs}
    dataset = runs[0].job.dataset
    return ablation.document(study, runs[0].job.model, dataset, rows, summaries, folders, plan.left_out)
