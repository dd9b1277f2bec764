"""``gnothi gates``: any threshold of any recorded signal, without a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnothi.cli import options
from gnothi.cli.saying import say
from gnothi.errors import InvalidSetting, UnknownName

if TYPE_CHECKING:
    from gnothi.calibration.learned_records import Prices
    from gnothi.calibration.replay import Replay


@click.command()
@click.argument("files", nargs=-1, required=True, type=options.Existing(path_type=Path, exists=True), metavar="RUN|FILE...")
@click.option(
    "--threshold",
    "thresholds",
    callback=options.thresholds,
    multiple=True,
    metavar="SIGNAL=VALUE",
    help="Replay this threshold of a signal, whatever method measured it, in the units of the record (repeat).",
)
@click.option(
    "--price",
    type=options.PRICE,
    default=0.0,
    show_default=True,
    help="What a retrieval costs, as a share of right answers, where one is chosen.",
)
@click.option("--metric", metavar="NAME", help="When an answer is right. [default: contained for answers, em for runs]")
@click.option(
    "--never", metavar="NAME", help="What stands for never retrieving. [default: no_retrieval; never; panel, cot or direct]"
)
@click.option("--always", metavar="NAME", help="What stands for always retrieving. [default: one_retrieval; always; rag]")
@click.option(
    "--surer",
    multiple=True,
    metavar="SIGNAL",
    help="A signal of a file that rises with certainty, not with doubt (repeat). [known: energy_score]",
)
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Draw the frontiers (PNG, SVG, PDF)."
)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write one self-contained page.")
@click.option(
    "--csv",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write all numbers as CSV files.",
)
@click.option(
    "--learn", "learning", is_flag=True, help="Learn where evidence helps and where it misleads, from all that is recorded."
)
@click.option(
    "--judge",
    "judged",
    multiple=True,
    type=options.Existing(path_type=Path, exists=True),
    metavar="RUN|FILE",
    help="Judge what was learnt on all of RUN|FILE... on these other questions (repeat). [default: cross-fitted, file by file]",
)
@click.option(
    "--wrong",
    type=options.PRICE,
    default=0.0,
    show_default=True,
    help="With --learn: what a wrong answer costs beside one not given, as a share of a right one.",
)
@click.option(
    "--tokens",
    type=options.PRICE,
    default=0.0,
    show_default=True,
    help="With --learn: what a thousand tokens cost, as a share of a right answer, in runs of the method cascade.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, a list with one object per file.")
def gates(
    files: tuple[Path, ...],
    thresholds: dict[str, float],
    price: float,
    metric: str | None,
    never: str | None,
    always: str | None,
    surer: tuple[str, ...],
    plot: Path | None,
    html: Path | None,
    folder: Path | None,
    learning: bool,
    judged: tuple[Path, ...],
    wrong: float,
    tokens: float,
    as_json: bool,
) -> None:
    """Replay gates on what was recorded: runs of `gnothi eval`, files of answers with and without retrieval, or tables (CSV,
    TSV, Parquet) of how right both were and what signals said.

    \b
    gnothi gates runs/lab
    gnothi gates recorded/trivia.test.jsonl --threshold perplexity=1.3
    gnothi gates recorded/*.test.jsonl --always multi_retrieval --json
    gnothi gates scores.csv --never closed_right --always open_right
    gnothi gates runs/lab recorded/*.test.jsonl --html gates.html
    gnothi gates recorded/nq.dev.jsonl --learn --judge recorded/nq.test.jsonl --price 0.05

    For each signal: how well it tells wrong answers (AUROC), and what the best threshold is worth on questions that it was not
    chosen on (cross-validation), between never, always and the oracle, which picks the better of the two for each question.

    With --learn: a small gate of all signals and of what the texts of question and answers show, before the search and after
    it: what it comes to on questions that it did not learn of, its weights, and why it searched for one question.
    """
    from gnothi.calibration.compare import document, read
    from gnothi.calibration.learned_records import Prices
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal import gates_table
    from gnothi.report.titles import name_all

    def read_all(paths: tuple[Path, ...]) -> list[Replay]:
        return [read(path, metric, never, always, surer) for path in paths]

    if learning:
        _require_none({"--threshold": thresholds, "--csv": folder}, "that goes without --learn")
        _learn(read_all(files), read_all(judged), Prices(price, wrong, tokens), plot, html, as_json)
        return
    _require_none({"--judge": judged, "--wrong": wrong, "--tokens": tokens}, "that goes with --learn")
    replays = read_all(files)
    known = {name for replay in replays for signal in replay.signals for name in signal.names}
    for name in thresholds:
        if name not in known:
            raise UnknownName("signal of what was recorded", name, known)
    documents = [document(replay, price, thresholds) for replay in replays]
    titles = [name.title for name in name_all(documents)]
    if plot is not None:
        from gnothi.report.figures.frontier import save

        save(documents, plot)
    written: list[str] = []
    if html is not None:
        from gnothi.report.page.replays import write_page

        write_page(replays, documents, html)
        written.append(f"page: {html}")
    if folder is not None:
        from gnothi.report.page.replays import write_csv

        written.append(f"tables: {len(write_csv(replays, documents, folder))} files in {folder}")
    if as_json:
        terminal.print_json(documents)
    else:
        screen = terminal.console()
        for number, (found, name) in enumerate(zip(documents, titles, strict=True)):
            if number:
                click.echo()
            gates_table.show(screen, found, name)
        for line in written:
            click.echo(line)
    for found, name in zip(documents, titles, strict=True):
        for warning in found.warnings:
            say(f"warning: {name}: {warning}")


def _require_none(given: Mapping[str, object], why: str) -> None:
    for flag, value in given.items():
        if value:
            raise InvalidSetting(f"{flag}: got a value, expected none, for {why}. Leave {flag} out, or change --learn.")


def _learn(
    learnt: list[Replay], judged: list[Replay], prices: Prices, plot: Path | None, html: Path | None, as_json: bool
) -> None:
    from gnothi.calibration.learned import learn
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal import learned_table

    found = learn(learnt, judged, prices)
    if plot is not None:
        from gnothi.report.figures.learned import save

        save(found, plot)
    if html is not None:
        from gnothi.report.page.learned import write_page

        write_page(found, html)
    if as_json:
        terminal.print_json(found)
        return
    screen = terminal.console()
    for number, one in enumerate(found):
        if number:
            click.echo()
        learned_table.show(screen, one)
    if html is not None:
        click.echo(f"page: {html}")
