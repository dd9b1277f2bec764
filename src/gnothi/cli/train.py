"""``gnothi train``: what is learnt from training questions, one command for all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from gnothi.api.train import KINDS, STAGED
from gnothi.cli import options
from gnothi.cli.running import SOME_FAILED, say_charges, stoppable
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.report.terminal import console as terminal
from gnothi.roles import ALWAYS

_OF_SOME = ("method", "index", "graph", "base", "encoder", *STAGED)
_OF_RUNS = ("out", "encoder", "overrides", "config", "as_json", "kind", "data")


@click.command()
@click.argument("kind", type=options.Name("training", KINDS), metavar="KIND")
@click.argument("data", nargs=-1, callback=options.or_of_config, metavar="QUESTIONS...|RUN")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder of the result. If it is unfinished, the command resumes.",
)
@options.sources(
    options.model,
    options.index,
    options.graph,
    click.option(
        "--method",
        metavar="NAME",
        help=f"reader: the method that finds the evidence. [default: {ALWAYS}]",
    ),
    click.option("--base", metavar="lab|PATH|HUB-ID", help="reranker: the cross-encoder or encoder to train. [default: lab]"),
    click.option(
        "--encoder",
        metavar="lexical|PATH|HUB-ID",
        help="References: find similar questions by words (lexical), or with a sentence-transformers model. [default: lexical]",
    ),
    sets="KEY of KIND; with QUESTIONS also model.KEY; with reader also KEY of its method or index.KEY",
    config="A TOML file of settings.",
)
@click.option(
    "--findings",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="self-knowledge, reader, reranker: folder of the collected answers, prompts or pairs, to share between trainings. "
    "[default: in --out]",
)
@click.option(
    "--collect-only", is_flag=True, help="self-knowledge, reader, reranker: collect answers, prompts or pairs, and stop."
)
@options.collecting
@options.json
@click.pass_context
def train(
    context: click.Context,
    kind: str,
    data: tuple[str, ...],
    out: Path,
    sources: options.Sources,
    method: str | None,
    base: str | None,
    encoder: str | None,
    findings: Path | None,
    collect_only: bool,
    asking: options.Asking,
    as_json: bool,
) -> int:
    """Train KIND on training questions, or on a run of `gnothi eval` over them.

    \b
    gnothi train probe train.jsonl --model PATH --out my-probe
    gnothi train self-knowledge lab-train:one_hop --out knowing --set answers.n=10
    gnothi train reader lab-train:choice --method rag --set k=3 --out reading
    gnothi train reranker train.jsonl --model PATH --graph my-graph --base HUB-ID --out my-reranker
    gnothi train utility-reference hotpotqa.json nq.qa.csv --limit 500 --index my-index --out reference
    gnothi train knowledge-reference runs/train --out known
    gnothi train complexity runs/train --set several_hops=two_hop,comparison --out complexity

    \b
    probe                from one forward pass, whether the model will answer wrongly
    self-knowledge       a model that says whether it knows (SKILL-RAG; needs the extras report, training)
    reader               a model that answers from evidence (IEKR; needs the extras report, training)
    reranker             a cross-encoder of facts (IEKR; needs the extras dense, report, training)
    utility-reference    which passages help or harm answers (KEQA)
    knowledge-reference  known and unknown questions, for the method skr; from a RUN
    complexity           the classifier of the method adaptive_rag; from a RUN

    In the documentation, "Settings of trainings" lists the settings (--set) of each KIND. Test questions are refused.

    Run the same command again to resume; failed questions are tried again. Exit code 1: some questions failed.
    """
    import gnothi
    from gnothi.cli.progress import ProgressWatch
    from gnothi.training.job import Job

    chosen = KINDS[kind]
    _check_used(context, kind, data)
    own = {"method": method, "base": base, "encoder": encoder, "findings": findings, "collect_only": collect_only}
    given: dict[str, Any] = {key: value for key, value in own.items() if key in chosen.takes and value is not None}
    if chosen.of_run:
        given["settings"] = sources.settings
    else:
        for group in (sources, asking):
            given |= {item.name: getattr(group, item.name) for item in fields(Job) if hasattr(group, item.name)}
        given |= {key: None for key in ("index", "graph") if key not in chosen.takes}
    watch = ProgressWatch()
    with stoppable(out):
        trained = gnothi.train(kind, data[0] if len(data) == 1 else data, out, watch=watch, **given)
        if trained.report and as_json:
            terminal.print_json(trained.figures)
        elif trained.report:
            rows = [] if collect_only else [(chosen.called, chosen.used.format(out))]
            click.echo("\n".join(terminal.definitions([*trained.report, *rows], indent=0)))
    say_charges(watch.budget, err=as_json)
    return SOME_FAILED if trained.failed else 0


def _check_used(context: click.Context, kind: str, data: Sequence[str]) -> None:
    """Raises InvalidInput for too few or too many data, InvalidSetting for an option that this kind does not take."""
    what = "RUN" if KINDS[kind].of_run else "QUESTIONS"
    if not data:
        raise InvalidInput(f"train {kind}: got no {what}, expected one.")
    if len(data) > 1 and kind != "utility-reference":
        raise InvalidInput(f"train {kind}: got {len(data)} arguments, expected one {what}.")
    for option in context.command.params:
        name = option.name or ""
        if context.get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE:
            continue
        if name in _OF_SOME and name not in KINDS[kind].takes:
            kinds = [other for other, one in KINDS.items() if name in one.takes]
            raise InvalidSetting(
                f"{option.opts[0]}: got it with train {kind}, expected it with {', '.join(kinds)}. Leave it out."
            )
        if KINDS[kind].of_run and name not in _OF_RUNS:
            raise InvalidSetting(f"{option.opts[0]}: got it with train {kind}, which asks no model. Leave it out.")
