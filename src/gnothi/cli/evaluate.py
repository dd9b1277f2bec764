"""``gnothi eval``: methods over a data set into a run folder, resumable."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import click

from gnothi.cli import options
from gnothi.cli.progress import watching
from gnothi.cli.spending import spending

SOME_FAILED = 1


@click.command("eval")
@click.argument("dataset")
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME[,NAME...]",
    help="One or several; see `gnothi methods`. [default: seakr]",
)
@options.sources(options.model, options.index, options.graph)
@options.calibration
@options.asking
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Folder of the run; an unfinished one goes on.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, a list with one object per method.")
def evaluate(
    dataset: str,
    methods: tuple[str, ...],
    sources: options.Sources,
    thresholds: options.Thresholds,
    asking: options.Asking,
    out: Path,
    as_json: bool,
) -> int:
    """Run methods over DATASET: `lab`, `lab:KIND` or a file of questions.

    \b
    gnothi eval lab --method direct,rag,seakr --out runs/lab
    gnothi eval questions.jsonl --method seakr --model PATH --index my-index --out runs/mine
    gnothi eval lab --method cot --model openai:NAME --max-tokens 2000000 --out runs/remote
    gnothi eval --config runs/lab/config.toml --seed 1 --out runs/again

    The same command again completes an interrupted run and tries failed questions again. --config with the config.toml of a
    run repeats it, but for what is given otherwise. Exit code 1: some questions failed.
    """
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal import summary_table
    from gnothi.session.execute import budget_of, claimed, done, execute
    from gnothi.session.plan import resolve, with_questions
    from gnothi.session.record import changed_since, record

    plan = resolve(sources.request(options.names(methods, "seakr"), thresholds))
    plan = with_questions(plan, dataset, asking.format, asking.limit, asking.execution)
    say = partial(click.echo, err=True)
    for line in plan.told:
        say(line)
    changed = changed_since(sources.repeated, record(plan), str(sources.config)) if sources.config else []
    for warning in (*changed, *plan.warnings):
        say(f"warning: {warning}")
    budget = budget_of(plan)
    with claimed(plan, out) as run, spending(budget, plan.remote, out, partial(done, [run]), err=as_json):
        with watching() as watch:
            (rows,) = asyncio.run(execute([run], watch, budget=budget))
        summary = run.summarise(rows)
        if as_json:
            terminal.print_json(summary.methods)
            for warning in summary.warnings:
                say(f"warning: {warning}")
        else:
            summary_table.show(terminal.console(), summary)
            click.echo(f"run: {out} (pictures and every question: gnothi report {out} --html FILE)")
    return SOME_FAILED if any(method.failures for method in summary.methods) else 0
