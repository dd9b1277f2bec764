"""``gnothi reproduce``: a table of a paper by one command, or an ablation of a method on any questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gnothi.cli import options
from gnothi.cli.running import SOME_FAILED, spending
from gnothi.cli.saying import say
from gnothi.errors import InvalidSetting

if TYPE_CHECKING:
    from gnothi.models.remote.budget import Budget
    from gnothi.reproduce.parts import Job
    from gnothi.session.watch import Watch

R = TypeVar("R")


@click.command()
@click.argument("recipe", metavar="RECIPE|FILE")
@click.argument("dataset", required=False, metavar="[QUESTIONS]")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Folder of all runs and results. Without it, the command only describes the recipe.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Table of a paper: folder of its data sets. Indexes are built in this folder.",
)
@click.option(
    "--rehearse", is_flag=True, help="Table of a paper: try every step with the lab model (or --model) on a few lab questions."
)
@click.option(
    "--trained",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Table of a paper: folder of the trained parts, to share between recipes. [default: trained in --out]",
)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Run only this data set, or only this row and the full method (repeat)."
)
@options.sources(
    click.option(
        "--model", metavar="lab|PATH|HUB-ID|openai:NAME", help="The model. [default: the recipe's; with --rehearse, lab]"
    ),
    click.option(
        "--index", metavar="lab|PATH", help="Ablation: the index to search. [default: the recipe's; lab, with the lab model]"
    ),
    click.option(
        "--graph", metavar="lab|PATH", help="Ablation: the graph to search. [default: the recipe's; lab, with the lab model]"
    ),
    options.filters,
)
@options.file(
    "--calibration",
    "A threshold, written by `gnothi calibrate`, for the rows with its signal and settings (repeat, one file per signal).",
    "calibrations",
    multiple=True,
)
@options.drawing
@options.file("--markdown", "Write the table as Markdown.", "markdown_file")
@options.file("--csv", "Ablation: write the table as CSV, with all numbers.", "csv_file")
@options.file("--plot", "Ablation: draw the differences with their intervals (PNG, SVG, PDF).")
@options.json
def reproduce(
    recipe: str,
    dataset: str | None,
    out: Path | None,
    data: Path | None,
    rehearse: bool,
    trained: Path | None,
    only: tuple[str, ...],
    sources: options.Sources,
    calibrations: tuple[Path, ...],
    asking: options.Asking,
    markdown_file: Path | None,
    csv_file: Path | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Reproduce a table of SeaKR, KEQA, SKILL-RAG or IEKR, or run an ablation: a method with parts removed.

    \b
    gnothi list recipes
    gnothi reproduce seakr/table1
    gnothi reproduce seakr/table1 --data FOLDER
    gnothi reproduce seakr/table1 --data FOLDER --out runs/seakr1
    gnothi reproduce seakr/table1 --rehearse --out runs/rehearsal
    gnothi reproduce seakr --limit 100 --out runs/seakr
    gnothi reproduce my-recipe.toml questions.jsonl --model PATH --index my-index --out runs/mine

    Without --out, the command only describes the recipe: its rows, what it needs and, with --data, what is missing, how to get
    it, and an estimate of the cost. In the documentation, "Measure what each part of a method is worth" says how to write a
    FILE.

    Each row is a run, which `gnothi report` and `gnothi calibrate --replay` read. Run the same command again to resume. Exit
    code 1: some questions failed.
    """
    from gnothi.calibration.file import read as read_calibration
    from gnothi.report.terminal import console as terminal
    from gnothi.reproduce import rendering
    from gnothi.reproduce.parts import Job, check_only
    from gnothi.reproduce.recipe import read
    from gnothi.reproduce.work import outlook

    found = read(recipe)
    files = {"--csv": csv_file, "--markdown": markdown_file, "--plot": plot}
    if found.data and (unused := next((flag for flag in ("--csv", "--plot") if files[flag]), None)):
        raise InvalidSetting(f"{unused}: got it with a table of a paper. It goes with an ablation; --markdown goes with both.")
    job = Job(
        recipe=found,
        out=out or Path(),
        dataset=dataset,
        format=asking.format,
        index=sources.index,
        graph=sources.graph,
        calibrations=tuple(map(read_calibration, calibrations)),
        data=data,
        model=sources.model,
        rehearse=rehearse,
        limit=asking.limit,
        only=only,
        trained=trained,
        settings=sources.settings,
        execution=asking.execution,
        max_cost=sources.max_cost,
        max_tokens=sources.max_tokens,
    )
    if out is None:
        check_only(job)
        if unused := next((flag for flag, file in files.items() if file), None):
            raise InvalidSetting(f"{unused}: got it without --out, and nothing runs without that. Give --out FOLDER, too.")
        seen = outlook(job) if found.data or rehearse or data is not None else None
        if as_json:
            terminal.print_json(rendering.listing(found) | ({"needs": seen.needs, "estimate": seen.estimate} if seen else {}))
        else:
            click.echo("\n".join(rendering.described(found, seen)))
        return 0
    return _done(job, files, as_json)


def _done(job: Job, files: Mapping[str, Path | None], as_json: bool) -> int:
    from gnothi.report.terminal import console as terminal
    from gnothi.reproduce import figure, rendering, tables
    from gnothi.reproduce.work import carry_out, table_of
    from gnothi.runs.folder import replace_file

    console, runs = terminal.console(), f"{job.out}/*"
    printed: Any
    warnings: Sequence[str] = ()
    if job.recipe.data:
        outcome = _carried_out(job, carry_out, as_json)
        runs = " ".join(f"{job.out}/{one.name}/*" for one in outcome.data)
        lines, printed, failed = rendering.markdown(outcome), rendering.document(outcome), outcome.failures
        show = partial(rendering.show, console, outcome)
    else:
        printed = table = _carried_out(job, table_of, as_json)
        lines, failed, warnings = tables.markdown(table), sum(one.failures for one in table.variants), table.warnings
        show = partial(tables.show, console, table)
        for save, file in ((tables.save_csv, files["--csv"]), (figure.save, files["--plot"])):
            if file is not None:
                save(table, file)
    if (file := files["--markdown"]) is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, "\n".join(lines) + "\n")
    if as_json:
        terminal.print_json(printed)
        for warning in warnings:
            say(f"warning: {warning}")
    else:
        show()
        click.echo(f"runs: {runs} (every question: gnothi report {runs} --html FILE)")
        for file in filter(None, files.values()):
            click.echo(f"written: {file}")
    return SOME_FAILED if failed else 0


def _carried_out(job: Job, run: Callable[[Job, Watch, Budget], R], as_json: bool) -> R:
    from gnothi.cli.progress import ProgressWatch
    from gnothi.models.remote.budget import Budget
    from gnothi.reproduce.work import check

    planned = check(job)
    budget = Budget(job.max_cost, job.max_tokens)
    remote = any(plan.remote for one in planned for plan in one.plans.values())
    watch = ProgressWatch(job.recipe.name)
    with spending(budget, remote, job.out, lambda: watch.kept, err=as_json), watch:
        return run(job, watch, budget)
