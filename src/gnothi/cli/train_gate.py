"""``gnothi train gate``: when evidence helps and when it misleads, learnt of runs."""

from __future__ import annotations

from pathlib import Path

import click

from gnothi.cli import options
from gnothi.report.terminal import console as terminal


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="PATH", help="Folder of the gate.")
@click.option("--price", type=options.PRICE, default=0.0, show_default=True, help="Of a search, in right answers.")
@click.option("--tokens", type=options.PRICE, default=0.0, show_default=True, help="Of a thousand tokens, in right answers.")
@click.option("--wrong", type=options.PRICE, default=0.0, show_default=True, help="Of a wrong answer beside one not given.")
@click.option("--metric", default="em", show_default=True, metavar="NAME", help="When an answer is right.")
@click.option("--never", metavar="NAME", help="The run's method that answers from memory. [default: panel, cot or direct]")
@click.option(
    "--target-error",
    type=options.PROBABILITY,
    metavar="R",
    help="Promise at most this share of wrong answers among those given.",
)
@click.option(
    "--target-harm",
    type=options.PROBABILITY,
    metavar="R",
    help="Promise at most this share of harm (right from memory, wrong from evidence) among answers taken from evidence.",
)
@click.option("--epsilon", type=options.PROBABILITY, default=0.1, show_default=True, help="How often a promise may fail.")
@options.json
def gate(
    runs: tuple[Path, ...],
    out: Path,
    price: float,
    tokens: float,
    wrong: float,
    metric: str,
    never: str | None,
    target_error: float | None,
    target_harm: float | None,
    epsilon: float,
    as_json: bool,
) -> None:
    """Learn when evidence helps and when it misleads, for the method cascade, from each RUN of it without a gate.

    \b
    gnothi eval lab-train --method cot,cascade --out runs/train
    gnothi train gate runs/train --price 0.02 --out gate
    gnothi eval lab --method cascade --set learned=gate --out runs/gated

    Prices say what a search, a thousand tokens and a wrong answer may cost: 0.02 is one right answer in fifty searches. Several
    runs are learnt of together, and each is judged by what the others taught. A promise is tested on a half of the
    questions that nothing was learnt of.
    """
    from gnothi.calibration.learned_records import Prices
    from gnothi.report.terminal import learned_table
    from gnothi.training.gate import Targets, train

    targets = Targets(target_error, target_harm, epsilon)
    found = train(runs, out, Prices(price, wrong, tokens), metric, never, targets)
    if as_json:
        terminal.print_json(found)
        return
    screen = terminal.console()
    for one in found.other:
        learned_table.show(screen, one)
        click.echo()
    for what, kept in (("harm among answers taken from evidence", found.harm), ("errors among answers given", found.errors)):
        if kept is not None:
            held = f"{kept.wrong} of {kept.trusted} in the test"
            click.echo(f"promised: {what} at most {kept.target_error:g}, with probability {1 - kept.epsilon:g} ({held})")
    click.echo(f"gate: {out}")
