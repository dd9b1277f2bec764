"""``gnothi eval``: methods over a data set into a run folder, resumable."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from gnothi.cli import options
from gnothi.cli.running import SOME_FAILED, say_charges, stoppable
from gnothi.cli.saying import say


@click.command("eval")
@click.argument("dataset")
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME[,NAME...]",
    help="One or more methods; see `gnothi list methods`. [default: as for `gnothi ask`]",
)
@options.sources(options.model, options.index, options.graph, calibration=True)
@options.asking
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Folder of the run. If it is unfinished, the command resumes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, a list with one object per method.")
def evaluate(
    dataset: str,
    methods: tuple[str, ...],
    sources: options.Sources,
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

    Run the same command again to resume; failed questions are tried again. --config with the config.toml of a run repeats that
    run. Options that you give override its settings. Exit code 1: some questions failed.
    """
    import gnothi
    from gnothi.cli.progress import ProgressWatch
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal import summary_table

    named, watch = options.names(methods) or None, ProgressWatch()
    given = {**sources.arguments(), "config": sources.config, **asdict(asking)}
    with stoppable(out, lambda: watch.kept):
        with watch:
            summary = gnothi.evaluate(dataset, named, out, watch=watch, **given).summary
        if as_json:
            terminal.print_json(summary.methods)
            for warning in summary.warnings:
                say(f"warning: {warning}")
        else:
            summary_table.show(terminal.console(), summary)
            click.echo(f"run: {out} (pictures and every question: gnothi report {out} --html FILE)")
    say_charges(watch.budget, err=as_json)
    return SOME_FAILED if any(method.failures for method in summary.methods) else 0
