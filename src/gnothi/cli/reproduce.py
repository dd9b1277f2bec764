"""``gnothi reproduce``: a table or figure of a paper by one command, with the paper's figures beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnothi.cli import options
from gnothi.cli.running import SOME_FAILED
from gnothi.cli.saying import say
from gnothi.cli.spending import spending

if TYPE_CHECKING:
    from gnothi.reproduce.outcome import Outcome
    from gnothi.reproduce.parts import Job


@click.command()
@click.argument("recipe", metavar="list|RECIPE")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where the data sets are; indexes go there.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where everything goes that comes of it; the same command goes on there. Without it nothing is started.",
)
@click.option(
    "--rehearse", is_flag=True, help="Every step with the lab model (or --model) on a few questions of the laboratory."
)
@click.option("--only", multiple=True, metavar="NAME", help="Only this data set, or this row beside the full method (repeat).")
@click.option("--limit", type=click.IntRange(min=1), help="So many questions of each data set, drawn at random by the seed.")
@click.option(
    "--trained",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where what is learnt on the way goes, for several recipes to share. [default: trained in --out]",
)
@options.sources(
    click.option("--model", metavar="lab|PATH|HUB-ID|openai:NAME", help="The model. [default: the paper's; in a rehearsal lab]")
)
@options.seed
@options.file("--markdown", "Write the table as Markdown.", "markdown_file")
@options.json
def reproduce(
    recipe: str,
    data: Path | None,
    out: Path | None,
    rehearse: bool,
    only: tuple[str, ...],
    limit: int | None,
    trained: Path | None,
    sources: options.Sources,
    seed: int,
    markdown_file: Path | None,
    as_json: bool,
) -> int:
    """A table or figure of SeaKR, KEQA, SKILL-RAG or IEKR: everything it takes, and the paper's figures beside ours.

    \b
    gnothi reproduce list
    gnothi reproduce seakr/table1
    gnothi reproduce seakr/table1 --data FOLDER
    gnothi reproduce seakr/table1 --data FOLDER --out runs/seakr1
    gnothi reproduce seakr/table1 --rehearse --out runs/rehearsal

    Without --out it says what the recipe needs, what of that is lacking in --data and how to get it, and about what it takes.
    Indexes are built, and what is to be learnt is learnt, before the rows are run. The same command again goes on with what is
    unfinished. Exit code 1: some questions failed.
    """
    from gnothi.report.terminal import console as terminal
    from gnothi.reproduce import shown
    from gnothi.reproduce.parts import Job
    from gnothi.reproduce.recipe import names, read
    from gnothi.reproduce.work import outlook
    from gnothi.session.plan import Execution

    if recipe == "list":
        every = [read(name) for name in names()]
        if as_json:
            terminal.print_json([shown.listing(one) for one in every])
        else:
            click.echo("\n".join(shown.listed(every)))
            click.echo("What one needs: gnothi reproduce RECIPE. Run it: gnothi reproduce RECIPE --data FOLDER --out FOLDER")
        return 0
    found = read(recipe)
    job = Job(
        recipe=found,
        out=out or Path(),
        data=data,
        model=sources.model,
        rehearse=rehearse,
        limit=limit,
        only=only,
        trained=trained,
        settings=sources.settings,
        execution=Execution(seed),
        max_cost=sources.max_cost,
        max_tokens=sources.max_tokens,
    )
    if out is None:
        seen = outlook(job) if rehearse or data is not None else None
        if as_json:
            terminal.print_json(shown.listing(found) | ({"needs": seen.needs, "estimate": seen.estimate} if seen else {}))
        else:
            click.echo("\n".join(shown.described(found, seen)))
        return 0
    outcome = _carried_out(job, as_json)
    if markdown_file is not None:
        from gnothi.runs.folder import replace_file

        markdown_file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(markdown_file, "\n".join(shown.markdown(outcome)) + "\n")
    if as_json:
        terminal.print_json(shown.document(outcome))
    else:
        shown.show(terminal.console(), outcome)
        runs = " ".join(f"{out}/{one.name}/*" for one in outcome.data)
        click.echo(f"every question: gnothi report {runs} --html FILE")
        if markdown_file is not None:
            click.echo(f"written: {markdown_file}")
    return SOME_FAILED if outcome.failures else 0


def _carried_out(job: Job, as_json: bool) -> Outcome:
    from gnothi.cli.progress import watching
    from gnothi.cli.train import _bars
    from gnothi.models import is_remote
    from gnothi.models.remote.budget import Budget
    from gnothi.reproduce.learning import Watching
    from gnothi.reproduce.needs import models
    from gnothi.reproduce.parts import parts
    from gnothi.reproduce.work import carry_out

    budget = Budget(job.max_cost, job.max_tokens)
    remote = any(map(is_remote, models(parts(job))))
    with spending(budget, remote, job.out, lambda: "what was done is", err=as_json), watching(job.recipe.name) as watch:
        said = Watching(lambda step: say(f"step: {step}"), watch, _bars())
        return carry_out(job, said, budget)
