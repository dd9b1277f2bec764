"""``gnothi train complexity``: how much retrieval a question takes, learnt from a run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from gnothi.cli import training
from gnothi.report.terminal import console as terminal


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="PATH", help="Folder of the classifier.")
@click.option("--memory", default="cot", show_default=True, help="The run's method that answers from memory.")
@click.option("--once", default="rag", show_default=True, help="The run's method that retrieves once.")
@click.option("--steps", default="ircot", show_default=True, help="The run's method that retrieves in steps.")
@click.option(
    "--several-hops",
    "several_hops",
    multiple=True,
    metavar="KIND",
    help="Kind of question that takes several hops (repeatable). With it, questions that no method answered rightly are "
    "labelled by their kind; without it, they are left out.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: labels and accuracy.")
def complexity(run: Path, out: Path, memory: str, once: str, steps: str, several_hops: tuple[str, ...], as_json: bool) -> int:
    """Train the classifier of the method adaptive_rag (Adaptive-RAG, section 3) by a RUN over training questions.

    \b
    gnothi eval lab-train --method cot,rag,ircot --out runs/train
    gnothi train complexity runs/train --several-hops two_hop --several-hops comparison --out complexity
    gnothi eval lab --method adaptive_rag --set classifier=complexity --out runs/adaptive

    A question is labelled with the simplest of the three methods that answered it rightly.
    """
    from gnothi.training.complexity.build import build

    training.refuse_test_run(run)
    learnt = build(run, out, (memory, once, steps), several_hops or None)
    if as_json:
        terminal.print_json(asdict(learnt))
        return 0
    names = {"none": "answered from memory", "once": "took one retrieval", "steps": "took steps"}
    labels = ", ".join(f"{count:,} {names[strategy]}" for strategy, count in learnt.labels.items())
    rows = [
        ("questions", labels),
        ("", f"of these {learnt.by_kind:,} labelled by their kind; {learnt.left_out:,} left out (no method was right)"),
        (
            "accuracy",
            f"{learnt.accuracy:.3f} on held-out questions (five folds); the commonest label alone {learnt.majority:.3f}",
        ),
        ("classifier", str(out)),
    ]
    click.echo("\n".join(terminal.definitions(rows, indent=0)))
    return 0
